// Converts unique constraints, indexes and the name column of an entity.
import { checkField } from '../../model/definition/check-field.js'
import type { FieldDefinition } from '../../model/definition/field-definition.js'
import type { DomainEntity } from './merge.js'
import type { FieldDefinitions } from './relations.js'
import type { ReportDiagnostic } from './report.js'
import { isIndexable, MAX_INDEXED_CHARACTERS, getStorage } from '../../model/values/field-types.js'

export interface IndexOptions {
  readonly unique: readonly (readonly string[])[]
  readonly indexes: readonly (readonly string[])[]
}

/** Returns the unique sets and indexes besides unique fields. References always have an index. */
export function convertIndexes(
  entity: DomainEntity,
  fields: FieldDefinitions,
  nameField: string | undefined,
  report: ReportDiagnostic,
): IndexOptions {
  const columns = entity.indexes.length > 0 ? mapColumnsToFields(entity) : new Map<string, string>()
  const [unique, indexes] = [new Map<string, string[]>(), new Map<string, string[]>()]
  for (const { columns: named, isUnique } of entity.indexes) {
    const names = [...new Set(named.map((column) => columns.get(column.toLowerCase()) ?? column))]
    const error = validateIndexFields(names, fields)
    if (error === undefined) (isUnique ? unique : indexes).set(names.join(), names)
    else report({ kind: 'constraint', location: entity.name, detail: `${names.join(', ')}: ${error}` })
  }
  for (const name of listIndexedFields(entity, nameField)) {
    const field = fields[name]
    const isUnique = field && (('unique' in field && field.unique) || 'sequence' in field)
    if (field && !isUnique && validateIndexFields([name], fields) === undefined) indexes.set(name, [name])
  }
  return { unique: [...unique.values()], indexes: [...indexes.values()] }
}

/** Lists the fields with an `index` attribute, and those that searches commonly use. */
function listIndexedFields({ fields }: DomainEntity, nameField: string | undefined): string[] {
  const usual = new Set(['name', 'code', nameField])
  const isIndexed = (name: string, index = '') => index !== 'false' && (index !== '' || usual.has(name))
  return [...fields.values()]
    .filter(({ name, attributes }) => !attributes.has('ref') && isIndexed(name, attributes.get('index')))
    .map(({ name }) => name)
}

/** Maps default column names, `column` attributes and field names to fields, all in lower case. */
function mapColumnsToFields({ fields }: DomainEntity): Map<string, string> {
  const all = [...fields.values()]
  const snake = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()
  return new Map([
    ...all.map(({ name }) => [snake(name), name] as const),
    ...all.map(({ name, attributes }) => [(attributes.get('column') ?? name).toLowerCase(), name] as const),
    ...all.map(({ name }) => [name.toLowerCase(), name] as const),
  ])
}

function validateIndexFields(names: readonly string[], fields: FieldDefinitions): string | undefined {
  if (names.length === 0) return 'it names no columns'
  let length = 0
  for (const name of names) {
    const definition = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (!definition) return `unknown field "${name}"`
    const field = checkField('field', definition, () => undefined)
    if (!field || !isIndexable(field)) return `"${name}" cannot be indexed`
    if (getStorage(field) === 'text') length += field.maxLength
  }
  return length > MAX_INDEXED_CHARACTERS
    ? `its texts have more than ${MAX_INDEXED_CHARACTERS} characters in total`
    : undefined
}

/** Returns undefined if no field has `namecolumn`. The model then falls back to `name` or `code`. */
export function findNameField(
  entity: DomainEntity,
  fields: FieldDefinitions,
  report: ReportDiagnostic,
): string | undefined {
  const named = [...entity.fields.values()].filter(
    ({ attributes }) => attributes.get('namecolumn') === 'true',
  )
  const fit = named.find(({ name }) => canBeNameColumn(fields[name]))
  const [first] = named
  if (!fit && first) report({ kind: 'name-field', location: `${entity.name}.${first.name}` })
  return fit?.name
}

function canBeNameColumn(field: FieldDefinition | undefined): boolean {
  return (
    field !== undefined &&
    !('target' in field) &&
    field.type !== 'binary' &&
    !('secret' in field && field.secret)
  )
}
