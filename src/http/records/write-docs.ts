// Descriptions of the operations that write records, for the API documents.
import { MERGE_PATCH } from '../request/bodies.js'
import { DELETE_PARAMETERS } from '../request/parameters.js'
import type { JsonObject } from '../../model/values/value.js'
import {
  answerWithList,
  BODY_ERRORS,
  COUNT_SCHEMA,
  describeList,
  JSON_CONTENT,
  LOGIN_ERRORS,
  refTo,
  refToModel,
  type AnswerDocs,
  type AnswerHeaderName,
  type OperationDocs,
} from '../route/documentation.js'

export const WRITE_ERRORS = [
  ...LOGIN_ERRORS,
  ...BODY_ERRORS,
  'unknown-model',
  'not-found',
  'conflict',
  'not-unique',
  'invalid',
  'key-reused',
] as const
export const UPDATE_ERRORS = [...WRITE_ERRORS, 'stale-match'] as const

export const FIELDS_PROPERTY: JsonObject = refTo('VersoFieldNames')

export function describeSaved(headers: readonly AnswerHeaderName[]): AnswerDocs {
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
        properties: { ...data, records: { ...describeList(record), minItems: 1 } },
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
