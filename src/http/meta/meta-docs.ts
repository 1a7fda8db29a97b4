// Descriptions of the operations about models and the state of the service, for the API documents.
import type { JsonObject } from '../../model/values/value.js'
import {
  answerWithList,
  COUNT_SCHEMA,
  describeEnvelope,
  EMPTY_ANSWER,
  JSON_CONTENT,
  LOGIN_ERRORS,
  type OperationDocs,
} from '../route/documentation.js'

const MODELS = { group: 'Models', access: 'login' } as const
const SERVICE = { group: 'Service', access: 'public', errors: [] } as const
const FREE_OBJECT: JsonObject = { type: 'object', additionalProperties: true }

const DEMO_ACCOUNT: JsonObject = {
  type: 'object',
  description:
    'Only in `verso demo` on this computer, while the account of the demo has its public password.',
  required: ['username', 'password'],
  properties: { username: { type: 'string' }, password: { type: 'string' } },
}

export const LIST_MODELS_DOCS: OperationDocs = {
  ...MODELS,
  id: 'listModels',
  summary: 'List the names of the models',
  answers: {
    200: answerWithList('The names, sorted.', { type: 'string' }, { others: { total: COUNT_SCHEMA } }),
  },
  errors: LOGIN_ERRORS,
}

export const DESCRIBE_MODEL_DOCS: OperationDocs = {
  ...MODELS,
  id: 'describeModel',
  summary: 'Describe the fields of a model for forms',
  answers: {
    200: {
      description: 'The model.',
      content: {
        [JSON_CONTENT]: describeEnvelope({
          type: 'object',
          required: ['model', 'title', 'fields', 'perms'],
          properties: {
            model: { type: 'string' },
            title: { type: 'string' },
            fields: { type: 'array', items: FREE_OBJECT },
            listFields: { type: 'array', items: { type: 'string' } },
            jsonFields: FREE_OBJECT,
            perms: { type: ['object', 'null'], additionalProperties: { type: 'boolean' } },
          },
        }),
      },
    },
  },
  errors: [...LOGIN_ERRORS, 'unknown-model'],
}

export const APP_INFO_DOCS: OperationDocs = {
  ...SERVICE,
  id: 'showAppInfo',
  summary: 'Show the name of the service and the login path',
  description: 'Users who are logged in also get their account and limits.',
  answers: {
    200: {
      description: 'An object without an envelope.',
      content: {
        [JSON_CONTENT]: {
          type: 'object',
          required: ['application', 'authentication'],
          properties: {
            application: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
            authentication: {
              type: 'object',
              required: ['callbackUrl'],
              properties: { callbackUrl: { type: 'string' }, demo: DEMO_ACCOUNT },
            },
            user: FREE_OBJECT,
            api: FREE_OBJECT,
            data: FREE_OBJECT,
          },
        },
      },
    },
  },
  errors: ['bad-request'],
}

export const HEALTH_DOCS: OperationDocs = {
  ...SERVICE,
  id: 'checkHealth',
  summary: 'Check that the process answers',
  answers: { 200: EMPTY_ANSWER },
}

export const READINESS_DOCS: OperationDocs = {
  ...SERVICE,
  id: 'checkReadiness',
  summary: 'Check that the service can read, or with `write` that it can write',
  query: { known: ['write'] },
  answers: {
    200: answerWithList('Whether the service can write.', {
      type: 'object',
      required: ['writable'],
      properties: {
        writable: { type: 'boolean' },
        problem: { type: 'string', description: 'Why it cannot write, for programs.' },
        reason: { type: 'string', description: 'Why it cannot write, for operators.' },
        warnings: {
          type: 'array',
          description: 'Problems that do not keep the service from working.',
          items: { type: 'string' },
        },
      },
      additionalProperties: true,
    }),
  },
  errors: ['busy'],
}
