// Descriptions of the operations that read records, for the API documents.
import { FIND_PARAMETERS, PAGING_PARAMETERS } from '../../model/query/search.js'
import { DELETED_PARAMETERS } from '../../service/log/deleted-records.js'
import { DETAILS_PARAMETERS, PERMS_PARAMETERS, READ_PARAMETERS } from '../request/parameters.js'
import {
  answerWithList,
  BODY_ERRORS,
  COUNT_SCHEMA,
  EMPTY_ANSWER,
  JSON_CONTENT,
  LOGIN_ERRORS,
  refTo,
  refToModel,
  type AnswerDocs,
  type OperationDocs,
} from '../route/documentation.js'

/** The errors of every operation on a model. */
export const MODEL_ERRORS = [...LOGIN_ERRORS, 'unknown-model'] as const
export const RECORD_ERRORS = [...MODEL_ERRORS, 'not-found'] as const
const READ = { access: 'login', permits: [['read']] } as const

const PAGE: AnswerDocs = {
  description: 'A page of records.',
  content: { [JSON_CONTENT]: refToModel('Page') },
  headers: ['X-Commit-Seq'],
}
/** A record with the fields that the request selects. */
const SELECTED: AnswerDocs = answerWithList('The record.', refTo('VersoRecord'), { headers: ['ETag'] })

export const FIND_DOCS: OperationDocs = {
  ...READ,
  id: 'find',
  summary: 'Find records',
  query: FIND_PARAMETERS,
  answers: { 200: { ...PAGE, headers: ['X-Commit-Seq', 'Link', 'X-Next-After'] } },
  errors: [...MODEL_ERRORS, 'too-large'],
}

export const SEARCH_DOCS: OperationDocs = {
  ...READ,
  id: 'search',
  summary: 'Search records by criteria',
  body: {
    isOptional: true,
    content: { [JSON_CONTENT]: refTo('VersoSearch') },
    fixedExample: { data: { criteria: [{ fieldName: 'id', operator: '>', value: 0 }] }, limit: 10 },
  },
  answers: { 200: PAGE },
  errors: [...MODEL_ERRORS, ...BODY_ERRORS],
}

export const READ_DOCS: OperationDocs = {
  ...READ,
  id: 'read',
  summary: 'Read a record',
  query: READ_PARAMETERS,
  headers: ['If-None-Match'],
  answers: {
    200: {
      description: 'The record.',
      content: { [JSON_CONTENT]: refToModel('Result') },
      headers: ['ETag'],
    },
    304: { description: 'The record has not changed since the answer with this ETag.', headers: ['ETag'] },
  },
  errors: [...RECORD_ERRORS, 'gone', 'too-large'],
}

export const FETCH_DOCS: OperationDocs = {
  ...READ,
  id: 'fetch',
  summary: 'Read selected fields of a record and of its related records',
  body: {
    isOptional: true,
    content: { [JSON_CONTENT]: refTo('VersoSelection') },
    fixedExample: { fields: ['id'] },
  },
  answers: { 200: SELECTED },
  errors: [...RECORD_ERRORS, ...BODY_ERRORS],
}

export const DETAILS_DOCS: OperationDocs = {
  ...READ,
  id: 'details',
  summary: 'Read one field of a record',
  query: DETAILS_PARAMETERS,
  answers: { 200: answerWithList('The id, the version and the field.', refTo('VersoRecord')) },
  errors: [...RECORD_ERRORS, 'too-large'],
}

export const COPY_DOCS: OperationDocs = {
  ...READ,
  id: 'copy',
  summary: 'Get the values of a record for a new one',
  description: 'Nothing is stored. Send the values with a create.',
  answers: {
    200: answerWithList('The values of a new record.', { type: 'object', additionalProperties: true }),
  },
  errors: [...RECORD_ERRORS, 'too-large'],
}

export const PERMS_DOCS: OperationDocs = {
  id: 'permitted',
  access: 'login',
  summary: 'List the permitted actions',
  query: PERMS_PARAMETERS,
  answers: {
    200: answerWithList('The permitted actions on the model, or on one record.', {
      type: 'string',
      enum: ['READ', 'CREATE', 'WRITE', 'REMOVE', 'EXPORT'],
    }),
  },
  errors: RECORD_ERRORS,
}

export const VERIFY_DOCS: OperationDocs = {
  ...READ,
  id: 'verify',
  summary: 'Check that a record is still at its version',
  body: {
    content: {
      [JSON_CONTENT]: { type: 'object', required: ['data'], properties: { data: refTo('VersoRecord') } },
    },
    fixedExample: { data: { id: 1, version: 0 } },
  },
  answers: { 200: EMPTY_ANSWER },
  errors: [...RECORD_ERRORS, ...BODY_ERRORS, 'conflict'],
}

export const EXPORT_DOCS: OperationDocs = {
  id: 'export',
  access: 'login',
  permits: [['read', 'export']],
  summary: 'Export the records of a search as CSV',
  body: {
    isOptional: true,
    content: { [JSON_CONTENT]: refTo('VersoSearch') },
    fixedExample: { fields: ['id'] },
  },
  answers: {
    200: {
      description: 'A table with a line of headings.',
      content: { 'text/csv': { type: 'string' } },
      headers: ['Content-Disposition'],
    },
  },
  errors: [...MODEL_ERRORS, ...BODY_ERRORS],
}

export const HISTORY_DOCS: OperationDocs = {
  ...READ,
  id: 'history',
  summary: 'List the changes of a record',
  description: 'The newest change comes first. Works for deleted records, too.',
  query: PAGING_PARAMETERS,
  answers: {
    200: answerWithList('A page of changes.', refTo('VersoChange'), {
      headers: ['X-Commit-Seq', 'Link'],
      others: { offset: COUNT_SCHEMA, total: COUNT_SCHEMA },
    }),
  },
  errors: [...RECORD_ERRORS, 'gone', 'too-large'],
}

export const VERSION_DOCS: OperationDocs = {
  ...READ,
  id: 'atVersion',
  summary: 'Read a record as it was at a version',
  answers: { 200: answerWithList('The record at that version.', refTo('VersoRecord')) },
  errors: [...RECORD_ERRORS, 'gone', 'too-large'],
}

export const DELETED_DOCS: OperationDocs = {
  ...READ,
  id: 'deleted',
  summary: 'Find deleted records',
  description:
    'The record that was deleted last comes first. Revert a record to restore it. A page may have fewer changes than `limit`.',
  query: DELETED_PARAMETERS,
  answers: {
    200: answerWithList('The changes that deleted the records.', refTo('VersoChange'), {
      optional: {
        next: {
          ...COUNT_SCHEMA,
          description: 'The value of `before` for the next page. Absent on the last page.',
        },
      },
    }),
  },
  errors: MODEL_ERRORS,
}
