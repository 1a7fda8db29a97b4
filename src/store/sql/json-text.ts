// A Selection → the text of a record as JSON, made by the database: what is only passed on need not become a record first.
// A second printer of values beside `JSON.stringify`: it prints the same, character by character, or not at all.
import { storageOf } from '../../model/values/field-types.js'
import type { Entry, Selection } from '../../model/query/selection.js'
import { Scope } from './criteria.js'
import type { Dialect } from '../engine/database.js'
import { quote, tableName } from '../engine/names.js'
import type { Rendered } from './parameters.js'
import { pointRead, type PointRead } from './point-read.js'

/** More than these are left to the other printer: functions of the database take only so many arguments. */
const MAX_PARTS = 90

/** Reads `text` and `version` of a record. */
export interface Printed extends PointRead {
  /** The text of a record of a table that is called `t`. */
  readonly text: Rendered
}

/** Undefined where it shows something that the database cannot print. */
export function printSelection(dialect: Dialect, selection: Selection): Printed | undefined {
  const scope = new Scope(dialect)
  const record = printRecord(scope, 1, selection)
  if (record === undefined) return undefined
  const text = scope.render(record)
  const columns = `t."id" as "id", t."version" as "version", ${text.sql} as "text"`
  return { text, ...pointRead(columns, quote(tableName(selection.model.name)), text.params) }
}

function printRecord(scope: Scope, depth: number, { versionKeys, entries }: Selection): string | undefined {
  const { alias } = scope
  const parts = [`'{"id":'`, `${alias}."id"`]
  for (const key of versionKeys) parts.push(member(key), `${alias}."version"`)
  for (const entry of entries) {
    const value = printEntry(scope, depth, entry)
    if (value === undefined) return undefined
    if (!entry.onlyIfTrue) parts.push(member(entry.key), value)
    else parts.push(`case when ${value} = 'true' then ${member(entry.key, 'true')} else '' end`)
  }
  return parts.length < MAX_PARTS ? `concat(${[...parts, `'}'`].join(', ')})` : undefined
}

function printEntry(
  scope: Scope,
  depth: number,
  { steps, field, mask, neighbour }: Entry,
): string | undefined {
  if (steps.length > 0 || mask) return undefined
  if (!neighbour) {
    const storage = storageOf(field)
    return storage === 'none'
      ? undefined
      : scope.dialect.print[storage]?.(`${scope.alias}.${quote(field.name)}`)
  }
  const { step, shown } = neighbour
  if (step.seen || step.mask || step.field.relation?.isList) return undefined
  const inner = scope.under(`r${depth}`)
  const { from, where } = scope.neighbours(step, inner.alias)
  const text = printRecord(inner, depth + 1, shown)
  return text && `coalesce((select ${text} from ${from} where ${where}), 'null')`
}

/** What stands before a value: names of fields are letters and digits. */
function member(key: string, value = ''): string {
  return `',${JSON.stringify(key)}:${value}'`
}
