// Records of the past, over many versions and with large Changes.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Values } from '../../src/model/values/value.js'
import type { Queryable } from '../../src/store/engine/database.js'
import { appendChanges, type NewChange } from '../../src/store/log/log.js'
import { rewindValues } from '../../src/store/log/timeline.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { unshared } from '../queryables.js'

const MODEL = 'test.Everything'
const LONG = 2_500

onEveryEngine((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  const log = (id: number, versions: number, valueOf: (version: number) => string | number, name: string) => {
    const changes = Array.from({ length: versions }, (_, index): NewChange => ({
      ...{ model: MODEL, id, version: index + 1, action: 'update', userId: null, atMs: 0 },
      changes: { [name]: { before: valueOf(index), after: valueOf(index + 1) } },
    }))
    return service.app.db.transaction((tx) => appendChanges(tx, service.app.tables, changes))
  }
  const at = (
    id: number,
    now: { version: number; values: Values },
    version: number,
    db: Queryable = service.app.db.reader,
  ) => rewindValues(db, service.app.tables.of(service.app.catalog.get(MODEL)), { id, ...now }, version)

  test('a record is known at each of thousands of versions', async () => {
    await log(1_001, LONG, (version) => version, 'whole')
    const now = { version: LONG, values: { whole: LONG, label: 'l' } }
    for (const version of [0, 1, 499, 500, 1_499, 1_500, 1_501, LONG - 1, LONG])
      expect(await at(1_001, now, version)).toEqual({ whole: version, label: 'l' })
    expect(await at(1_001, now, LONG + 1)).toBeUndefined()
    expect(await at(1_001, { version: 20_000, values: {} }, 0)).toBeUndefined()
  })

  test('a record is unknown before a missing or purged Change', async () => {
    await log(1_002, 1_200, (version) => version, 'whole')
    const now = { version: 1_200, values: { whole: 1_200 } }
    const change = (sql: string) => service.app.db.transaction((tx) => tx.run(sql, [MODEL]))
    const where = 'where model = ? and record = 1002 and version ='
    await change(`update verso_log set purged = 1 ${where} 50`)
    await change(`delete from verso_log ${where} 10`)
    expect(await at(1_002, now, 50)).toEqual({ whole: 50 })
    expect(await at(1_002, now, 49)).toBeUndefined()
    expect(await at(1_002, now, 0)).toBeUndefined()
  })

  test('large Changes are read a few at a time', async () => {
    const text = (version: number) => String(version).padEnd(1_000_000, 'x')
    await log(1_003, 12, text, 'note')
    const { reader } = service.app.db
    const pages: number[] = []
    const counting: Queryable = unshared({
      all: async (sql, params) => {
        const rows = await reader.all(sql, params)
        pages.push(rows.length)
        return rows
      },
    })
    const past = await at(1_003, { version: 12, values: { note: text(12) } }, 0, counting)
    expect(past?.['note']).toBe(text(0))
    expect(Math.max(...pages)).toBeLessThanOrEqual(4)
  })
})
