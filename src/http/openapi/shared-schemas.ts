// The schemas that do not depend on a model. Model names in verso.* are reserved, so no component of a model has one of these names.
import {
  ID_SCHEMA,
  IGNORED_NAME,
  IGNORED_SCHEMA,
  RELATED_INPUT_NAME,
  RELATED_INPUT_SCHEMA,
  VERSION_SCHEMA,
} from '../../formats/json-schema.js'
import { PERMISSION_ACTIONS } from '../../model/access/permissions.js'
import type { JsonObject } from '../../model/values/value.js'
import { COUNT_SCHEMA, describeEnvelope, describeList, refTo } from '../route/documentation.js'

const TEXT: JsonObject = { type: 'string' }
const NULLABLE_TEXT: JsonObject = { type: ['string', 'null'] }
const TIME: JsonObject = { type: 'string', format: 'date-time' }
const NULLABLE_TIME: JsonObject = { type: ['string', 'null'], format: 'date-time' }
const NAMES = describeList(TEXT)
const ANY_OBJECT: JsonObject = { type: 'object', additionalProperties: true }

/** An object whose listed properties are always present. */
export function describeObject(properties: JsonObject, optional: JsonObject = {}): JsonObject {
  return { type: 'object', required: Object.keys(properties), properties: { ...properties, ...optional } }
}

const ACCOUNT: JsonObject = {
  id: ID_SCHEMA,
  version: VERSION_SCHEMA,
  username: TEXT,
  name: NULLABLE_TEXT,
  roles: NAMES,
}

const MODEL_PERMISSION = describeObject({
  model: TEXT,
  ...Object.fromEntries(PERMISSION_ACTIONS.map((action) => [action, { type: 'boolean' }])),
  readable: { type: ['array', 'null'], items: TEXT, description: 'Null for all fields.' },
  writable: { type: ['array', 'null'], items: TEXT, description: 'Null for all fields.' },
  conditional: { type: 'boolean', description: 'True if a permission applies to some records only.' },
})

const CONDITION: JsonObject = {
  type: 'object',
  properties: {
    criteria: {
      ...describeList(ANY_OBJECT),
      description: 'Conditions such as `{"fieldName": "name", "operator": "=", "value": "x"}`.',
    },
    operator: { type: 'string', description: '`and` or `or`, between the criteria.' },
    _domain: { type: ['string', 'null'], description: 'A condition in the filter language.' },
    _domainContext: { type: ['object', 'null'], additionalProperties: true },
    _domains: describeList(ANY_OBJECT),
    _archived: { type: ['boolean', 'null'], description: 'True to include archived records.' },
  },
}

const SELECTION: JsonObject = {
  fields: { ...NAMES, description: 'Names of fields, and paths such as `company.name`.' },
}

const CHANGE = describeObject(
  {
    seq: COUNT_SCHEMA,
    model: TEXT,
    id: ID_SCHEMA,
    version: VERSION_SCHEMA,
    action: { type: 'string', enum: ['create', 'update', 'delete'] },
    on: TIME,
    by: { anyOf: [refTo('VersoUser'), { type: 'null' }] },
    changes: { type: 'object', additionalProperties: describeObject({}, { before: {}, after: {} }) },
  },
  { purged: { type: 'boolean', const: true, description: 'The values were purged.' } },
)

/** Schemas by name. */
export const SHARED_SCHEMAS: Readonly<Record<string, JsonObject>> = {
  VersoId: ID_SCHEMA,
  VersoRecordKey: describeObject({ id: ID_SCHEMA, version: VERSION_SCHEMA }),
  VersoRecord: {
    ...describeObject({ id: ID_SCHEMA, version: VERSION_SCHEMA }),
    description: 'A record with the fields that the request selects.',
    additionalProperties: true,
  },
  VersoFieldNames: {
    ...NAMES,
    description: 'The fields that the answer contains. All fields by default.',
  },
  VersoUser: describeObject({ id: ID_SCHEMA, $version: VERSION_SCHEMA, name: NULLABLE_TEXT }),
  VersoDone: describeEnvelope({ type: 'array', maxItems: 0, items: ANY_OBJECT }),
  VersoAccount: describeObject(ACCOUNT),
  VersoOwnAccount: describeObject({
    ...ACCOUNT,
    admin: { type: 'boolean' },
    lastLoginOn: NULLABLE_TIME,
    via: { type: 'string', enum: ['session', 'key', 'basic'] },
    permissions: describeList(MODEL_PERMISSION),
  }),
  VersoCondition: CONDITION,
  VersoSelection: {
    type: 'object',
    properties: {
      ...SELECTION,
      related: {
        type: 'object',
        additionalProperties: NAMES,
        description: 'Fields of related records, by relation.',
      },
    },
  },
  VersoSearch: {
    type: 'object',
    properties: {
      offset: COUNT_SCHEMA,
      limit: COUNT_SCHEMA,
      ...SELECTION,
      sortBy: { ...NAMES, description: 'Names of fields and paths; a minus before one reverses its order.' },
      count: { type: 'string', const: 'none', description: 'Omits the total.' },
      data: refTo('VersoCondition'),
    },
  },
  VersoChange: CHANGE,
  [IGNORED_NAME]: IGNORED_SCHEMA,
  [RELATED_INPUT_NAME]: RELATED_INPUT_SCHEMA,
}
