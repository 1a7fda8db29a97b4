// Descriptions of the operations on files, for the API documents.
import type { JsonObject } from '../../model/values/value.js'
import { DELETE_PARAMETERS } from '../request/parameters.js'
import { refToModel, type OperationDocs } from '../route/documentation.js'
import { RECORD_ERRORS } from './read-docs.js'
import { describeSaved, FIELDS_PROPERTY, UPDATE_ERRORS } from './write-docs.js'

const FILE_CONTENT: Readonly<Record<string, JsonObject>> = {
  '*/*': { type: 'string', contentMediaType: 'application/octet-stream' },
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

export const DOWNLOAD_DOCS: OperationDocs = {
  access: 'login',
  permits: [['read']],
  id: 'download',
  needsFile: true,
  summary: 'Download the file of a field',
  headers: ['If-None-Match', 'Range', 'If-Range'],
  answers: {
    200: {
      description: 'The content of the file.',
      content: FILE_CONTENT,
      headers: ['ETag', 'Content-Disposition', 'Accept-Ranges'],
    },
    206: {
      description: 'The part of the file that `Range` names.',
      content: FILE_CONTENT,
      headers: ['ETag', 'Content-Disposition', 'Content-Range', 'Accept-Ranges'],
    },
    204: { description: 'The field has no file.' },
    304: { description: 'The file has not changed since the answer with this ETag.', headers: ['ETag'] },
  },
  errors: [...RECORD_ERRORS, 'range'],
}
