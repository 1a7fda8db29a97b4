// A model in the words of the protocol's clients: what a form needs to know of each field.
import type { Choice, Field, FieldTypeName } from '../values/field-types.js'
import { listVisibleOrderKeys } from './list-order.js'
import { isReadable, isInverse, type Model } from '../definition/model.js'
import { ID_FIELD, VERSION_FIELD } from './path.js'
import type { Visibility } from './visibility.js'
import type { Value } from '../values/value.js'

const PROTOCOL_TYPE_NAMES: Readonly<Record<FieldTypeName, string>> = {
  string: 'STRING',
  text: 'TEXT',
  integer: 'INTEGER',
  long: 'LONG',
  decimal: 'DECIMAL',
  boolean: 'BOOLEAN',
  date: 'DATE',
  time: 'TIME',
  datetime: 'DATETIME',
  uuid: 'UUID',
  enum: 'ENUM',
  json: 'TEXT',
  binary: 'BINARY',
  'many-to-one': 'MANY_TO_ONE',
  'one-to-one': 'ONE_TO_ONE',
  'one-to-many': 'ONE_TO_MANY',
  'many-to-many': 'MANY_TO_MANY',
}

const TIME_TYPES: ReadonlySet<FieldTypeName> = new Set(['date', 'time', 'datetime'])

type FieldDescription = Readonly<Record<string, unknown>>

export interface ModelDescription {
  readonly model: string
  readonly title: string
  readonly fields: readonly FieldDescription[]
  /** Fields inside of json fields: none are declared here. */
  readonly jsonFields: FieldDescription
  /** In the words of the protocol. */
  readonly perms: Readonly<Record<string, boolean>> | null
}

/** `perms` is null where everything is permitted. */
export function describeModel(
  visibility: Visibility,
  model: Model,
  perms: ModelDescription['perms'],
): ModelDescription {
  const known = [...model.fields.values()].filter((field) => visibility.isVisible(model, field))
  const fields = known.map((field) => describeField(visibility, model, field))
  const keyFields = [
    { ...describeField(visibility, model, ID_FIELD), primary: true },
    describeField(visibility, model, VERSION_FIELD),
  ]
  return { model: model.name, title: model.title, fields: [...keyFields, ...fields], jsonFields: {}, perms }
}

/** Only what says something: no nulls, no false, no empty texts. */
function describeField(visibility: Visibility, model: Model, field: Field): FieldDescription {
  const { name, type, title, help, unique, computed, kept, sequence, secret } = field
  const described = {
    ...{ name, type: PROTOCOL_TYPE_NAMES[type], title, help },
    ...describeLimits(field),
    ...describeRelation(visibility, field),
    ...{
      required: field.required && !kept,
      unique,
      readonly: !visibility.canWrite(model, field),
      json: type === 'json',
    },
    ...{ virtual: computed !== undefined, sequence: sequence !== undefined },
    nameColumn: name === model.nameField,
    password: secret !== undefined,
    hidden: !isReadable(field) && type !== 'binary',
    selectionList: field.selection?.map(describeChoice),
    defaultNow: field.default === 'now' && TIME_TYPES.has(type),
  }
  const entries = Object.entries(described).filter(([, value]) => hasMeaning(value as Value))
  return { ...Object.fromEntries(entries), ...describeBounds(field), ...describeDefault(field) }
}

/** Where 0 says as much as every other number. */
function describeBounds({ min, max }: Field): FieldDescription {
  return { ...(min === undefined ? {} : { minSize: min }), ...(max === undefined ? {} : { maxSize: max }) }
}

/** As a client would send it. What a secret begins with is a secret too. */
function describeDefault({ type, secret, default: value }: Field): FieldDescription {
  const isNow = value === 'now' && TIME_TYPES.has(type)
  return value === undefined || value === null || secret || isNow ? {} : { defaultValue: value }
}

function describeLimits(field: Field): FieldDescription {
  const { type, minLength, maxLength, precision, scale } = field
  return type === 'string' || type === 'text'
    ? { minSize: minLength, maxSize: maxLength }
    : { precision, scale }
}

function describeRelation(visibility: Visibility, field: Field): FieldDescription {
  const { relation } = field
  if (!relation) return {}
  const targetName = visibility.getTarget(relation).nameField
  const orderBy = listVisibleOrderKeys(visibility, field)
  return {
    ...{ target: relation.target, targetName, mappedBy: relation.mappedBy, view: isInverse(field) },
    ...(orderBy.length > 0 ? { orderBy } : {}),
  }
}

/** Values are texts here, whatever the field holds. */
function describeChoice({ value, title }: Choice, order: number): FieldDescription {
  return { value: String(value), title, order }
}

function hasMeaning(value: Value | undefined): boolean {
  return ![undefined, null, false, '', 0].some((nothing) => nothing === value)
}
