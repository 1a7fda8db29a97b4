// Writes of lists give the same rows, ids, results and errors as writes of one row after the other.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Value, Values } from '../../src/model/values/value.js'
import type { Row, Transaction } from '../../src/store/engine/database.js'
import { rebuildCounters } from '../../src/service/maintenance/counters.js'
import { NotUniqueError } from '../../src/store/records/not-unique.js'
import * as store from '../../src/store/records/records.js'
import { insertRows, updateRows, deleteRows } from '../../src/store/records/write.js'
import type { Table } from '../../src/store/sql/table.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { unsharedTransaction } from '../queryables.js'

const FIELDS = {
  label: { type: 'string' },
  note: { type: 'text' },
  whole: { type: 'integer' },
  big: { type: 'long' },
  price: { type: 'decimal', precision: 20, scale: 4 },
  active: { type: 'boolean' },
  day: { type: 'date' },
  at: { type: 'time' },
  moment: { type: 'datetime' },
  token: { type: 'uuid' },
  state: { type: 'enum', selection: ['draft', 'sent'] },
  extra: { type: 'json' },
  first: { type: 'many-to-one', target: 'list.Target' },
} as const
const Target = defineModel({ name: 'list.Target', fields: { name: { type: 'string' } } })
const List = defineModel({ name: 'list.List', fields: FIELDS })
const Single = defineModel({ name: 'list.Single', fields: FIELDS })
const Unique = defineModel({
  name: 'list.Unique',
  fields: {
    code: { type: 'string', unique: true },
    name: { type: 'string', unique: true },
    n: { type: 'integer' },
  },
})
const models = [Target, List, Single, Unique].map((definition) => ({ file: 'list.ts', definition }))

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }).filter((text) => !text.includes('\0')),
  fc.constantFrom('', 'null', 'NULL', '{}', '{"a":1}', '"', '\\', 'a\tb\n\u0001', ',', ' ', '?', '?1'),
)
const dates = fc.date({
  min: new Date('0001-01-02T00:00:00Z'),
  max: new Date('9999-12-30T00:00:00Z'),
  noInvalidDate: true,
})
const orNull = (value: fc.Arbitrary<Value>) => fc.oneof({ weight: 4, arbitrary: value }, fc.constant(null))
const VALUES: Readonly<Record<keyof typeof FIELDS, fc.Arbitrary<Value>>> = {
  label: orNull(texts),
  note: orNull(texts),
  whole: orNull(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
  big: orNull(fc.maxSafeInteger()),
  price: orNull(fc.integer().map((cents) => (cents / 100).toFixed(4))),
  active: orNull(fc.boolean()),
  day: orNull(dates.map((date) => date.toISOString().slice(0, 10))),
  at: orNull(dates.map((date) => date.toISOString().slice(11, 19))),
  moment: orNull(dates.map((date) => date.toISOString())),
  token: orNull(fc.uuid()),
  state: orNull(fc.constantFrom('draft', 'sent')),
  extra: orNull(fc.constantFrom({}, [], 'text', 0, { b: [1.5, null, 'é"\\'], a: true }, 1e21)),
  first: orNull(fc.constantFrom({ id: 1 }, { id: 2 })),
}
const rows = fc.record<Values>(VALUES)
const changes = fc.record<Values>(VALUES, { requiredKeys: [] })
// Sizes around those of the statements, with repeated shapes of changes.
const sizes = fc.constantFrom(0, 1, 2, 5, 24, 30, 64, 100)
const work = sizes.chain((size) =>
  fc.record({
    inserted: fc.array(rows, { minLength: size, maxLength: size }),
    shapes: fc.array(changes, { minLength: 1, maxLength: 2 }),
    /** The shape of each update and how far its expected version is off. */
    updates: fc.array(fc.tuple(fc.nat(1), fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 1)), {
      minLength: size,
      maxLength: size,
    }),
    isTwice: fc.boolean(),
    removals: fc.array(fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1), { minLength: size, maxLength: size }),
  }),
)
type Work = typeof work extends fc.Arbitrary<infer W> ? W : never

/** What the writes of a list, or those of its rows one by one, have returned and stored. */
interface Outcome {
  readonly offsets: readonly number[]
  readonly updated: readonly boolean[]
  readonly deleted: readonly boolean[]
  readonly stored: readonly Row[]
}

type WriteAll = <I, O>(inputs: readonly I[], write: (some: readonly I[]) => Promise<O[]>) => Promise<O[]>
const asList: WriteAll = (inputs, write) => write(inputs)
const oneByOne: WriteAll = async (inputs, write) => {
  const outputs = []
  for (const input of inputs) outputs.push(...(await write([input])))
  return outputs
}

async function run(tx: Transaction, table: Table, todo: Work, writeAll: WriteAll): Promise<Outcome> {
  const ids = await writeAll(todo.inserted, (some) => insertRows(tx, table, some))
  const [first = 0] = ids
  const updates = ids.map((id, index) => {
    const [shape = 0, off = 0] = todo.updates[index] ?? []
    return { id, version: off, values: todo.shapes[shape % todo.shapes.length] ?? {} }
  })
  const [again] = updates
  if (again && todo.isTwice) updates.push({ ...again, version: 1 })
  const updated = await writeAll(updates, (some) => updateRows(tx, table, some))
  const removals = todo.removals.map((version, index) => ({ id: ids[index] ?? 0, version: 1 - version }))
  const deleted = await writeAll(removals, (some) => deleteRows(tx, table, some))
  const sql = `select * from ${table.name} where "id" >= ? order by "id"`
  const all = ids.length === 0 ? [] : await tx.all(sql, [first])
  const stored = all.map((row) => ({ ...row, id: Number(row['id']) - first }))
  return { offsets: ids.map((id) => id - first), updated, deleted, stored }
}

onEveryEngine((engine) => {
  let service: Service
  beforeAll(async () => {
    service = await startService(engine, { models })
    const table = service.app.tables.of(service.app.catalog.get('list.Target'))
    await service.app.db.transaction((tx) => insertRows(tx, table, [{ name: 'a' }, { name: 'b' }]))
  })
  afterAll(async () => {
    const { app } = service
    for (const model of app.catalog.storedModels) await rebuildCounters(app, model)
    await service.close()
  })

  const tableOf = (name: string) => service.app.tables.of(service.app.catalog.get(name))

  const compare = async (numRuns: number, change = (tx: Transaction): Transaction => tx): Promise<void> => {
    const { db } = service.app
    await fc.assert(
      fc.asyncProperty(work, async (todo) => {
        const write = (name: string, writeAll: WriteAll) =>
          db.transaction((tx) => run(change(tx), tableOf(name), todo, writeAll))
        expect(await write('list.List', asList)).toEqual(await write('list.Single', oneByOne))
      }),
      { numRuns, endOnFailure: true },
    )
  }

  test('a list of rows is stored, updated and deleted as the rows one by one', async () => {
    await compare(60)
  })

  describe('mutants that are caught', () => {
    const changing = (change: (sql: string) => string) => (tx: Transaction) =>
      unsharedTransaction({
        all: (sql: string, params?: readonly (string | number | null)[]) => tx.all(change(sql), params),
        run: (sql: string, params?: readonly (string | number | null)[]) => tx.run(change(sql), params),
        insert: (sql: string, params?: readonly (string | number | null)[]) => tx.insert(change(sql), params),
      })
    const withoutGuard = (sql: string) => sql.replace(/ and t\."version" = "new"\.(column2|"\$version")/, '')
    const mutants: Readonly<Record<typeof engine, Readonly<Record<string, (sql: string) => string>>>> = {
      sqlite: {
        'updates without the version guard': withoutGuard,
        'deletes without the version guard': (sql) =>
          sql.replace(/\("id", "version"\) in \(values (.*)\)$/, '"id" in (select column1 from (values $1))'),
        'partial writes that stay': (sql) =>
          sql.replace('rollback to row_list', 'delete from "list.List" where 0'),
      },
      postgres: {
        'updates and deletes without the version guard': withoutGuard,
        'ids in the wrong order': (sql) => sql.replace('select "id", "$row"', 'select "id", 3 - "$row"'),
      },
    }
    test.for(Object.entries(mutants[engine]))('%s', async ([, change]) => {
      await expect(compare(2_000, changing(change))).rejects.toThrow()
    })
  })

  test('records are read by a list of ids in its order, and with conditions', async () => {
    const table = tableOf('list.Single')
    const { db } = service.app
    const some = fc.sample(rows, 40)
    const ids = await db.transaction((tx) => insertRows(tx, table, some))
    const asked = [...ids].reverse().flatMap((id, index) => (index % 5 === 0 ? [id, 10_000_000 + id] : [id]))
    const single = []
    for (const id of asked) single.push(await store.readById(db.reader, table, id))
    expect(await store.readByIds(db.reader, table, asked)).toEqual(single)
    expect(await store.readByIds(db.reader, table, [])).toEqual([])
  })

  describe('a unique index', () => {
    const insert = (list: readonly Values[], writeAll: WriteAll) =>
      service.app.db.transaction(async (tx) => {
        const table = tableOf('list.Unique')
        await insertRows(tx, table, [{ code: 'taken', name: 'known' }])
        return writeAll(list, (some) => insertRows(tx, table, some))
      })
    const errorOf = async (written: Promise<unknown>): Promise<NotUniqueError> => {
      const error: unknown = await written.then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (!(error instanceof NotUniqueError)) throw new Error('expected a NotUniqueError', { cause: error })
      return error
    }
    const fresh = (count: number, from = 0) =>
      Array.from({ length: count }, (_, index) => ({ code: `c${from + index}`, name: `n${from + index}` }))
    const duplicates: readonly (readonly [string, readonly Values[], number])[] = [
      ['of a stored row', [...fresh(3), { code: 'taken', name: 'x' }, ...fresh(70, 3)], 3],
      ['of a row of the list', [...fresh(90), { code: 'x', name: 'n7' }, ...fresh(5, 90)], 90],
      [
        'of a stored row and of a later row',
        [
          { code: 'z', name: 'known' },
          { code: 'z', name: 'q' },
        ],
        0,
      ],
      [
        'of a stored row and of a later row',
        [
          { code: 'taken', name: 'z' },
          { code: 'q', name: 'z' },
        ],
        0,
      ],
    ]
    test.for(duplicates)(
      'the duplicate %s is reported as if rows came one by one',
      async ([, list, index]) => {
        const [whole, single] = [await errorOf(insert(list, asList)), await errorOf(insert(list, oneByOne))]
        expect([whole.message, whole.details.errors, whole.details.data, whole.index]).toEqual([
          ...[single.message, single.details.errors, single.details.data],
          index,
        ])
        const table = tableOf('list.Unique')
        expect(await service.app.db.reader.all(`select 1 from ${table.name}`)).toEqual([])
      },
    )

    test('a list of updates names the one that is not unique', async () => {
      const table = tableOf('list.Unique')
      const error = await errorOf(
        service.app.db.transaction(async (tx) => {
          const ids = await insertRows(tx, table, fresh(30))
          await updateRows(
            tx,
            table,
            ids.map((id, index) => ({ id, version: 0, values: { code: index === 20 ? 'c3' : `c${index}` } })),
          )
        }),
      )
      expect([error.index, error.message]).toEqual([
        20,
        'Another list.Unique has the same code; nothing was changed',
      ])
    })
  })
})
