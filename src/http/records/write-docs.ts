// Descriptions of the operations that write records, for the API documents.
import { MAX_BATCH_REQUESTS } from '../../model/write/batch.js'
import { MERGE_PATCH } from '../request/bodies.js'
import { DELETE_PARAMETERS } from '../request/parameters.js'
import type { JsonObject } from '../../model/values/value.js'
import {
  answerWithList,
  BODY_ERRORS,
  COUNT_SCHEMA,
  describeEnvelope,
  describeList,
  JSON_CONTENT,
  LOGIN_ERRORS,
  refTo,
  refToModel,
  type AnswerDocs,
  type AnswerHeaderName,
  type OperationDocs,
} from '../route/documentation.js'

const WRITE_ERRORS = [
  ...LOGIN_ERRORS,
  ...BODY_ERRORS,
  'unknown-model',
  'not-found',
  'conflict',
  'not-unique',
  'invalid',
  'key-reused',
] as const
const UPDATE_ERRORS = [...WRITE_ERRORS, 'stale-match'] as const

const RECORD_PROPERTY = 'records'
const FIELDS_PROPERTY: JsonObject = {
  ...describeList({ type: 'string' }),
  description: 'The fields that the answer contains. All fields by default.',
}

function describeSaved(headers: readonly AnswerHeaderName[]): AnswerDocs {
  return {
    description: 'The records as they are now.',
    content: { [JSON_CONTENT]: refToModel('Saved') },
    headers: [...headers, 'Idempotency-Replayed'],
  }
}

/** A body with one record in `data` or several in `records`. */
function describeRecordBody(record: JsonObject, isRequired: boolean): JsonObject {
  const data = { data: record, fields: FIELDS_PROPERTY }
  return isRequired
    ? { type: 'object', required: ['data'], properties: data }
    : {
        type: 'object',
        properties: { ...data, [RECORD_PROPERTY]: { ...describeList(record), minItems: 1 } },
      }
}

export const CREATE_DOCS: OperationDocs = {
  id: 'create',
  access: 'login',
  permits: [['create']],
  summary: 'Create a record',
  description: 'Send one record in `data`, or several in `records`.',
  headers: ['Idempotency-Key'],
  body: { content: { [JSON_CONTENT]: describeRecordBody(refToModel('Create'), false) }, example: 'create' },
  answers: { 200: describeSaved(['ETag', 'Location']) },
  errors: WRITE_ERRORS,
}

export const SAVE_DOCS: OperationDocs = {
  id: 'save',
  access: 'login',
  permits: [['create'], ['update']],
  summary: 'Create records without an id and update the others',
  description: 'Send one record in `data`, or several in `records`. All of them are one transaction.',
  headers: ['Idempotency-Key', 'If-Match', 'Prefer'],
  body: { content: { [JSON_CONTENT]: describeRecordBody(refToModel('Update'), false) }, example: 'create' },
  answers: { 200: describeSaved(['ETag', 'Location', 'Preference-Applied']) },
  errors: UPDATE_ERRORS,
}

export const UPDATE_DOCS: OperationDocs = {
  id: 'update',
  access: 'login',
  permits: [['update']],
  summary: 'Update a record',
  description: 'Send the version that the update is based on, as `data.version` or as `If-Match`.',
  headers: ['Idempotency-Key', 'If-Match', 'Prefer'],
  body: { content: { [JSON_CONTENT]: describeRecordBody(refToModel('Update'), true) }, example: 'update' },
  answers: { 200: describeSaved(['ETag', 'Preference-Applied']) },
  errors: UPDATE_ERRORS,
}

export const PATCH_DOCS: OperationDocs = {
  id: 'patch',
  access: 'login',
  permits: [['update']],
  summary: 'Update fields of a record',
  description:
    'Send the fields without an envelope, and the version that the update is based on as `If-Match` or as `version`. Objects for JSON fields are merge patches.',
  headers: ['Idempotency-Key', 'If-Match', 'Prefer'],
  body: { content: { [MERGE_PATCH]: refToModel('Update') }, example: 'patch' },
  answers: { 200: describeSaved(['ETag', 'Preference-Applied']) },
  errors: UPDATE_ERRORS,
}

export const REMOVE_DOCS: OperationDocs = {
  id: 'remove',
  access: 'login',
  permits: [['remove']],
  summary: 'Delete a record',
  query: DELETE_PARAMETERS,
  headers: ['Idempotency-Key', 'If-Match', 'Prefer'],
  answers: {
    200: answerWithList(
      'The id of the deleted record, or an object with it after `Prefer: return=representation`.',
      {
        anyOf: [refTo('VersoId'), { type: 'object', required: ['id'], properties: { id: refTo('VersoId') } }],
      },
      { headers: ['Idempotency-Replayed', 'Preference-Applied'] },
    ),
  },
  errors: [
    ...LOGIN_ERRORS,
    'unknown-model',
    'not-found',
    'conflict',
    'stale-match',
    'still-referenced',
    'key-reused',
    'invalid',
  ],
}

export const REMOVE_ALL_DOCS: OperationDocs = {
  id: 'bulkRemove',
  access: 'login',
  permits: [['remove']],
  summary: 'Delete several records',
  headers: ['Idempotency-Key'],
  body: {
    content: {
      [JSON_CONTENT]: {
        type: 'object',
        required: [RECORD_PROPERTY],
        properties: {
          [RECORD_PROPERTY]: {
            ...describeList({
              type: 'object',
              required: ['id'],
              properties: { id: refTo('VersoId'), version: COUNT_SCHEMA },
            }),
            minItems: 1,
          },
        },
      },
    },
    fixedExample: { records: [{ id: 1, version: 0 }] },
  },
  answers: {
    200: answerWithList('The deleted records with their last versions.', refTo('VersoRecordKey'), {
      headers: ['Idempotency-Replayed'],
    }),
  },
  errors: [...WRITE_ERRORS, 'still-referenced'],
}

export const MASS_UPDATE_DOCS: OperationDocs = {
  id: 'massUpdate',
  access: 'login',
  permits: [['read', 'update']],
  summary: 'Make the same change in all records that match',
  headers: ['Idempotency-Key'],
  body: {
    content: {
      [JSON_CONTENT]: {
        type: 'object',
        required: ['data', RECORD_PROPERTY],
        properties: {
          data: refTo('VersoCondition'),
          [RECORD_PROPERTY]: {
            ...describeList(refToModel('Update')),
            minItems: 1,
            maxItems: 1,
            description: 'One object: the values to set.',
          },
          expected: {
            ...COUNT_SCHEMA,
            description: 'The number of records that must match. Nothing is written if another number does.',
          },
        },
      },
    },
  },
  answers: {
    200: {
      description: 'The number of changed records in `total`.',
      content: {
        [JSON_CONTENT]: describeEnvelope(
          { ...describeList({ type: 'object' }), maxItems: 0 },
          { total: COUNT_SCHEMA },
        ),
      },
      headers: ['Idempotency-Replayed'],
    },
  },
  errors: WRITE_ERRORS,
}

export const REVERT_DOCS: OperationDocs = {
  id: 'revert',
  access: 'login',
  permits: [['read', 'update']],
  summary: 'Restore the values of an earlier version',
  description: 'Restores a deleted record, too.',
  headers: ['Idempotency-Key', 'If-Match'],
  body: {
    content: {
      [JSON_CONTENT]: {
        type: 'object',
        required: ['data'],
        properties: {
          data: {
            type: 'object',
            required: ['to'],
            properties: {
              version: {
                ...COUNT_SCHEMA,
                description: 'The current version. `If-Match` may have it instead.',
              },
              to: { ...COUNT_SCHEMA, description: 'The version whose values the record gets again.' },
            },
          },
          fields: FIELDS_PROPERTY,
        },
      },
    },
    fixedExample: { data: { version: 1, to: 0 } },
  },
  answers: { 200: describeSaved(['ETag']) },
  errors: [...UPDATE_ERRORS, 'gone'],
}

export const UPLOAD_DOCS: OperationDocs = {
  id: 'upload',
  access: 'login',
  permits: [['create'], ['update']],
  needsFile: true,
  summary: 'Store a file in a field of a record',
  description: 'Updates the record in `request`, or creates one if `request` has no id.',
  headers: ['Idempotency-Key', 'If-Match'],
  body: {
    content: {
      'multipart/form-data': {
        type: 'object',
        required: ['file'],
        properties: {
          request: {
            type: 'object',
            properties: { data: refToModel('Update'), fields: FIELDS_PROPERTY },
            description: 'JSON: the id and the version of the record, and values of other fields.',
          },
          field: { type: 'string', description: 'The field. Optional if the model has only one for files.' },
          file: { type: 'string', contentMediaType: 'application/octet-stream' },
        },
      },
    },
  },
  answers: { 200: describeSaved(['ETag', 'Location']) },
  errors: UPDATE_ERRORS,
}

export const CLEAR_DOCS: OperationDocs = {
  id: 'clear',
  access: 'login',
  permits: [['update']],
  needsFile: true,
  summary: 'Remove the file of a field',
  description: 'This is an update: send the version as `version` or as `If-Match`.',
  query: DELETE_PARAMETERS,
  headers: ['Idempotency-Key', 'If-Match'],
  answers: { 200: describeSaved(['ETag']) },
  errors: UPDATE_ERRORS,
}

const BATCH_REQUEST: JsonObject = {
  type: 'object',
  required: ['op', 'model'],
  properties: {
    op: { type: 'string', enum: ['create', 'update', 'delete', 'assert'] },
    model: { type: 'string' },
    id: {
      // A property called `$ref` would be taken for a reference by programs that read the document.
      anyOf: [refTo('VersoId'), { type: 'object', additionalProperties: { type: 'string' } }],
      description:
        'The record; or `{"$ref": "a"}`, the record that an earlier request with `ref: "a"` creates.',
    },
    version: COUNT_SCHEMA,
    data: { type: 'object', additionalProperties: true },
    ref: { type: 'string', description: 'A name by which later requests refer to the created record.' },
  },
}

export const BATCH_DOCS: OperationDocs = {
  id: 'batch',
  group: 'Records',
  access: 'login',
  summary: 'Write records of several models in one transaction',
  headers: ['Idempotency-Key', 'Prefer'],
  body: {
    content: {
      [JSON_CONTENT]: {
        type: 'object',
        required: ['requests'],
        properties: {
          requests: { ...describeList(BATCH_REQUEST), minItems: 1, maxItems: MAX_BATCH_REQUESTS },
        },
      },
    },
  },
  answers: {
    200: answerWithList(
      'One result for each request: the record, the id of a deleted record, or the id and version of an asserted one.',
      { anyOf: [refTo('VersoRecord'), refTo('VersoId')] },
      { headers: ['Idempotency-Replayed', 'Preference-Applied'] },
    ),
  },
  errors: [...WRITE_ERRORS, 'still-referenced'],
}
