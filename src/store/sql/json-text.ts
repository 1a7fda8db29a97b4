// Compiles a Selection to the JSON text of a record, so that the database builds it and the service passes it on without decoding.
// The text is identical to `JSON.stringify` of the record. Some selections have no JSON text: the database cannot build all values.
import { getStorage } from '../../model/values/field-types.js'
import type { SelectionEntry, Selection } from '../../model/query/selection.js'
import { SqlScope } from './criteria.js'
import type { Dialect } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import type { SqlFragment } from './parameters.js'
import { compilePointRead, type PointRead } from './point-read.js'

/** Databases limit the number of function arguments. Larger records have no JSON text. */
const MAX_CONCAT_ARGUMENTS = 90

/** Reads `text` and `version` of a record. */
export interface JsonSelect extends PointRead {
  /** The text of a record of the table `t`. */
  readonly text: SqlFragment
  /** The columns of the table `t`: `id`, `version` and `text`. */
  readonly columns: string
}

/** Undefined if the selection contains a value whose JSON text the database cannot build. */
export function compileJsonSelect(dialect: Dialect, selection: Selection): JsonSelect | undefined {
  const scope = new SqlScope(dialect)
  const record = compileRecordJson(scope, 1, selection)
  if (record === undefined) return undefined
  const text = scope.render(record)
  const columns = `t."id" as "id", t."version" as "version", ${text.sql} as "text"`
  return {
    text,
    columns,
    ...compilePointRead(dialect, quoteIdentifier(toTableName(selection.model.name)), {
      sql: columns,
      params: text.params,
    }),
  }
}

function compileRecordJson(
  scope: SqlScope,
  depth: number,
  { versionKeys, entries }: Selection,
): string | undefined {
  const { alias } = scope
  const parts = [`'{"id":'`, `${alias}."id"`]
  for (const key of versionKeys) parts.push(compileMemberKey(key), `${alias}."version"`)
  for (const entry of entries) {
    const value = compileEntryJson(scope, depth, entry)
    if (value === undefined) return undefined
    if (!entry.onlyIfTrue) parts.push(compileMemberKey(entry.key), value)
    else parts.push(`case when ${value} = 'true' then ${compileMemberKey(entry.key, 'true')} else '' end`)
  }
  return parts.length < MAX_CONCAT_ARGUMENTS ? `concat(${[...parts, `'}'`].join(', ')})` : undefined
}

function compileEntryJson(
  scope: SqlScope,
  depth: number,
  { steps, field, mask, related }: SelectionEntry,
): string | undefined {
  if (steps.length > 0 || mask) return undefined
  if (!related) {
    const storage = getStorage(field)
    return storage === 'none'
      ? undefined
      : scope.dialect.toJson[storage]?.(`${scope.alias}.${quoteIdentifier(field.name)}`)
  }
  const { step, selection } = related
  if (step.visible || step.mask || step.field.relation?.isList) return undefined
  const inner = scope.withAlias(`r${depth}`)
  const { from, where } = scope.compileRelation(step, inner.alias)
  const text = compileRecordJson(inner, depth + 1, selection)
  return text && `coalesce((select ${text} from ${from} where ${where}), 'null')`
}

/** A comma and the key before a value. Field names consist of letters and digits, so they need no SQL escapes. */
function compileMemberKey(key: string, value = ''): string {
  return `',${JSON.stringify(key)}:${value}'`
}
