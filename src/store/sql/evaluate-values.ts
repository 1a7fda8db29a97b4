// Conditions that are asked of a record as if it held other values, those of a former version for one: they stand in the place of its
// row, and its neighbours are as they are.
import type { Criteria } from '../../model/query/criteria.js'
import { storageOf, type Field } from '../../model/values/field-types.js'
import { isReference } from '../../model/definition/model.js'
import { ID, VERSION } from '../../model/query/path.js'
import type { Values } from '../../model/values/value.js'
import { encode } from './column.js'
import { Scope } from './criteria.js'
import type { Dialect, JsonColumn, Queryable, SqlValue } from '../engine/database.js'
import type { Table } from './table.js'

export interface AsIf {
  readonly id: number
  readonly version: number
  readonly values: Values
}

const AT_ONCE = 500
/** In one statement, or one state that is larger. */
const CHARACTERS_AT_ONCE = 4_000_000

/** Which of the criteria hold for each of these. */
export async function testAsIf(
  db: Queryable,
  { dialect }: Table,
  states: readonly AsIf[],
  criteria: readonly Criteria[],
): Promise<boolean[][]> {
  const fields = [...new Set(criteria.flatMap(ownFieldsIn))].filter(
    (field) => field !== ID && field !== VERSION,
  )
  const scope = new Scope(dialect)
  const tests = criteria.map(
    (each, index) => `, case when ${scope.holds(each)} then 1 else 0 end as "c${index}"`,
  )
  const { sql, params } = scope.render(tests.join(''))
  const from = dialect.json.table([NUMBER, ...columnsFor(fields)])
  const statement = `select t."$number" as "number"${sql} from (${from}) as t order by t."$number"`
  const answers: boolean[][] = []
  for (let start = 0; start < states.length; start = answers.length) {
    const rows: string[] = []
    for (let size = 0; rows.length < AT_ONCE && size < CHARACTERS_AT_ONCE;) {
      const state = states[start + rows.length]
      if (!state) break
      const row = JSON.stringify([rows.length, ...rowOf(dialect, fields, state)])
      rows.push(row)
      size += row.length
    }
    for (const row of await db.all(statement, [...params, `[${rows.join(',')}]`]))
      answers.push(criteria.map((_, index) => row[`c${index}`] === 1))
  }
  return answers
}

const NUMBER: JsonColumn = { name: '$number', storage: 'integer' }

/** The columns of rows that are made of values; `rowOf` fills them. */
export function columnsFor(fields: readonly Field[]): JsonColumn[] {
  const own = fields.flatMap((field) => {
    const storage = storageOf(field)
    return storage === 'none' || storage === 'file' ? [] : [{ name: field.name, storage }]
  })
  return [{ name: 'id', storage: 'integer' }, { name: 'version', storage: 'integer' }, ...own]
}

export function rowOf(dialect: Dialect, fields: readonly Field[], { id, version, values }: AsIf): SqlValue[] {
  const stored = fields.filter((field) => !['none', 'file'].includes(storageOf(field)))
  return [id, version, ...stored.map((field) => encode(dialect, field, values[field.name] ?? null))]
}

/** The fields of the record itself that a condition looks at, lists among them. */
export function ownFieldsIn(criteria: Criteria): Field[] {
  if (criteria.kind !== 'comparison') return [criteria.criteria].flat().flatMap(ownFieldsIn)
  const { steps, field, mask } = criteria
  const [step] = steps
  const masks = [step ? step.mask : mask].flatMap((each) => (each ? ownFieldsIn(each) : []))
  if (!step) return [field, ...masks]
  return isReference(step.field) || step.field.relation?.isList ? [step.field, ...masks] : masks
}
