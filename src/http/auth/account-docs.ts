// Descriptions of the operations on the own account, on API keys and on sessions of other users, for the API documents.
import type { JsonObject } from '../../model/values/value.js'
import {
  answerWithList,
  BODY_ERRORS,
  bodyWithData,
  COUNT_SCHEMA,
  EMPTY_ANSWER,
  LOGIN_ERRORS,
  refTo,
  type OperationDocs,
} from '../route/documentation.js'

const OWN = { group: 'Account', access: 'password' } as const
const ADMIN = { group: 'Administration', access: 'admin' } as const

export const SHOW_ACCOUNT_DOCS: OperationDocs = {
  group: 'Account',
  access: 'login',
  id: 'showAccount',
  summary: 'Show the own account with its permissions',
  answers: { 200: answerWithList('The account.', refTo('VersoOwnAccount')) },
  errors: LOGIN_ERRORS,
}

export const CHANGE_PASSWORD_DOCS: OperationDocs = {
  ...OWN,
  id: 'changePassword',
  summary: 'Change the own password',
  description: 'Ends all other sessions of the user.',
  body: bodyWithData(
    {
      type: 'object',
      required: ['old', 'new'],
      properties: {
        old: { type: 'string', format: 'password' },
        new: { type: 'string', format: 'password' },
      },
    },
    { data: { old: 'correct horse battery', new: 'staple my new horse' } },
  ),
  answers: { 200: EMPTY_ANSWER },
  errors: [...LOGIN_ERRORS, ...BODY_ERRORS, 'invalid'],
}

const SESSION: JsonObject = {
  type: 'object',
  required: ['id', 'createdOn', 'lastSeenOn', 'address', 'agent', 'current'],
  properties: {
    id: { type: 'string', description: 'Identifies the session in a request that ends it.' },
    createdOn: { type: 'string', format: 'date-time' },
    lastSeenOn: { type: 'string', format: 'date-time' },
    address: { type: ['string', 'null'] },
    agent: { type: ['string', 'null'] },
    current: { type: 'boolean', description: 'True for the session of the request.' },
  },
}
const SESSIONS = answerWithList('The open sessions.', SESSION)

export const LIST_SESSIONS_DOCS: OperationDocs = {
  ...OWN,
  id: 'listSessions',
  summary: 'List the own sessions',
  answers: { 200: SESSIONS },
  errors: LOGIN_ERRORS,
}

export const END_OTHER_SESSIONS_DOCS: OperationDocs = {
  ...OWN,
  id: 'endOtherSessions',
  summary: 'End all other own sessions',
  answers: { 200: EMPTY_ANSWER },
  errors: LOGIN_ERRORS,
}

export const END_SESSION_DOCS: OperationDocs = {
  ...OWN,
  id: 'endSession',
  summary: 'End an own session',
  answers: { 200: EMPTY_ANSWER },
  errors: [...LOGIN_ERRORS, 'not-found'],
}

const KEY_PROPERTIES: JsonObject = {
  id: refTo('VersoId'),
  version: COUNT_SCHEMA,
  name: { type: 'string' },
  prefix: { type: ['string', 'null'], description: 'The first characters of the key, to identify it.' },
  expiresOn: { type: ['string', 'null'], format: 'date-time' },
  lastUsedOn: { type: ['string', 'null'], format: 'date-time' },
  createdOn: { type: ['string', 'null'], format: 'date-time' },
  roles: { type: 'array', items: { type: 'string' } },
}
const KEY: JsonObject = {
  type: 'object',
  required: Object.keys(KEY_PROPERTIES),
  properties: KEY_PROPERTIES,
}
const NEW_KEY: JsonObject = {
  type: 'object',
  required: [...Object.keys(KEY_PROPERTIES), 'key'],
  properties: {
    ...KEY_PROPERTIES,
    key: { type: 'string', description: 'The key. No other answer contains it.' },
  },
}

export const LIST_KEYS_DOCS: OperationDocs = {
  ...OWN,
  id: 'listKeys',
  summary: 'List the own API keys',
  answers: { 200: answerWithList('The API keys.', KEY, { others: { total: COUNT_SCHEMA } }) },
  errors: LOGIN_ERRORS,
}

export const ADD_KEY_DOCS: OperationDocs = {
  ...OWN,
  id: 'addKey',
  summary: 'Create an API key for the own account',
  body: bodyWithData(
    {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 100 },
        roles: {
          type: 'array',
          items: {
            anyOf: [
              { type: 'string' },
              { type: 'object', required: ['id'], properties: { id: refTo('VersoId') } },
            ],
          },
          description: 'The roles of the key, by name or id. All roles of the user by default.',
        },
        expiresOn: { type: ['string', 'null'], format: 'date-time' },
      },
    },
    { data: { name: 'nightly report' } },
  ),
  answers: { 200: answerWithList('The key, shown once.', NEW_KEY, { headers: ['Location'] }) },
  errors: [...LOGIN_ERRORS, ...BODY_ERRORS, 'not-found', 'invalid'],
}

export const DROP_KEY_DOCS: OperationDocs = {
  ...OWN,
  id: 'dropKey',
  summary: 'Delete an own API key',
  answers: { 200: answerWithList('The id of the deleted key.', refTo('VersoId')) },
  errors: [...LOGIN_ERRORS, 'not-found'],
}

export const LIST_USER_SESSIONS_DOCS: OperationDocs = {
  ...ADMIN,
  id: 'listUserSessions',
  summary: 'List the sessions of a user',
  answers: { 200: SESSIONS },
  errors: [...LOGIN_ERRORS, 'not-found'],
}

export const END_USER_SESSIONS_DOCS: OperationDocs = {
  ...ADMIN,
  id: 'endUserSessions',
  summary: 'End all sessions of a user',
  answers: { 200: EMPTY_ANSWER },
  errors: [...LOGIN_ERRORS, 'not-found'],
}

export const MAKE_RESET_LINK_DOCS: OperationDocs = {
  ...ADMIN,
  id: 'makeResetLink',
  summary: 'Make a link by which a user sets a new password',
  answers: {
    200: answerWithList('The link, which works once.', {
      type: 'object',
      required: ['link', 'expiresOn'],
      properties: { link: { type: 'string' }, expiresOn: { type: 'string', format: 'date-time' } },
    }),
  },
  errors: [...LOGIN_ERRORS, 'not-found'],
}
