// Reads and searches that arrive together share a statement on PostgreSQL, but never the conditions of another user.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createContext } from '../../src/service/context/context.js'
import type { App } from '../../src/service/context/app.js'
import { SERVICE_PRINCIPAL, type Principal } from '../../src/service/context/principal.js'
import { findByQuery, readRecord } from '../../src/service/records/read.js'
import { sharingConditions, sharingParameters } from '../mutants/permissions.js'
import { catchError, onEveryEngine, startService, type Service } from '../targets.js'
import { grantee, officeModels, rootOf, TEAM } from './office-fixture.js'

onEveryEngine((engine) => {
  let service: Service
  let limited: Principal
  let ofNorth: Principal
  let ofSouth: Principal
  let hidden: number
  let shown: number

  beforeAll(async () => {
    service = await startService(engine, { models: officeModels })
    const limitTo = async (condition: string) => {
      const { id, username } = await grantee(service, [{ model: TEAM, canRead: true, condition }])
      return service.app.authorizer.resolvePrincipal({ id, version: 1, username, name: username })
    }
    limited = await limitTo('name is null')
    ofNorth = await limitTo("name = 'north'")
    ofSouth = await limitTo("name = 'south'")
    for (const name of ['north', 'south']) await rootOf(service).create(TEAM, { name })
    hidden = (await rootOf(service).create(TEAM, { name: 'hidden' })).data.id
    shown = (await rootOf(service).create(TEAM, {})).data.id
  })
  afterAll(() => service.close())

  const read = async (app: App, principal: Principal, id: number) => {
    const found = readRecord(createContext(app, principal), app.catalog.get(TEAM), id)
    return found.then(
      () => 'found',
      async () => (await catchError(found)).kind,
    )
  }

  /** Another user reads first, in the same tick. */
  const readBeside = async (app: App) =>
    Promise.all([
      read(app, SERVICE_PRINCIPAL, shown),
      read(app, limited, hidden),
      read(app, limited, shown),
      read(app, SERVICE_PRINCIPAL, hidden),
    ])

  test('a condition without parameters holds beside a read without conditions', async () => {
    expect(await readBeside(service.app)).toEqual(['found', 'not-found', 'found', 'found'])
  })

  test('the mutant that batches reads with different conditions is caught where reads are batched', async () => {
    const [, ofLimited] = await readBeside(sharingConditions(service.app))
    expect(ofLimited).toBe(engine === 'postgres' ? 'found' : 'not-found')
  })

  /** Three users search in the same tick. The conditions of two of them differ only in their value. */
  const searchBeside = async (app: App) => {
    const search = async (principal: Principal) => {
      const found = await findByQuery(createContext(app, principal), app.catalog.get(TEAM), {
        sortBy: '-name',
      })
      const { data } = await found.toPage()
      return data.map(({ name }) => name)
    }
    return Promise.all([search(ofNorth), search(ofSouth), search(SERVICE_PRINCIPAL), search(ofSouth)])
  }

  test('a search has the conditions of its user beside equal searches of others', async () => {
    const all = ['south', 'north', 'hidden', null]
    expect(await searchBeside(service.app)).toEqual([['north'], ['south'], all, ['south']])
  })

  test('the mutant that shares searches with different parameters is caught where searches are shared', async () => {
    const [, ofSecond] = await searchBeside(sharingParameters(service.app))
    expect(ofSecond).toEqual(engine === 'postgres' ? ['north'] : ['south'])
  })
})
