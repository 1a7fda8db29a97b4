// The sizes of tables, measured when a search needs them. A measurement counts until the Log has another Change, of this process or of another
// one, and at most for SIZE_LIFETIME_MS.
import type { Model } from '../../model/definition/model.js'
import type { Queryable } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import { readLastSeq } from '../log/feed.js'
import { computeMaxRowBytes, hasVariableLength } from '../sql/byte-size.js'
import type { Table, Tables } from '../sql/table.js'
import { compileTotal } from './default-page-sql.js'

/** An upper bound for the size of a table. */
export interface TableSize {
  /** Infinity if the table has more than MAX_MEASURED_ROWS. */
  readonly rows: number
  readonly bytes: number
  /** The largest row. The fields of the model bound it in a table of any size. */
  readonly maxRowBytes: number
}

/** The sizes of tables at one point of the Log. */
export interface MeasuredSizes {
  readonly sizes: ReadonlyMap<Model, TableSize>
  /** The last Change before the measurements. */
  readonly seq: number
}

/** Larger tables are not measured, because that would take as long as a short search. */
export const MAX_MEASURED_ROWS = 1_000
/**
 * A schema change of another process fills columns without a Change, so a measurement counts at most for this time. A table that was too large
 * is not measured again for this time, although records may have been deleted.
 */
const SIZE_LIFETIME_MS = 1_000
/** The columns of fixed length together. */
const FIXED_ROW_BYTES = 128

interface Measurement {
  readonly size: TableSize
  /** The last Change before the measurement. */
  readonly seq: number
  readonly expires: number
}

export class TableSizes {
  readonly #measurements = new Map<Model, Measurement>()

  constructor(
    private readonly db: Queryable,
    private readonly tables: Tables,
    /** Milliseconds of a monotonic clock. */
    private readonly elapsed: () => number,
  ) {}

  /** True if the table was too large a short time ago. Costs no statement. */
  isKnownLarge(model: Model): boolean {
    const known = this.#measurements.get(model)
    return known !== undefined && known.size.rows === Infinity && this.elapsed() < known.expires
  }

  /** The sizes that are known without a statement. The caller must find out if `seq` is still the last Change. */
  findMeasured(models: ReadonlySet<Model>): MeasuredSizes | undefined {
    const sizes = new Map<Model, TableSize>()
    const now = this.elapsed()
    let seq: number | undefined
    for (const model of models) {
      const known = this.#measurements.get(model)
      if (!known || now >= known.expires || known.seq !== (seq ??= known.seq)) return undefined
      sizes.set(model, known.size)
    }
    return seq === undefined ? undefined : { sizes, seq }
  }

  /** Reads the sizes of the tables of these models. */
  async read(models: ReadonlySet<Model>): Promise<ReadonlyMap<Model, TableSize>> {
    const sizes = new Map<Model, TableSize>()
    // Before the measurements: a Change that is committed meanwhile makes them expire.
    const seq = await readLastSeq(this.db)
    for (const model of models) sizes.set(model, await this.#readSize(model, seq))
    return sizes
  }

  async #readSize(model: Model, seq: number): Promise<TableSize> {
    const known = this.#measurements.get(model)
    const isCurrent = known && this.elapsed() < known.expires
    if (isCurrent && (known.seq === seq || known.size.rows === Infinity)) return known.size
    const size = await measureTable(this.db, this.tables.of(model))
    this.#measurements.set(model, { size, seq, expires: this.elapsed() + SIZE_LIFETIME_MS })
    return size
  }
}

/** The database knows the length of a text without reading it, and scans at most MAX_MEASURED_ROWS. */
async function measureTable(db: Queryable, table: Table): Promise<TableSize> {
  const large = { rows: Infinity, bytes: Infinity, maxRowBytes: computeMaxRowBytes(table.storedFields) }
  // The total has no archived records, so a low one does not suffice.
  const [counted] = await db.all(`select ${compileTotal(table.model)} as "total"`)
  if (Number(counted?.['total']) > MAX_MEASURED_ROWS) return large
  const lengths = table.storedFields
    .filter(hasVariableLength)
    .map(({ name }) => ` + coalesce(octet_length(t.${quoteIdentifier(name)}), 0)`)
  const rows = `select ${FIXED_ROW_BYTES}${lengths.join('')} as "bytes" from ${table.name} as t limit ${MAX_MEASURED_ROWS + 1}`
  const [measured] = await db.all(
    `select count(*) as "rows", coalesce(sum("bytes"), 0) as "bytes", coalesce(max("bytes"), 0) as "max" from (${rows}) as "some"`,
  )
  if (Number(measured?.['rows']) > MAX_MEASURED_ROWS) return large
  return {
    rows: Number(measured?.['rows']),
    bytes: Number(measured?.['bytes']),
    maxRowBytes: Number(measured?.['max']),
  }
}
