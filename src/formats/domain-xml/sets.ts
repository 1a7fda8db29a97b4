// Unique constraints, indexes and the name column of an entity, as far as its fields carry them.
import { checkField } from '../../model/definition/check-field.js'
import type { FieldDefinition } from '../../model/definition/define-model.js'
import type { Entity } from './merge.js'
import type { Fields } from './relations.js'
import type { ReportLine } from './report.js'
import { isIndexable, MAX_INDEXED_LENGTH, storageOf } from '../../model/values/field-types.js'

export interface Sets {
  readonly unique: readonly (readonly string[])[]
  readonly indexes: readonly (readonly string[])[]
}

type Report = (line: ReportLine) => void

/** What is unique or indexed, besides what fields say of themselves. References are indexed anyway. */
export function setsOf(entity: Entity, fields: Fields, nameField: string | undefined, report: Report): Sets {
  const columns = entity.sets.length > 0 ? columnsOf(entity) : new Map<string, string>()
  const [unique, indexes] = [new Map<string, string[]>(), new Map<string, string[]>()]
  for (const { columns: named, isUnique } of entity.sets) {
    const names = [...new Set(named.map((column) => columns.get(column.toLowerCase()) ?? column))]
    const fault = setFault(names, fields)
    if (fault === undefined) (isUnique ? unique : indexes).set(names.join(), names)
    else report({ kind: 'constraint', place: entity.name, detail: `${names.join(', ')}: ${fault}` })
  }
  for (const name of indexedFields(entity, nameField)) {
    const field = fields[name]
    const isUnique = field && (('unique' in field && field.unique) || 'sequence' in field)
    if (field && !isUnique && setFault([name], fields) === undefined) indexes.set(name, [name])
  }
  return { unique: [...unique.values()], indexes: [...indexes.values()] }
}

/** Those that say so, and those that records are found by. */
function indexedFields({ fields }: Entity, nameField: string | undefined): string[] {
  const usual = new Set(['name', 'code', nameField])
  const isIndexed = (name: string, index = '') => index !== 'false' && (index !== '' || usual.has(name))
  return [...fields.values()]
    .filter(({ name, attributes }) => !attributes.has('ref') && isIndexed(name, attributes.get('index')))
    .map(({ name }) => name)
}

/** By field name, by the column it would have, by the column it names: all in lower case. */
function columnsOf({ fields }: Entity): Map<string, string> {
  const all = [...fields.values()]
  const snake = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()
  return new Map([
    ...all.map(({ name }) => [snake(name), name] as const),
    ...all.map(({ name, attributes }) => [(attributes.get('column') ?? name).toLowerCase(), name] as const),
    ...all.map(({ name }) => [name.toLowerCase(), name] as const),
  ])
}

function setFault(names: readonly string[], fields: Fields): string | undefined {
  if (names.length === 0) return 'it names no column'
  let length = 0
  for (const name of names) {
    const definition = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (!definition) return `there is no field "${name}"`
    const field = checkField('field', definition, () => undefined)
    if (!field || !isIndexable(field)) return `"${name}" cannot be indexed`
    if (storageOf(field) === 'text') length += field.maxLength
  }
  return length > MAX_INDEXED_LENGTH
    ? `texts of more than ${MAX_INDEXED_LENGTH} characters in all`
    : undefined
}

/** Undefined where `name` or `code` stand for a record by themselves, or nothing does. */
export function nameFieldOf(entity: Entity, fields: Fields, report: Report): string | undefined {
  const named = [...entity.fields.values()].filter(
    ({ attributes }) => attributes.get('namecolumn') === 'true',
  )
  const fit = named.find(({ name }) => isName(fields[name]))
  const [first] = named
  if (!fit && first) report({ kind: 'name-field', place: `${entity.name}.${first.name}` })
  return fit?.name
}

function isName(field: FieldDefinition | undefined): boolean {
  return (
    field !== undefined &&
    !('target' in field) &&
    field.type !== 'binary' &&
    !('secret' in field && field.secret)
  )
}
