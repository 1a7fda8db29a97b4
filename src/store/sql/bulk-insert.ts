// Rows of one table, in as few statements as the engine likes best, with texts that are made once.
import type { Dialect, JsonColumn, SqlValue, Transaction } from '../engine/database.js'
import { listsOf } from './many-rows.js'
import { quote } from '../engine/names.js'

/** Rows in one statement where each value has its own mark. Few sizes, so that few statements are prepared. */
const AT_ONCE = [64, 16, 4, 1] as const
/** Longer statements would not be kept, and take longer to prepare than to run. */
const MAX_MARKS = 3_000
/** Rows in one statement where each column is a list. */
const LISTED_AT_ONCE = 1_000

type Rows = readonly (readonly SqlValue[])[]
type Send = (sql: string, params: readonly SqlValue[], isLast: boolean) => unknown

export class Insertion {
  readonly #listed: string | undefined
  readonly #marked: readonly (readonly [many: number, sql: string])[]

  constructor(
    private readonly dialect: Dialect,
    /** Quoted. */
    table: string,
    private readonly columns: readonly JsonColumn[],
    /** Taken before the first row is there. */
    lock: Dialect['lockLog'] = { with: '', from: '' },
  ) {
    const names = columns.map(({ name }) => quote(name)).join(', ')
    const into = `${lock.with}insert into ${table} (${names})`
    // What is locked for has an order, too: that of the rows.
    const locked = lock.from === '' ? '' : ` where exists (select 1${lock.from}) order by "$row"`
    this.#listed =
      dialect.many && `${into} select ${names} from (${dialect.many.rows(columns)}) as "rows"${locked}`
    const marks = `(${columns.map(() => '?').join()})`
    this.#marked = AT_ONCE.filter((many) => many === 1 || many * columns.length <= MAX_MARKS).map((many) => [
      many,
      `${into} values ${Array.from({ length: many }, () => marks).join()}`,
    ])
  }

  async run(tx: Transaction, rows: Rows): Promise<void> {
    await this.send(rows, (sql, params) => tx.run(sql, params))
  }

  /** Each statement in its order, waited for. */
  async send(rows: Rows, send: Send): Promise<void> {
    const { many } = this.dialect
    for (let start = 0; start < rows.length;) {
      const left = rows.length - start
      const [size, sql] =
        this.#listed === undefined
          ? (this.#marked.find(([each]) => each <= left) ?? [1, ''])
          : [Math.min(left, LISTED_AT_ONCE), this.#listed]
      const some = rows.slice(start, start + size)
      start += size
      const params = many ? listsOf(many, this.columns.length, some) : inARow(some)
      await send(sql, params, start >= rows.length)
    }
  }
}

/** As `flat` does, many times quicker. */
function inARow(rows: Rows): SqlValue[] {
  const values: SqlValue[] = []
  for (const row of rows) for (const value of row) values.push(value)
  return values
}
