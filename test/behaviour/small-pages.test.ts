// On SQLite a page that holds all matches of a small table is one statement, and equal searches of a user share their plan.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { App } from '../../src/service/context/app.js'
import { recordsFor } from '../../src/service/records/records.js'
import { findCredentials } from '../../src/store/auth/accounts.js'
import type { Row } from '../../src/store/engine/database.js'
import { MAX_CACHED_PLANS } from '../../src/store/find/search-plan.js'
import type { Records } from '../../src/wire.js'
import { faceOf } from '../mutants/records.js'
import { scanningGrownTables, sharingPlans, trustingKnownSizes } from '../mutants/searches.js'
import { grantee, permit, rootOf } from '../permissions/office-fixture.js'
import { changedReader } from '../queryables.js'
import { startService, type Service } from '../targets.js'

const CITY = 'small.City'
const definition = defineModel({
  name: CITY,
  fields: { name: { type: 'string' }, country: { type: 'string' } },
})
const SORTED = { sortBy: '-country,name', limit: '5' }

let service: Service

beforeAll(async () => {
  service = await startService('sqlite', { models: [{ file: 'small.ts', definition }], isNew: true })
})
afterAll(async () => {
  await service.close()
})

async function fill(names: readonly (string | null)[]): Promise<void> {
  const root = rootOf(service)
  const { data } = await root.find(CITY, {})
  for (const { id } of data) await root.remove(CITY, id)
  for (const name of names) await root.create(CITY, { name, country: name === 'Oslo' ? 'Norway' : 'Spain' })
}

async function enterAs(app: App, username: string): Promise<Records> {
  const found = await findCredentials(app.db.reader, username)
  if (!found) throw new Error(`${username} is missing`)
  const { id, version, name } = found.user
  return recordsFor(app, { id, version, username, name })
}

/** The App, and the rows of each statement of its reader. */
function observe(app: App): { readonly app: App; readonly results: Row[][] } {
  const results: Row[][] = []
  const reader = changedReader(app.db.reader, async (sql, params) => {
    const rows = await app.db.reader.all(sql, params)
    results.push(rows)
    return rows
  })
  return { app: { ...app, db: { ...faceOf(app.db), reader } }, results }
}

const namesOf = ({ data }: Awaited<ReturnType<Records['find']>>) => data.map(({ name }) => name)

test('a repeated search of a small table is one statement', async () => {
  await fill(['Oslo', 'Vigo', null, 'Avila', 'Ávila'])
  const { app, results } = observe(service.app)
  const records = rootOf({ app })
  const first = await records.find(CITY, SORTED)
  expect(namesOf(first)).toEqual(['Avila', 'Vigo', 'Ávila', null, 'Oslo'])
  results.length = 0
  expect(await records.find(CITY, SORTED)).toEqual(first)
  expect(results).toHaveLength(1)
})

test('a page of a small table equals the page that the query pool reads', async () => {
  await fill(['Oslo', 'Vigo', null, 'Avila', 'Ávila "quoted"\n'])
  const { app } = service
  const pooled = {
    ...app,
    db: { ...faceOf(app.db), dialect: { ...app.db.dialect, readsBlockEventLoop: false } },
  }
  for (const query of [
    SORTED,
    { sortBy: 'name' },
    { filter: `name like '%v%'` },
    { filter: `country = 'Spain'`, sortBy: '-name' },
    { filter: `name = 'none'` },
    { q: 'spain', fields: 'name' },
    { sortBy: 'name', limit: '2' },
    { sortBy: 'name', limit: '0' },
    { sortBy: 'name', offset: '3' },
  ]) {
    const expected = JSON.stringify(await rootOf({ app: pooled }).find(CITY, query))
    for (let run = 0; run < 2; run++)
      expect(JSON.stringify(await rootOf({ app }).find(CITY, query))).toBe(expected)
  }
})

describe('a small table that grows', () => {
  /** The total of a search after the growth, and the number of records that the guarded statement has read. */
  const grow = async (change: (app: App) => App) => {
    await fill(['Oslo', 'Vigo'])
    const { app, results } = observe(service.app)
    const records = rootOf({ app: change(app) })
    await records.find(CITY, SORTED)
    for (let index = 0; index < 5; index++) await records.create(CITY, { name: `n${index}` })
    results.length = 0
    const { total } = await records.find(CITY, SORTED)
    return { total, read: results[0]?.[0]?.['$total'] }
  }

  test('is not scanned by a statement for its former size, and all its records are counted', async () => {
    expect(await grow((app) => app)).toEqual({ total: 7, read: 0 })
  })

  test('a mutant that scans it is caught', async () => {
    expect(await grow(scanningGrownTables)).toEqual({ total: 7, read: 5 })
  })

  test('a mutant that believes in the former size is caught', async () => {
    expect((await grow(trustingKnownSizes)).total).toBe(0)
  })
})

describe('equal searches', () => {
  const query = { filter: `name != 'x'`, sortBy: 'name' }
  const permissionFor = (country: string) => ({
    model: CITY,
    canRead: true,
    condition: `country = '${country}'`,
  })

  const searchAsBoth = async (change: (app: App) => App) => {
    await fill(['Oslo', 'Vigo'])
    const app = change(service.app)
    const limited = await grantee(service, [permissionFor('Norway')])
    const seen = [namesOf(await rootOf({ app }).find(CITY, query))]
    const records = await enterAs(app, limited.username)
    seen.push(namesOf(await records.find(CITY, query)))
    await permit(service, limited, [permissionFor('Spain')])
    seen.push(namesOf(await records.find(CITY, query)))
    return seen
  }

  test('of users with different permissions find what each of them may see, also after a change of permissions', async () => {
    expect(await searchAsBoth((app) => app)).toEqual([['Oslo', 'Vigo'], ['Oslo'], ['Vigo']])
  })

  test('a mutant that shares plans between users is caught', async () => {
    expect(await searchAsBoth(sharingPlans)).not.toEqual([['Oslo', 'Vigo'], ['Oslo'], ['Vigo']])
  })

  test('have different plans if their parameters differ in any way', async () => {
    await fill(['Oslo', 'Vigo'])
    const root = rootOf(service)
    for (const [name, expected] of [
      ['Oslo', ['Oslo']],
      ['Vigo', ['Vigo']],
    ] as const)
      expect(namesOf(await root.find(CITY, { filter: `name = '${name}'` }))).toEqual(expected)
    expect(namesOf(await root.find(CITY, { q: 'oslo' }))).toEqual(['Oslo'])
    await expect(root.find(CITY, { filter: 'oslo' })).rejects.toThrow('filter')
  })

  test('are still right after more different searches than plans are kept', async () => {
    await fill(['Oslo', 'Vigo'])
    const root = rootOf(service)
    for (let index = 0; index <= MAX_CACHED_PLANS; index++)
      await root.find(CITY, { filter: `name = 'n${index}'`, limit: '1' })
    expect(namesOf(await root.find(CITY, query))).toEqual(['Oslo', 'Vigo'])
  })
})
