// Mutants of the counters. Each omits one thing, and the tests of totals must catch it.
import type { Model } from '../../src/model/definition/model.js'
import type { App } from '../../src/service/context/app.js'
import { COUNT_TABLE, VALUE_COUNT_TABLE } from '../../src/store/counters/counted-fields.js'
import type { Database, SqlValue, Transaction } from '../../src/store/engine/database.js'
import { Tables } from '../../src/store/sql/table.js'
import { faceOf, withoutLogLock } from './records.js'
import { unsharedTransaction } from '../queryables.js'

type Params = readonly SqlValue[]
type Statement = (tx: Transaction, sql: string, params: Params) => Promise<number>

const isRaise = (sql: string) =>
  [COUNT_TABLE, VALUE_COUNT_TABLE].some((table) => sql.startsWith(`insert into ${table} (`)) &&
  sql.includes('n + excluded.n')

/** Every counter of one row: its key and the step. */
function rowsIn(params: Params): Params[] {
  return Array.from({ length: params.length / 4 }, (_, index) => params.slice(index * 4, index * 4 + 4))
}

function raisingBy(db: Database, raise: Statement): Database {
  const mutant = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
      run: (sql, params = []) => (isRaise(sql) ? raise(tx, sql, params) : tx.run(sql, params)),
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(mutant(tx)), options) }
}

/** Does not subtract deleted records. */
export function withoutDeletes(db: Database): Database {
  return raisingBy(db, async (tx, sql, params) => {
    const isLower = rowsIn(params).every(([, , , step]) => Number(step) < 0)
    return isLower ? 0 : tx.run(sql, params)
  })
}

/** Counters change outside of the transaction, which may still roll back. */
export function countingApart(db: Database): Database {
  const owed = new Set<Promise<unknown>>()
  const mutant = raisingBy(db, async (_tx, sql, params) => {
    owed.add(db.transaction((apart) => apart.run(sql, params)).catch(() => undefined))
    return 0
  })
  return {
    ...mutant,
    close: async () => {
      await Promise.all(owed)
      await db.close()
    },
  }
}

/** Reads a counter and writes it with one more, without a lock, so a concurrent update is lost. */
export function readThenWrite(db: Database): Database {
  return raisingBy(withoutLogLock(db), async (tx, sql, params) => {
    const [table, columns] = sql.startsWith(`insert into ${COUNT_TABLE} `)
      ? [COUNT_TABLE, ['model', 'level', 'block']]
      : [VALUE_COUNT_TABLE, ['model', 'field', 'value']]
    const where = columns.map((name) => `${name} = ?`).join(' and ')
    for (const [first = null, second = null, third = null, step] of rowsIn(params)) {
      const key = [first, second, third]
      const [row] = await db.reader.all(`select n from ${table} where ${where}`, key)
      await tx.run(
        `insert into ${table} (${columns.join(', ')}, n) values (?, ?, ?, ?) ` +
          `on conflict (${columns.join(', ')}) do update set n = excluded.n`,
        [...key, Number(row?.['n'] ?? 0) + Number(step)],
      )
    }
    return 1
  })
}

/** Counts archived records like others. */
export function ignoringArchived(app: App): App {
  return withModels(app, { archived: { value: false } })
}

/** Takes an update of a counted field for one that changes no counter. */
export function ignoringUpdatedValues(app: App): App {
  return withModels(app, { counterFields: { value: new Set(['archived']) } })
}

/** The counters see each model with other properties. */
function withModels(app: App, properties: PropertyDescriptorMap): App {
  const mutate = (model: Model | undefined) => model && (Object.create(model, properties) as Model)
  const catalog = new Proxy(app.catalog, {
    get: (target, name) => {
      if (name === 'find') return (model: string) => mutate(target.find(model))
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return { ...app, tables: new Tables(app.db.dialect, catalog) }
}
