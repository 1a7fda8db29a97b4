// Reads a table of a backup page by page as JSON text, which is equal on both engines.
import type { Dialect, Queryable, Row, SqlValue } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import { OMITTED_ROWS, type BackupColumn, type BackupTable } from './backup-tables.js'

/** A larger row is a page of its own. PostgreSQL reads a page with normal priority, so one of this size delays other queries by at most a few milliseconds. */
const PAGE_BYTES = 32 * 1024
const FIRST_PAGE_ROWS = 200
const MAX_PAGE_ROWS = 5_000
/** Engines limit the arguments of a function. */
const MAX_ARGUMENTS = 60
/** The bytes of a short value, roughly. */
const SHORT_BYTES = 12

export interface TablePage {
  /** JSON arrays with the values in the order of the columns, separated by commas. */
  readonly text: string | Uint8Array
  readonly rows: number
}

/** Reads the next page while the consumer uses the current one, after `beforeRead`. Everything must be read from one snapshot. */
export async function* readTablePages(
  db: Queryable,
  dialect: Dialect,
  table: BackupTable,
  beforeRead: () => Promise<void> = () => Promise.resolve(),
): AsyncGenerator<TablePage> {
  const reader = new TableReader(db, dialect, table)
  let next: Promise<TablePage | undefined> | undefined = reader.readNext()
  for (;;) {
    const page = await next
    if (!page) return
    next = beforeRead().then(() => reader.readNext())
    // A consumer that stops here never awaits the next page.
    next.catch(() => undefined)
    yield page
  }
}

class TableReader {
  readonly #table: string
  readonly #keys: readonly string[]
  #after: readonly SqlValue[] | undefined
  #limit = FIRST_PAGE_ROWS

  constructor(
    private readonly db: Queryable,
    private readonly dialect: Dialect,
    private readonly table: BackupTable,
  ) {
    this.#table = `${quoteIdentifier(table.name)} as t`
    this.#keys = table.key.map((name) => `t.${quoteIdentifier(name)}`)
  }

  async readNext(): Promise<TablePage | undefined> {
    const last = await this.#findLast()
    if (!last) return undefined
    const end = this.table.key.map((_, index) => last[`k${index}`] ?? null)
    const rows = Number(last['n'])
    const { where, params } = this.#buildWhere(end)
    const order = this.#keys.join(', ')
    const select =
      `select ${joinTexts(this.table.columns.map((column) => compileJson(this.dialect, column)))} as "text", ` +
      `${this.#keys.map((key, index) => `${key} as "k${index}"`).join(', ')} from ${this.#table}${where} order by ${order}`
    const keys = this.#keys.map((_, index) => `"page"."k${index}"`).join(', ')
    const [row] = await this.db.all(
      `select ${this.dialect.joinJson('"page"."text"', keys)} as "text" from (${select}) as "page"`,
      params,
    )
    this.#after = end
    this.#limit = Math.min(MAX_PAGE_ROWS, Math.max(FIRST_PAGE_ROWS, rows * 2))
    return { text: row?.['text'] as string | Uint8Array, rows }
  }

  /** Finds the key of the last row of the next page, and the number of its rows. The engines know the length of a text without reading it. */
  async #findLast(): Promise<Row | undefined> {
    const { where, params } = this.#buildWhere()
    const order = this.#keys.map((_, index) => `"k${index}"`).join(', ')
    const sizes = this.table.columns.map((column) => compileSize(this.dialect, column))
    const some =
      `select ${this.#keys.map((key, index) => `${key} as "k${index}"`).join(', ')}, ${sizes.join(' + ')} as "size" ` +
      `from ${this.#table}${where} order by ${this.#keys.join(', ')} limit ${this.#limit}`
    const numbered =
      `select ${order}, row_number() over (order by ${order}) as "n", ` +
      `sum("size") over (order by ${order}) - "size" as "before" from (${some}) as "some"`
    const [row] = await this.db.all(
      `select * from (${numbered}) as "numbered" where "before" < ${PAGE_BYTES} order by "n" desc limit 1`,
      params,
    )
    return row
  }

  #buildWhere(end?: readonly SqlValue[]): { where: string; params: readonly SqlValue[] } {
    const keys = `(${this.#keys.join(', ')})`
    const marks = `(${this.#keys.map(() => '?').join(', ')})`
    const omitted = OMITTED_ROWS[this.table.name]
    const conditions = [
      ...(this.#after ? [`${keys} > ${marks}`] : []),
      ...(end ? [`${keys} <= ${marks}`] : []),
      ...(omitted === undefined ? [] : [omitted]),
    ]
    const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
    return { where, params: [...(this.#after ?? []), ...(end ?? [])] }
  }
}

/** A JSON array of these texts. */
function joinTexts(values: readonly string[]): string {
  const parts = values.flatMap((value, index) => [index === 0 ? `'['` : `','`, value])
  return concatenate([...parts, `']'`])
}

function concatenate(parts: readonly string[]): string {
  if (parts.length <= MAX_ARGUMENTS) return `concat(${parts.join(', ')})`
  const groups: string[] = []
  for (let start = 0; start < parts.length; start += MAX_ARGUMENTS)
    groups.push(concatenate(parts.slice(start, start + MAX_ARGUMENTS)))
  return concatenate(groups)
}

/** A value as JSON. JSON columns are strings that contain JSON. */
function compileJson(dialect: Dialect, { name, storage, scale = 0 }: BackupColumn): string {
  const column = `t.${quoteIdentifier(name)}`
  const { toJson, decimalText } = dialect
  const compile = storage === 'file' ? toJson.integer : (toJson[storage] ?? toJson.text)
  if (!compile) throw new Error(`the engine has no JSON text for ${storage}`)
  return compile(storage === 'decimal' ? decimalText(column, scale) : column)
}

function compileSize({ json }: Dialect, { name, storage }: BackupColumn): string {
  const column = `t.${quoteIdentifier(name)}`
  if (storage !== 'text' && storage !== 'json') return String(SHORT_BYTES)
  return `coalesce(octet_length(${json.value(column, storage)}), 4)`
}

/** Returns the last id that the table has generated; 0 if none. */
export async function readLastId(db: Queryable, dialect: Dialect, table: BackupTable): Promise<number> {
  if (table.identity === undefined) return 0
  const [row] = await db.all(dialect.lastId(table.name, table.identity))
  return Number(row?.['last'] ?? 0)
}
