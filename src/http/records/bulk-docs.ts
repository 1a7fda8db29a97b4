// Descriptions of the operations that write several records, for the API documents.
import { MAX_BATCH_REQUESTS } from '../../model/write/batch.js'
import type { JsonObject } from '../../model/values/value.js'
import {
  answerWithList,
  COUNT_SCHEMA,
  describeEnvelope,
  describeList,
  JSON_CONTENT,
  refTo,
  refToModel,
  type OperationDocs,
} from '../route/documentation.js'
import { WRITE_ERRORS } from './write-docs.js'

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
        required: ['records'],
        properties: {
          records: {
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
        required: ['data', 'records'],
        properties: {
          data: refTo('VersoCondition'),
          records: {
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
    example: 'mass',
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
    fixedExample: { requests: [{ op: 'assert', model: 'verso.auth.User', id: 1, version: 0 }] },
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
