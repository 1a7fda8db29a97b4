// JSON text made by the database equals that of `JSON.stringify`, character by character.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { selectFullRecord, selectListFields } from '../../src/model/query/selection.js'
import { parseFindQuery, type FindQuery, type Search } from '../../src/model/query/search.js'
import type { Value, Values } from '../../src/model/values/value.js'
import type { Dialect } from '../../src/store/engine/database.js'
import { findPage } from '../../src/store/find/pages.js'
import { findById, readById } from '../../src/store/records/records.js'
import { insertRows } from '../../src/store/records/write.js'
import { appendChanges } from '../../src/store/log/log.js'
import type { FoundPage, PageFacts } from '../../src/store/sql/found.js'
import { compileSelection, type Select } from '../../src/store/sql/select.js'
import type { Table } from '../../src/store/sql/table.js'
import { onEveryEngine, startService, type Service } from '../targets.js'

const RUNS = 60
/** Each run reads the page of its record, and every third of the other pages: the next runs read the others. */
const TURNS = 3
/** More than three records take, and less than they might take by their declared lengths: such a page is measured first. */
const LARGE_PAGE_BYTES = 100_000
/** Other than the default order, with and without parameters, over a relation, and with an offset. */
const OTHER_QUERIES: readonly FindQuery[] = [
  { sortBy: 'label' },
  { sortBy: '-whole,moment', filter: 'active = true' },
  { sortBy: 'owner.name', archived: 'true' },
  { filter: "state = 'draft' or owner.name = 'Ada'" },
  { filter: 'whole > 0', offset: 2 },
  { sortBy: '-label', offset: 2 },
]

const Owner = defineModel({
  name: 'print.Owner',
  fields: { name: { type: 'string' } },
})
const Printed = defineModel({
  name: 'print.Printed',
  fields: {
    label: { type: 'string' },
    note: { type: 'text' },
    whole: { type: 'integer' },
    big: { type: 'long' },
    active: { type: 'boolean' },
    day: { type: 'date' },
    at: { type: 'time' },
    moment: { type: 'datetime' },
    token: { type: 'uuid' },
    state: { type: 'enum', selection: ['draft', 'sent'] },
    owner: { type: 'many-to-one', target: 'print.Owner' },
    second: { type: 'one-to-one', target: 'print.Owner' },
  },
  archived: true,
})
const models = [Owner, Printed].map((definition) => ({ file: 'print.ts', definition }))

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }).filter((text) => !text.includes('\0')),
  fc.string({
    unit: fc.constantFrom(
      ...Array.from('\u0001\u0007\b\t\n\u000b\f\r\u001f\u007f"\\/\u2028\u2029\uFEFF<é😀?'),
    ),
    maxLength: 12,
  }),
  fc.constantFrom('', 'null', '{"a":1}', '[]', '1', '0', '1e9', 'true'),
)
const dates = fc.date({
  min: new Date('0001-01-02T00:00:00Z'),
  max: new Date('9999-12-30T00:00:00Z'),
  noInvalidDate: true,
})
const orNull = (value: fc.Arbitrary<Value>) => fc.oneof({ weight: 4, arbitrary: value }, fc.constant(null))
const records = fc.record({
  label: orNull(texts),
  note: orNull(texts),
  whole: orNull(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
  big: orNull(fc.maxSafeInteger()),
  active: orNull(fc.boolean()),
  day: orNull(dates.map((date) => date.toISOString().slice(0, 10))),
  at: orNull(dates.map((date) => date.toISOString().slice(11, 19))),
  moment: orNull(dates.map((date) => date.toISOString())),
  token: orNull(fc.uuid()),
  state: orNull(fc.constantFrom('draft', 'sent')),
  owner: orNull(fc.constantFrom({ id: 1 }, { id: 2 }, { id: 3 })),
  second: orNull(fc.constantFrom({ id: 2 })),
  archived: fc.boolean(),
  createdOn: dates.map((date) => date.toISOString()),
  createdBy: orNull(fc.constant({ id: 1 })),
})

/** A select whose records the service decodes from rows. */
function withoutJson(select: Select): Select {
  const { dialect, upToId, byId, params, columns, hasRelatedConditions, maxBytes, sizeSql } = select
  return {
    ...{ dialect, upToId, byId, params, columns, hasRelatedConditions, maxBytes, sizeSql },
    toRecord: (row) => select.toRecord(row),
    json: undefined,
    defaultPages: new Map(),
  }
}

onEveryEngine((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine, { models })
    const { app } = service
    const table = app.tables.of(app.catalog.get('print.Owner'))
    const names = ['Ada', 'a "name"\n', null]
    await store(
      names.map((name) => ({ name })),
      table,
    )
  })
  afterAll(async () => {
    await service.close()
  })

  /** Stores records with their Changes. */
  const store = async (rows: readonly Values[], table: Table, before?: string): Promise<number[]> =>
    service.app.db.transaction(async (tx) => {
      if (before !== undefined) await tx.run(before)
      const ids = await insertRows(tx, table, rows)
      const changes = ids.map((id, index) => ({
        ...{ model: table.model.name, id, version: 0, action: 'create' as const, userId: null, atMs: 0 },
        changes: Object.fromEntries(
          Object.entries(rows[index] ?? {}).map(([name, after]) => [name, { before: null, after }]),
        ),
      }))
      await appendChanges(tx, service.app.tables, changes)
      return ids
    })

  /** Compares a page whose JSON text the database makes with one that the service decodes from rows. */
  const comparePages = async (table: Table, select: Select, search: Search): Promise<FoundPage> => {
    const { reader } = service.app.db
    const rows = await findPage(reader, table, search, { list: withoutJson(select) })
    const text = rows.records.map((record) => JSON.stringify(record)).join()
    const factsOf = ({ total, seq, nextCursor }: PageFacts) => ({ total, seq, nextCursor })
    for (const maxBytes of [Infinity, LARGE_PAGE_BYTES]) {
      const page = await findPage(reader, table, search, { list: select, maxBytes })
      expect(page && Buffer.from(page.json).toString()).toBe(text)
      expect(page?.records).toEqual(rows.records)
      expect(page && factsOf(page)).toEqual(factsOf(rows))
    }
    expect(Buffer.from(rows.json).toString()).toBe(text)
    return rows
  }

  /** Compares the JSON text of random records with `JSON.stringify`. */
  const compare = async (dialect: Dialect): Promise<void> => {
    const { app } = service
    const model = app.catalog.get('print.Printed')
    const table = app.tables.of(model)
    const selects = [selectFullRecord, selectListFields].map((select) =>
      compileSelection(dialect, select(app.catalog, model)),
    )
    expect(selects.map(({ json }) => json !== undefined)).toEqual([true, true])
    let runs = 0
    await fc.assert(
      fc.asyncProperty(records, async (values) => {
        const turn = runs++
        const isInTurn = (_: unknown, index: number) => (index + turn) % TURNS === 0
        // The inverse of a one-to-one is one record.
        const [id = 0] = await store([values], table, `update ${table.name} set "second" = null`)
        for (const select of selects) {
          for (const offset of [id - 1, ...[0, 300].filter(isInTurn)]) {
            const search = parseFindQuery(app.catalog, model, { offset, limit: 3 }, 3)
            await comparePages(table, select, search)
            await comparePages(table, select, { ...search, after: { values: [], id: offset } })
          }
          for (const query of OTHER_QUERIES.filter(isInTurn)) {
            const search = parseFindQuery(app.catalog, model, { limit: 3, ...query }, 3)
            const { nextCursor } = await comparePages(table, select, search)
            if (nextCursor) await comparePages(table, select, { ...search, after: nextCursor })
          }
          const [row] = await app.db.reader.all(select.byId, [...select.params, id])
          const record = row && select.toRecord(row)
          for (const each of [select, withoutJson(select)]) {
            const found = await findById(app.db.reader, table, id, { select: each })
            expect(found).toMatchObject({ version: 0, json: JSON.stringify(record), record })
          }
          for (const prefersJsonText of [true, false]) {
            const engine = { ...table, dialect: { ...dialect, prefersJsonText } }
            expect(await readById(app.db.reader, engine, id, { select })).toEqual(record)
          }
          const { sql, params } = select.sizeSql.jsonBytes
          const weigh = `select ${sql} as "bytes" from ${table.name} as t where t."id" = ?`
          const [weighed] = await app.db.reader.all(weigh, [...params, id])
          expect(Number(weighed?.['bytes'])).toBeGreaterThanOrEqual(Buffer.byteLength(JSON.stringify(record)))
        }
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
  }

  test('the database prints values of every type as JSON.stringify does', async () => {
    await compare(service.app.db.dialect)
  })

  test.for<[string, Partial<Dialect['toJson']>]>([
    ['texts without escapes', { text: (column) => `coalesce('"' || ${column} || '"', 'null')` }],
    ['booleans as stored numbers', { boolean: (column) => `coalesce(cast(${column} as text), '0')` }],
    ['nothing for null', { date: (column) => `coalesce('"' || ${column} || '"', '')` }],
  ])('a mutant that prints %s is caught', async ([, broken]) => {
    const { dialect } = service.app.db
    await expect(compare({ ...dialect, toJson: { ...dialect.toJson, ...broken } })).rejects.toThrow()
  })
})
