// Reads that arrive together share a statement on PostgreSQL, but never the conditions of another user.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createContext } from '../../src/service/context/context.js'
import type { App } from '../../src/service/context/app.js'
import { SERVICE_PRINCIPAL, type Principal } from '../../src/service/context/principal.js'
import { readRecord } from '../../src/service/records/read.js'
import { sharingConditions } from '../mutants/permissions.js'
import { catchError, onEveryEngine, startService, type Service } from '../targets.js'
import { grantee, officeModels, rootOf, TEAM } from './office-fixture.js'

onEveryEngine((engine) => {
  let service: Service
  let limited: Principal
  let hidden: number
  let shown: number

  beforeAll(async () => {
    service = await startService(engine, { models: officeModels })
    const { id, username } = await grantee(service, [
      { model: TEAM, canRead: true, condition: 'name is null' },
    ])
    limited = await service.app.authorizer.resolvePrincipal({ id, version: 1, username, name: username })
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
})
