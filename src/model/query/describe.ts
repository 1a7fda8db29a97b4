// A model in the words of the protocol's clients: what a form needs to know of each field.
import type { Choice, Field, FieldTypeName } from '../values/field-types.js'
import { shownOrder } from './list-order.js'
import { isReadable, isView, type Model } from '../definition/model.js'
import { ID, VERSION } from './path.js'
import type { Sight } from './visibility.js'
import type { Value } from '../values/value.js'

const TYPE_NAMES: Readonly<Record<FieldTypeName, string>> = {
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

const TIMES: ReadonlySet<FieldTypeName> = new Set(['date', 'time', 'datetime'])

type Description = Readonly<Record<string, unknown>>

export interface ModelDescription {
  readonly model: string
  readonly title: string
  readonly fields: readonly Description[]
  /** Fields inside of json fields: none are declared here. */
  readonly jsonFields: Description
  /** In the words of the protocol. */
  readonly perms: Readonly<Record<string, boolean>> | null
}

/** `perms` is null where everything is permitted. */
export function describeModel(
  sight: Sight,
  model: Model,
  perms: ModelDescription['perms'],
): ModelDescription {
  const known = [...model.fields.values()].filter((field) => sight.knows(model, field))
  const fields = known.map((field) => describeField(sight, model, field))
  const own = [{ ...describeField(sight, model, ID), primary: true }, describeField(sight, model, VERSION)]
  return { model: model.name, title: model.title, fields: [...own, ...fields], jsonFields: {}, perms }
}

/** Only what says something: no nulls, no false, no empty texts. */
function describeField(sight: Sight, model: Model, field: Field): Description {
  const { name, type, title, help, unique, computed, kept, sequence, secret } = field
  const described = {
    ...{ name, type: TYPE_NAMES[type], title, help },
    ...limitsOf(field),
    ...relationOf(sight, field),
    ...{
      required: field.required && !kept,
      unique,
      readonly: !sight.writes(model, field),
      json: type === 'json',
    },
    ...{ virtual: computed !== undefined, sequence: sequence !== undefined },
    nameColumn: name === model.nameField,
    password: secret !== undefined,
    hidden: !isReadable(field) && type !== 'binary',
    selectionList: field.selection?.map(describeChoice),
    defaultNow: field.default === 'now' && TIMES.has(type),
  }
  const telling = Object.entries(described).filter(([, value]) => isTelling(value as Value))
  return { ...Object.fromEntries(telling), ...boundsOf(field), ...defaultOf(field) }
}

/** Where 0 says as much as every other number. */
function boundsOf({ min, max }: Field): Description {
  return { ...(min === undefined ? {} : { minSize: min }), ...(max === undefined ? {} : { maxSize: max }) }
}

/** As a client would send it. What a secret begins with is a secret too. */
function defaultOf({ type, secret, default: value }: Field): Description {
  const isNow = value === 'now' && TIMES.has(type)
  return value === undefined || value === null || secret || isNow ? {} : { defaultValue: value }
}

function limitsOf(field: Field): Description {
  const { type, minLength, maxLength, precision, scale } = field
  return type === 'string' || type === 'text'
    ? { minSize: minLength, maxSize: maxLength }
    : { precision, scale }
}

function relationOf(sight: Sight, field: Field): Description {
  const { relation } = field
  if (!relation) return {}
  const targetName = sight.target(relation).nameField
  const orderBy = shownOrder(sight, field)
  return {
    ...{ target: relation.target, targetName, mappedBy: relation.mappedBy, view: isView(field) },
    ...(orderBy.length > 0 ? { orderBy } : {}),
  }
}

/** Values are texts here, whatever the field holds. */
function describeChoice({ value, title }: Choice, order: number): Description {
  return { value: String(value), title, order }
}

function isTelling(value: Value | undefined): boolean {
  return ![undefined, null, false, '', 0].some((nothing) => nothing === value)
}
