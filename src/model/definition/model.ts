import { checkField } from './check-field.js'
import {
  BLANK,
  isIndexable,
  MAX_INDEXED_LENGTH,
  storageOf,
  type Field,
  type Relation,
} from '../values/field-types.js'
import { didYouMean } from '../values/did-you-mean.js'
import { fieldsOfTemplate } from '../values/template.js'
import { isObject } from '../values/value.js'

/** A checked model. `defineModel` in `definition.ts` is how people write one. */
export interface Model {
  readonly name: string
  readonly title: string
  /** Every field in the order of the definition, then those kept by the service. */
  readonly fields: ReadonlyMap<string, Field>
  readonly nameField: string | undefined
  readonly listFields: readonly string[]
  /** Unique fields and unique sets alike. */
  readonly unique: readonly (readonly string[])[]
  readonly indexes: readonly (readonly string[])[]
  /** Sets of fields that change only together; no field is in two of them. */
  readonly together: readonly (readonly string[])[]
  readonly archived: boolean
}

export const USER_MODEL = 'verso.auth.User'

// SQLite keeps names that begin with sqlite_ for itself.
const MODEL_NAME = /^(?!sqlite_)[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$/i
const MAX_MODEL_NAME = 200
const OPTIONS = [
  ...['name', 'title', 'fields', 'nameField', 'listFields'],
  ...['unique', 'indexes', 'together', 'archived'],
]

const kept = { ...BLANK, kept: true, copied: false }
const user: Relation = { target: USER_MODEL, isList: false, mappedBy: undefined, owned: false }
const KEPT_FIELDS: readonly Field[] = [
  { ...kept, name: 'createdOn', title: 'Created on', type: 'datetime' },
  { ...kept, name: 'createdBy', title: 'Created by', type: 'many-to-one', relation: user },
  { ...kept, name: 'updatedOn', title: 'Updated on', type: 'datetime' },
  { ...kept, name: 'updatedBy', title: 'Updated by', type: 'many-to-one', relation: user },
]
const ARCHIVED: Field = {
  ...BLANK,
  name: 'archived',
  title: 'Archived',
  type: 'boolean',
  default: false,
}

/** A definition of any origin → a Model; every fault is reported, and then there is no model. */
export function checkModel(definition: unknown, report: (fault: string) => void): Model | undefined {
  if (!isObject(definition)) {
    report('a model must be an object with a name and fields')
    return undefined
  }
  let faults = 0
  const name = typeof definition['name'] === 'string' ? definition['name'] : 'a model without a name'
  const complain = (fault: string) => {
    faults++
    report(`${name}: ${fault}`)
  }
  checkShape(definition, complain)
  const fields = checkFields(definition['fields'], (field, fault) => {
    faults++
    report(`${name}.${field}: ${fault}`)
  })
  if (definition['archived'] === true) fields.set(ARCHIVED.name, ARCHIVED)
  for (const field of KEPT_FIELDS) fields.set(field.name, field)
  const single = [...fields.values()].filter((field) => field.unique).map((field) => [field.name])
  const model: Model = {
    name,
    title:
      typeof definition['title'] === 'string' ? definition['title'] : name.slice(name.lastIndexOf('.') + 1),
    fields,
    nameField: checkNameField(definition['nameField'], fields, complain),
    listFields: checkListFields(definition['listFields'], fields, complain),
    unique: [...single, ...checkSets('unique', definition['unique'], fields, complain)],
    indexes: checkSets('indexes', definition['indexes'], fields, complain),
    together: checkGroups(definition['together'], fields, complain),
    archived: definition['archived'] === true,
  }
  for (const set of single) checkIndexable('unique', set, fields, complain)
  return faults > 0 ? undefined : Object.freeze(model)
}

type Complain = (fault: string) => void

function checkShape(definition: Readonly<Record<string, unknown>>, complain: Complain): void {
  const { name, title, archived } = definition
  if (typeof name !== 'string' || !MODEL_NAME.test(name) || name.length > MAX_MODEL_NAME) {
    complain('the name must be a dotted name such as "crm.Contact"')
  }
  if (title !== undefined && typeof title !== 'string') complain('title must be text')
  if (archived !== undefined && typeof archived !== 'boolean') complain('archived must be true or false')
  for (const option of Object.keys(definition)) {
    if (!OPTIONS.includes(option)) complain(`a model has no option "${option}"${didYouMean(option, OPTIONS)}`)
  }
}

function checkFields(raw: unknown, report: (field: string, fault: string) => void): Map<string, Field> {
  const fields = new Map<string, Field>()
  if (!isObject(raw) || Object.keys(raw).length === 0) {
    report('fields', 'a model needs at least one field')
    return fields
  }
  const folded = new Set<string>()
  for (const [name, definition] of Object.entries(raw)) {
    const field = checkField(name, definition, (fault) => {
      report(name, fault)
    })
    if (folded.has(name.toLowerCase()))
      report(name, 'another field has this name but for upper and lower case')
    folded.add(name.toLowerCase())
    const template = isObject(definition) ? definition['computed'] : undefined
    if (typeof template === 'string') checkTemplate(name, template, raw, fields, report)
    if (field) fields.set(name, field)
  }
  for (const field of fields.values()) {
    if (field.was !== undefined && fields.has(field.was))
      report(field.name, `was: "${field.was}" is a field of its own`)
  }
  return fields
}

function checkTemplate(
  name: string,
  template: string,
  raw: Readonly<Record<string, unknown>>,
  before: ReadonlyMap<string, Field>,
  report: (field: string, fault: string) => void,
): void {
  const names = fieldsOfTemplate(template)
  if (names.length === 0) report(name, 'the template names no field; write it as {field}')
  for (const used of names) {
    const other = raw[used]
    if (!isObject(other))
      report(name, `the template names "${used}"${didYouMean(used, Object.keys(raw))}, which is no field`)
    else if (other['secret']) report(name, `the template names "${used}", which is secret`)
    else if (other['target'] !== undefined) report(name, `the template names "${used}", which is a relation`)
    else if (other['computed'] !== undefined && !before.has(used)) {
      report(name, `the template names "${used}", which is computed later: declare it first`)
    }
  }
}

function checkNameField(nameField: unknown, fields: ReadonlyMap<string, Field>, complain: Complain) {
  if (nameField === undefined) return ['name', 'code'].find((name) => isName(fields.get(name)))
  const named = typeof nameField === 'string' ? nameField : ''
  const field = fields.get(named)
  if (!field) complain(`nameField names no field${didYouMean(named, fields.keys())}`)
  else if (!isReadable(field)) complain(`nameField: "${field.name}" is never shown`)
  else if (field.relation) complain(`nameField: "${field.name}" is a relation`)
  return field?.name
}

function isName(field: Field | undefined): boolean {
  return field !== undefined && isShown(field) && !field.relation
}

function checkListFields(
  listFields: unknown,
  fields: ReadonlyMap<string, Field>,
  complain: Complain,
): string[] {
  if (listFields === undefined) {
    const isShort = (field: Field) =>
      isShown(field) && !field.kept && !['text', 'json'].includes(field.type) && !field.relation?.isList
    return [...fields.values()].filter(isShort).map((field) => field.name)
  }
  const names = namesOf('listFields', listFields, fields, complain)
  for (const name of names) {
    const field = fields.get(name)
    if (field && !isReadable(field)) complain(`listFields: "${name}" is never shown`)
    else if (field?.relation?.isList)
      complain(`listFields: "${name}" is a list: a find shows it when "fields" names it`)
  }
  return names
}

function checkSets(
  option: string,
  sets: unknown,
  fields: ReadonlyMap<string, Field>,
  complain: Complain,
): string[][] {
  return listIn(option, sets, complain).map((set) => {
    const names = namesOf(option, set, fields, complain)
    if (names.length === 0) complain(`${option}: a set names at least one field`)
    checkIndexable(option, names, fields, complain)
    return names
  })
}

/** What nobody writes, or what nobody can compare, cannot be held together with anything. */
function checkGroups(sets: unknown, fields: ReadonlyMap<string, Field>, complain: Complain): string[][] {
  const grouped = new Set<string>()
  return listIn('together', sets, complain).map((set) => {
    const names = namesOf('together', set, fields, complain)
    if (names.length < 2) complain('together: a set names at least two fields')
    for (const name of new Set(names)) {
      const field = fields.get(name)
      if (field && !isWritable(field)) complain(`together: "${name}" is not written by clients`)
      else if (field?.secret) complain(`together: "${name}" is secret, and cannot be compared`)
      if (grouped.has(name)) complain(`together: "${name}" is in two sets`)
      grouped.add(name)
    }
    return names
  })
}

function listIn(option: string, sets: unknown, complain: Complain): readonly unknown[] {
  if (sets === undefined) return []
  if (Array.isArray(sets)) return sets as readonly unknown[]
  complain(`${option} must be a list of lists of field names`)
  return []
}

function checkIndexable(
  option: string,
  names: readonly string[],
  fields: ReadonlyMap<string, Field>,
  complain: Complain,
): void {
  const set = names.flatMap((name) => fields.get(name) ?? [])
  for (const field of set) {
    if (!isIndexable(field)) complain(`${option}: "${field.name}" cannot be indexed`)
  }
  const texts = set.filter((field) => storageOf(field) === 'text' && !field.secret)
  if (texts.reduce((sum, field) => sum + field.maxLength, 0) <= MAX_INDEXED_LENGTH) return
  const named = texts.map((field) => `"${field.name}"`).join(' and ')
  complain(`${option}: ${named} need a length of at most ${MAX_INDEXED_LENGTH} in all`)
}

function namesOf(
  option: string,
  list: unknown,
  fields: ReadonlyMap<string, Field>,
  complain: Complain,
): string[] {
  if (!Array.isArray(list)) {
    complain(`${option} must hold a list of field names`)
    return []
  }
  const names = list.map(String)
  for (const name of names) {
    if (!fields.has(name))
      complain(`${option}: there is no field "${name}"${didYouMean(name, fields.keys())}`)
  }
  if (new Set(names).size < names.length) complain(`${option} names a field twice`)
  return names
}

/** Whether an answer may show this field, if only when it is asked for. */
export function isReadable(field: Field): boolean {
  return field.secret === undefined && field.type !== 'binary'
}

/** The other side of a relation that somebody else holds: shown when it is asked for, never written. */
export function isView({ relation }: Field): boolean {
  return relation !== undefined && relation.mappedBy !== undefined && !relation.owned
}

/** Whether a full record shows this field. */
export function isShown(field: Field): boolean {
  return isReadable(field) && !isView(field)
}

/** A to-one that this record itself holds. */
export function isReference({ relation }: Field): boolean {
  return relation !== undefined && !relation.isList && relation.mappedBy === undefined
}

/** A list that is part of the record. */
export function isOwnedList({ relation }: Field): boolean {
  return relation !== undefined && relation.isList && relation.owned
}

/** Whether a client's word can change this field. */
export function isWritable(field: Field): boolean {
  return !field.kept && field.computed === undefined && field.sequence === undefined && !isView(field)
}
