// Describes the records of a model as JSON Schema (2020-12): as answers contain them and as requests may send them. Hidden fields are absent.
import type { Field } from '../model/values/field.js'
import {
  isInverse,
  isOwnedList,
  isReadable,
  isReadByDefault,
  isWritable,
  type Model,
} from '../model/definition/model.js'
import { ID_FIELD, VERSION_FIELD } from '../model/query/path.js'
import type { Visibility } from '../model/query/visibility.js'
import type { JsonObject } from '../model/values/value.js'
import { MAX_OWNED_LIST_MEMBERS } from '../model/write/draft.js'
import { toComponentName } from './component-name.js'
import { FIELD_SCHEMAS } from './field-schemas.js'
import { hidesTargets } from './model-description.js'

export interface SchemaOptions {
  readonly visibility: Visibility
  /** The place of the named schemas, such as `#/$defs/`. */
  readonly prefix: string
  /** False if the service ignores unknown fields. */
  readonly refusesUnknownFields: boolean
  /** Omits titles and descriptions of fields where the schema of the record or of a create has them. */
  readonly isBrief?: boolean
}

export const ID_SCHEMA: JsonObject = {
  type: 'integer',
  format: 'int64',
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
}
export const VERSION_SCHEMA: JsonObject = {
  type: 'integer',
  format: 'int64',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
}
const KEY_PROPERTIES: JsonObject = { [ID_FIELD.name]: ID_SCHEMA, [VERSION_FIELD.name]: VERSION_SCHEMA }
const TIME_TYPES: readonly string[] = ['date', 'time', 'datetime']

/** Sent values of fields that the service sets. Shared by all models. */
export const IGNORED_NAME = 'VersoIgnored'
export const IGNORED_SCHEMA: JsonObject = {
  description: 'The service sets this field. A sent value is ignored.',
  readOnly: true,
}
/** Related records inside related records. Shared by all models. */
export const RELATED_INPUT_NAME = 'VersoRelatedInput'
export const RELATED_INPUT_SCHEMA: JsonObject = {
  type: 'object',
  description:
    'An id alone refers to a record. With its version, the record is also updated. Without an id, a record is created.',
  properties: {
    id: { ...ID_SCHEMA, type: ['integer', 'null'] },
    version: { ...VERSION_SCHEMA, type: ['integer', 'null'] },
    $version: { ...VERSION_SCHEMA, type: ['integer', 'null'] },
  },
  additionalProperties: true,
}

/** The record as a read returns it. */
export function describeRecord(options: SchemaOptions, model: Model): JsonObject {
  const { visibility } = options
  const fields = listReadable(visibility, model).filter(isReadByDefault)
  return {
    type: 'object',
    title: model.title,
    properties: {
      ...KEY_PROPERTIES,
      ...describeFields(fields, (field) => describeOutput(options, model, field)),
    },
    required: ['id', 'version', ...pickNames(fields.filter((field) => !visibility.mask(model, field)))],
  }
}

/** The record in a page, and as the answer to a write. Which fields it has depends on the request. */
export function describeItem(options: SchemaOptions, model: Model): JsonObject {
  const { visibility } = options
  const fields = listReadable(visibility, model)
  const describeField = (field: Field) => describeOutput(options, model, field, options.isBrief !== true)
  const listed = model.listFields.filter((name) => visibility.findReadable(model, name))
  return {
    type: 'object',
    title: model.title,
    description: `In a page without \`fields\`: ${['id', 'version', ...listed].join(', ')}. A path in \`fields\` is a key such as "company.name".`,
    properties: {
      ...KEY_PROPERTIES,
      ...describeFields(fields, describeField),
    },
    required: ['id', 'version'],
    additionalProperties: true,
  }
}

export function describeCreate(options: SchemaOptions, model: Model): JsonObject {
  const required = model.requiredInputs.filter((field) => options.visibility.isVisible(model, field))
  return {
    type: 'object',
    title: model.title,
    properties: {
      id: { type: 'null' },
      version: { type: 'null' },
      ...describeInputs(options, model, describeNewValue),
    },
    ...(required.length > 0 ? { required: pickNames(required) } : {}),
    additionalProperties: !options.refusesUnknownFields,
  }
}

export function describeUpdate(options: SchemaOptions, model: Model): JsonObject {
  return {
    type: 'object',
    title: model.title,
    properties: {
      id: { ...ID_SCHEMA, type: ['integer', 'null'] },
      version: {
        ...VERSION_SCHEMA,
        type: ['integer', 'null'],
        description: 'The version that the update is based on.',
      },
      ...describeInputs(options, model, describeInput),
    },
    additionalProperties: !options.refusesUnknownFields,
  }
}

/** The record where another record refers to it. */
export function describeReference(options: SchemaOptions, model: Model): JsonObject {
  const { visibility } = options
  const name = model.nameField === undefined ? undefined : visibility.findReadable(model, model.nameField)
  const isShown = name && !visibility.mask(model, name)
  return {
    type: 'object',
    title: model.title,
    properties: {
      id: ID_SCHEMA,
      $version: VERSION_SCHEMA,
      ...(name ? { [name.name]: describeOutput(options, model, name) } : {}),
    },
    required: ['id', '$version', ...(isShown ? [name.name] : [])],
  }
}

/** The record where a request sends it inside another one. */
export function describeRelatedInput(options: SchemaOptions, model: Model): JsonObject {
  const nested = { ...options, isNested: true }
  const canBeWritten = !model.isReadOnly && !model.isReferenceOnly
  return {
    ...RELATED_INPUT_SCHEMA,
    title: model.title,
    ...(canBeWritten
      ? {
          properties: {
            ...(RELATED_INPUT_SCHEMA['properties'] as JsonObject),
            ...describeInputs(nested, model, describeInput),
          },
        }
      : { description: 'Refers to a record by its id.', required: ['id'] }),
  }
}

/** Lists the models whose records answers contain as references. */
export function listOutputTargets(visibility: Visibility, model: Model): readonly Model[] {
  return collectTargets(visibility, listReadable(visibility, model))
}

/** Lists the models whose records a request may contain inside a record of this model. */
export function listInputTargets(visibility: Visibility, model: Model): readonly Model[] {
  return collectTargets(
    visibility,
    listInputFields(visibility, model).filter((field) => isWritable(field)),
  )
}

function collectTargets(visibility: Visibility, fields: readonly Field[]): readonly Model[] {
  return [...new Set(fields.flatMap(({ relation }) => (relation ? [visibility.getTarget(relation)] : [])))]
}

function listReadable(visibility: Visibility, model: Model): readonly Field[] {
  return [...model.fields.values()].filter(
    (field) => isReadable(field) && visibility.findReadable(model, field.name) !== undefined,
  )
}

function listInputFields(visibility: Visibility, model: Model): readonly Field[] {
  return [...model.fields.values()].filter((field) => visibility.isVisible(model, field) && !isInverse(field))
}

function pickNames(fields: readonly Field[]): string[] {
  return fields.map(({ name }) => name)
}

function describeFields(fields: readonly Field[], describe: (field: Field) => JsonObject): JsonObject {
  const properties: Record<string, JsonObject> = {}
  for (const field of fields) properties[field.name] = describe(field)
  return properties
}

type FieldDescriber = (options: InputOptions, model: Model, field: Field) => JsonObject

interface InputOptions extends SchemaOptions {
  /** Relations of the record are not described in detail. */
  readonly isNested?: boolean
}

/** The fields that a request may send. The service rejects inverse relations, and ignores the fields that it sets. */
function describeInputs(options: InputOptions, model: Model, describe: FieldDescriber): JsonObject {
  const { visibility, prefix } = options
  return describeFields(listInputFields(visibility, model), (field) =>
    isWritable(field) ? describe(options, model, field) : { $ref: `${prefix}${IGNORED_NAME}` },
  )
}

function describeInput(options: InputOptions, model: Model, field: Field): JsonObject {
  const { visibility, isBrief = false, isNested = false } = options
  const value = field.relation
    ? describeRelationInput(options, field)
    : allowNull(FIELD_SCHEMAS[field.type].input(field), !field.required)
  return {
    ...(isBrief || isNested ? {} : describeTitle(field)),
    ...value,
    ...(field.secret ? { writeOnly: true } : {}),
    ...(visibility.canWrite(model, field) ? {} : { readOnly: true }),
  }
}

/** In a create, the description also has the default. */
function describeNewValue(options: InputOptions, model: Model, field: Field): JsonObject {
  const { default: value, secret, type } = field
  const schema = describeInput({ ...options, isBrief: false }, model, field)
  if (value === undefined || value === null || secret) return schema
  if (value !== 'now' || !TIME_TYPES.includes(type)) return { ...schema, default: value }
  const help = field.help === undefined ? '' : `${field.help} `
  return { ...schema, description: `${help}Default: the time of the request.` }
}

function describeRelationInput({ prefix, isNested = false }: InputOptions, field: Field): JsonObject {
  const target = field.relation?.target ?? ''
  const ref = { $ref: `${prefix}${isNested ? RELATED_INPUT_NAME : `${toComponentName(target)}Input`}` }
  if (isOwnedList(field)) return { type: 'array', items: ref, maxItems: MAX_OWNED_LIST_MEMBERS }
  return allowNull(ref, !field.required)
}

function describeOutput(
  { visibility, prefix }: SchemaOptions,
  model: Model,
  field: Field,
  hasTitle = true,
): JsonObject {
  const { relation } = field
  const title = hasTitle ? describeTitle(field) : {}
  if (!relation)
    return {
      ...title,
      ...allowNull(FIELD_SCHEMAS[field.type].output(field), !isAlwaysSet(field)),
      ...(isWritable(field) ? {} : { readOnly: true }),
    }
  const ref = { $ref: `${prefix}${toComponentName(relation.target)}Reference` }
  const isHiddenSometimes = visibility.mask(model, field) !== undefined || hidesTargets(visibility, relation)
  const value = relation.isList
    ? { type: 'array', items: ref }
    : allowNull(ref, !field.required || isInverse(field) || isHiddenSometimes)
  return { ...title, ...value, ...(isWritable(field) ? {} : { readOnly: true }) }
}

/** The service sets the time of creation of every record. */
function isAlwaysSet({ required, isSystem, name }: Field): boolean {
  return required || (isSystem && name === 'createdOn')
}

function describeTitle({ title, help }: Field): JsonObject {
  return { title, ...(help === undefined ? {} : { description: help }) }
}

/** A schema without a type accepts null anyway. */
function allowNull(schema: JsonObject, isNullable: boolean): JsonObject {
  if (!isNullable) return schema
  const { $ref, type, enum: values } = schema
  if ($ref !== undefined) return { anyOf: [schema, { type: 'null' }] }
  if (type === undefined || type === 'null') return schema
  return {
    ...schema,
    type: [...[type].flat(), 'null'],
    ...(Array.isArray(values) ? { enum: [...(values as unknown[]), null] } : {}),
  }
}
