// Evaluates criteria against values that are not stored, for example those of a former version. The values replace the row of the record;
// related records are read as they are.
import type { Criteria } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import { isReference } from '../../model/definition/model.js'
import { ID_FIELD, VERSION_FIELD } from '../../model/query/path.js'
import type { Values } from '../../model/values/value.js'
import { encodeValue } from '../sql/column.js'
import { SqlScope } from '../sql/criteria.js'
import type { JsonColumn } from '../engine/columns.js'
import type { Dialect, Queryable, SqlValue } from '../engine/database.js'
import type { Table } from '../sql/table.js'

export interface CandidateRecord {
  readonly id: number
  readonly version: number
  readonly values: Values
}

const EVALUATE_BATCH_RECORDS = 500
/** The limit for one statement, unless a single candidate is larger. */
const EVALUATE_BATCH_CHARACTERS = 4_000_000

/** For each candidate, the result of each of the criteria. */
export async function evaluateAgainstValues(
  db: Queryable,
  { dialect }: Table,
  candidates: readonly CandidateRecord[],
  criteria: readonly Criteria[],
): Promise<boolean[][]> {
  const fields = [...new Set(criteria.flatMap(findOwnFields))].filter(
    (field) => field !== ID_FIELD && field !== VERSION_FIELD,
  )
  const scope = new SqlScope(dialect)
  const columns = criteria.map(
    (each, index) => `, case when ${scope.compilePermission(each)} then 1 else 0 end as "c${index}"`,
  )
  const { sql, params } = scope.render(columns.join(''))
  const from = dialect.json.recordset([ORDINAL_COLUMN, ...buildValueColumns(fields)])
  const statement = `select t."$number" as "number"${sql} from (${from}) as t order by t."$number"`
  const results: boolean[][] = []
  for (let start = 0; start < candidates.length; start = results.length) {
    const rows: string[] = []
    for (let size = 0; rows.length < EVALUATE_BATCH_RECORDS && size < EVALUATE_BATCH_CHARACTERS;) {
      const candidate = candidates[start + rows.length]
      if (!candidate) break
      const row = JSON.stringify([rows.length, ...encodeCandidateRow(dialect, fields, candidate)])
      rows.push(row)
      size += row.length
    }
    for (const row of await db.all(statement, [...params, `[${rows.join(',')}]`]))
      results.push(criteria.map((_, index) => row[`c${index}`] === 1))
  }
  return results
}

const ORDINAL_COLUMN: JsonColumn = { name: '$number', storage: 'integer' }

/** The columns of rows made of values; `encodeCandidateRow` fills them. */
export function buildValueColumns(fields: readonly Field[]): JsonColumn[] {
  const own = fields.flatMap((field) => {
    const storage = getStorage(field)
    return storage === 'none' || storage === 'file' ? [] : [{ name: field.name, storage }]
  })
  return [{ name: 'id', storage: 'integer' }, { name: 'version', storage: 'integer' }, ...own]
}

export function encodeCandidateRow(
  dialect: Dialect,
  fields: readonly Field[],
  { id, version, values }: CandidateRecord,
): SqlValue[] {
  const stored = fields.filter((field) => !['none', 'file'].includes(getStorage(field)))
  return [id, version, ...stored.map((field) => encodeValue(dialect, field, values[field.name] ?? null))]
}

/** The fields of the record itself that the criteria read, including lists. */
export function findOwnFields(criteria: Criteria): Field[] {
  if (criteria.kind !== 'comparison') return [criteria.criteria].flat().flatMap(findOwnFields)
  const { steps, field, otherField, mask } = criteria
  const [step] = steps
  const masks = [step ? step.mask : mask].flatMap((each) => (each ? findOwnFields(each) : []))
  if (!step) return [field, ...(otherField ? [otherField] : []), ...masks]
  return isReference(step.field) || step.field.relation?.isList ? [step.field, ...masks] : masks
}
