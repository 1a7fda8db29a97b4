// Checks a whole definition and builds the Model.
import { checkField } from './check-field.js'
import type { ReportError } from './check-field-options.js'
import {
  isReadByDefault,
  isReadable,
  isWritable,
  Model,
  USER_MODEL,
  type SystemModelOptions,
} from './model.js'
import { checkHookSets } from './hooks.js'
import { checkChecks } from './check-rules.js'
import { didYouMean } from '../values/did-you-mean.js'
import { FIELD_DEFAULTS, type Field, type Relation } from '../values/field.js'
import { getStorage, isIndexable, MAX_INDEXED_CHARACTERS } from '../values/field-types.js'
import { listTemplateFields } from './record-values.js'
import { isObject, type JsonObject } from '../values/value.js'

// SQLite reserves names that begin with sqlite_.
const MODEL_NAME_PATTERN = /^(?!sqlite_)[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$/i
const MAX_MODEL_NAME_CHARACTERS = 200
const MODEL_OPTIONS = [
  ...['name', 'title', 'fields', 'nameField', 'listFields'],
  ...['unique', 'indexes', 'mergeGroups', 'archived', 'checks', 'hooks'],
]

const SYSTEM_FIELD = { ...FIELD_DEFAULTS, isSystem: true, copied: false }
const USER_RELATION: Relation = { target: USER_MODEL, isList: false, mappedBy: undefined, owned: false }
const SYSTEM_FIELDS: readonly Field[] = [
  { ...SYSTEM_FIELD, name: 'createdOn', title: 'Created on', type: 'datetime' },
  { ...SYSTEM_FIELD, name: 'createdBy', title: 'Created by', type: 'many-to-one', relation: USER_RELATION },
  { ...SYSTEM_FIELD, name: 'updatedOn', title: 'Updated on', type: 'datetime' },
  { ...SYSTEM_FIELD, name: 'updatedBy', title: 'Updated by', type: 'many-to-one', relation: USER_RELATION },
]
const ARCHIVED_FIELD: Field = {
  ...FIELD_DEFAULTS,
  name: 'archived',
  title: 'Archived',
  type: 'boolean',
  default: false,
}

/** Checks a definition of any origin. Reports every error; returns no model if there is one. */
export function checkModel(
  definition: unknown,
  report: (error: string) => void,
  system: SystemModelOptions = {},
): Model | undefined {
  if (!isObject(definition)) {
    report('a model must be an object with a name and fields')
    return undefined
  }
  let errors = 0
  const name = typeof definition['name'] === 'string' ? definition['name'] : 'a model without a name'
  const reportError = (error: string) => {
    errors++
    report(`${name}: ${error}`)
  }
  checkModelOptions(definition, reportError)
  const fields = checkFields(definition['fields'], (field, error) => {
    errors++
    report(`${name}.${field}: ${error}`)
  })
  if (definition['archived'] === true) fields.set(ARCHIVED_FIELD.name, ARCHIVED_FIELD)
  for (const field of SYSTEM_FIELDS) fields.set(field.name, field)
  const single = [...fields.values()].filter((field) => field.unique).map((field) => [field.name])
  const model = new Model({
    name,
    title:
      typeof definition['title'] === 'string' ? definition['title'] : name.slice(name.lastIndexOf('.') + 1),
    fields: markSystemFields(fields, system.systemFields ?? []),
    nameField: checkNameField(definition['nameField'], fields, reportError),
    listFields: checkListFields(definition['listFields'], fields, reportError),
    unique: [...single, ...checkFieldSets('unique', definition['unique'], fields, reportError)],
    indexes: checkFieldSets('indexes', definition['indexes'], fields, reportError),
    mergeGroups: checkMergeGroups(definition['mergeGroups'], fields, reportError),
    archived: definition['archived'] === true,
    checks: checkChecks(definition['checks'], reportError),
    hooks: checkHookSets(definition['hooks'], reportError),
    system,
  })
  for (const set of single) checkIndexable('unique', set, fields, reportError)
  return errors > 0 ? undefined : Object.freeze(model)
}

function markSystemFields(
  fields: ReadonlyMap<string, Field>,
  names: readonly string[],
): ReadonlyMap<string, Field> {
  if (names.length === 0) return fields
  const marked = new Map(fields)
  for (const [name, field] of fields) if (names.includes(name)) marked.set(name, { ...field, isSystem: true })
  return marked
}

function checkModelOptions(definition: JsonObject, report: ReportError): void {
  const { name, title, archived } = definition
  if (typeof name !== 'string' || !MODEL_NAME_PATTERN.test(name) || name.length > MAX_MODEL_NAME_CHARACTERS) {
    report(
      `name must be a dotted name such as "crm.Contact", at most ${MAX_MODEL_NAME_CHARACTERS} characters`,
    )
  }
  if (title !== undefined && typeof title !== 'string') report('title must be text')
  if (archived !== undefined && typeof archived !== 'boolean') report('archived must be true or false')
  for (const option of Object.keys(definition)) {
    if (!MODEL_OPTIONS.includes(option))
      report(`unknown option "${option}"${didYouMean(option, MODEL_OPTIONS)}`)
  }
}

function checkFields(raw: unknown, report: (field: string, error: string) => void): Map<string, Field> {
  const fields = new Map<string, Field>()
  if (!isObject(raw) || Object.keys(raw).length === 0) {
    report('fields', 'a model needs at least one field')
    return fields
  }
  const folded = new Set<string>()
  for (const [name, definition] of Object.entries(raw)) {
    const reportError = (error: string) => {
      report(name, error)
    }
    const field = checkField(name, definition, reportError)
    if (folded.has(name.toLowerCase()))
      report(name, 'the name differs from that of another field only in upper and lower case')
    folded.add(name.toLowerCase())
    const template = isObject(definition) ? definition['computed'] : undefined
    if (typeof template === 'string') checkTemplate(template, raw, fields, reportError)
    if (field) fields.set(name, field)
  }
  for (const field of fields.values()) {
    if (field.renamedFrom !== undefined && fields.has(field.renamedFrom))
      report(field.name, `renamedFrom: "${field.renamedFrom}" is still a field of this model`)
  }
  return fields
}

function checkTemplate(
  template: string,
  raw: JsonObject,
  before: ReadonlyMap<string, Field>,
  report: ReportError,
): void {
  const names = listTemplateFields(template)
  if (names.length === 0) report('the template names no field: write fields as {field}')
  for (const used of names) {
    const other = raw[used]
    if (!isObject(other))
      report(`the template names the unknown field "${used}"${didYouMean(used, Object.keys(raw))}`)
    else if (other['secret']) report(`the template names "${used}", which is secret`)
    else if (other['target'] !== undefined) report(`the template names "${used}", which is a relation`)
    else if (other['computed'] !== undefined && !before.has(used)) {
      report(`the template names "${used}", which is computed later: declare it first`)
    }
  }
}

function checkNameField(nameField: unknown, fields: ReadonlyMap<string, Field>, report: ReportError) {
  if (nameField === undefined) return ['name', 'code'].find((name) => canBeNameField(fields.get(name)))
  const named = typeof nameField === 'string' ? nameField : ''
  const field = fields.get(named)
  if (!field) report(`nameField must be the name of a field${didYouMean(named, fields.keys())}`)
  else if (!isReadable(field))
    report(`nameField: "${field.name}" cannot be read, because it is secret or binary`)
  else if (field.relation) report(`nameField: "${field.name}" must not be a relation`)
  return field?.name
}

function canBeNameField(field: Field | undefined): boolean {
  return field !== undefined && isReadByDefault(field) && !field.relation
}

function checkListFields(
  listFields: unknown,
  fields: ReadonlyMap<string, Field>,
  report: ReportError,
): string[] {
  if (listFields === undefined) {
    const isShort = (field: Field) =>
      isReadByDefault(field) &&
      !field.isSystem &&
      !['text', 'json'].includes(field.type) &&
      !field.relation?.isList
    return [...fields.values()].filter(isShort).map((field) => field.name)
  }
  const names = readFieldNames('listFields', listFields, fields, report)
  for (const name of names) {
    const field = fields.get(name)
    if (field && !isReadable(field))
      report(`listFields: "${name}" cannot be read, because it is secret or binary`)
    else if (field?.relation?.isList)
      report(`listFields: "${name}" must not be a list: select it with "fields" in a request`)
  }
  return names
}

function checkFieldSets(
  option: string,
  sets: unknown,
  fields: ReadonlyMap<string, Field>,
  report: ReportError,
): string[][] {
  return readFieldSets(option, sets, report).map((set) => {
    const names = readFieldNames(option, set, fields, report)
    if (names.length === 0) report(`${option}: each set must name at least one field`)
    checkIndexable(option, names, fields, report)
    return names
  })
}

/** Rejects fields that clients do not write, and secrets, whose values a merge cannot compare. */
function checkMergeGroups(
  sets: unknown,
  fields: ReadonlyMap<string, Field>,
  report: ReportError,
): string[][] {
  const grouped = new Set<string>()
  return readFieldSets('mergeGroups', sets, report).map((set) => {
    const names = readFieldNames('mergeGroups', set, fields, report)
    if (names.length < 2) report('mergeGroups: each set must name at least two fields')
    for (const name of new Set(names)) {
      const field = fields.get(name)
      if (field && !isWritable(field)) report(`mergeGroups: "${name}" cannot be written by clients`)
      else if (field?.secret) report(`mergeGroups: "${name}" is secret and cannot be compared`)
      if (grouped.has(name)) report(`mergeGroups: "${name}" is in two sets`)
      grouped.add(name)
    }
    return names
  })
}

function readFieldSets(option: string, sets: unknown, report: ReportError): readonly unknown[] {
  if (sets === undefined) return []
  if (Array.isArray(sets)) return sets as readonly unknown[]
  report(`${option} must be a list of lists of field names`)
  return []
}

function checkIndexable(
  option: string,
  names: readonly string[],
  fields: ReadonlyMap<string, Field>,
  report: ReportError,
): void {
  const set = names.flatMap((name) => fields.get(name) ?? [])
  for (const field of set) {
    if (!isIndexable(field)) report(`${option}: "${field.name}" cannot be indexed`)
  }
  const texts = set.filter((field) => getStorage(field) === 'text' && !field.secret)
  if (texts.reduce((sum, field) => sum + field.maxLength, 0) <= MAX_INDEXED_CHARACTERS) return
  const named = texts.map((field) => `"${field.name}"`).join(' and ')
  report(`${option}: the length of ${named} must be at most ${MAX_INDEXED_CHARACTERS} characters in total`)
}

function readFieldNames(
  option: string,
  list: unknown,
  fields: ReadonlyMap<string, Field>,
  report: ReportError,
): string[] {
  if (!Array.isArray(list)) {
    report(`${option}: expected a list of field names`)
    return []
  }
  const names = list.map(String)
  for (const name of names) {
    if (!fields.has(name)) report(`${option}: unknown field "${name}"${didYouMean(name, fields.keys())}`)
  }
  if (new Set(names).size < names.length) report(`${option} names a field twice`)
  return names
}
