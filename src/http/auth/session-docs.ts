// Descriptions of login, logout and password pages, for the API documents.
import type { JsonObject } from '../../model/values/value.js'
import {
  answerWithList,
  EMPTY_ANSWER,
  JSON_CONTENT,
  refTo,
  type AnswerDocs,
  type OperationDocs,
} from '../route/documentation.js'

const FORM_CONTENT = 'application/x-www-form-urlencoded'
const HTML_CONTENT = 'text/html'

const CREDENTIALS: JsonObject = {
  type: 'object',
  required: ['username', 'password'],
  properties: {
    username: { type: 'string' },
    password: { type: 'string', format: 'password' },
  },
}

function describeLogin(id: string): OperationDocs {
  return {
    id,
    group: 'Session',
    access: 'public',
    summary: 'Log in',
    description: 'Opens a session. Later requests send its cookie JSESSIONID.',
    body: {
      content: { [JSON_CONTENT]: CREDENTIALS, [FORM_CONTENT]: CREDENTIALS },
      fixedExample: { username: 'ada', password: 'correct horse battery' },
    },
    answers: {
      200: answerWithList('The account.', refTo('VersoAccount'), { headers: ['Set-Cookie', 'X-CSRF-Token'] }),
    },
    errors: ['bad-request', 'unauthenticated', 'forbidden', 'too-large'],
  }
}

export const LOGIN_DOCS = describeLogin('logIn')
/** Existing clients use this path. */
export const OLD_LOGIN_DOCS = describeLogin('logInAtOldPath')

function describeLogout(id: string): OperationDocs {
  return {
    id,
    group: 'Session',
    access: 'public',
    summary: 'Log out',
    answers: {
      200: { ...EMPTY_ANSWER, headers: ['Set-Cookie'] },
      ...(id === 'logOut'
        ? {}
        : {
            303: {
              description: 'A browser is redirected to the start page.',
              headers: ['Set-Cookie', 'Location'],
            },
          }),
    },
    errors: ['forbidden'],
  }
}

export const LOGOUT_DOCS = describeLogout('logOut')
export const LOGOUT_BY_GET_DOCS = describeLogout('logOutByGet')

const PAGE: AnswerDocs = {
  description: 'A page for a browser.',
  content: { [HTML_CONTENT]: { type: 'string' } },
}

/** Describes the page behind a one-time link, and the form that it sends. */
export function describeLinkPage(
  name: string,
  summary: string,
  fieldNames: readonly string[],
): { readonly show: OperationDocs; readonly submit: OperationDocs } {
  const form = {
    type: 'object',
    required: fieldNames,
    properties: Object.fromEntries(fieldNames.map((field) => [field, { type: 'string' }])),
  }
  const shared = { group: 'Session', access: 'public', query: LINK_PARAMETERS } as const
  return {
    show: {
      ...shared,
      id: `show${name}Form`,
      summary: `${summary}: the form`,
      answers: { 200: PAGE },
      errors: ['bad-request', 'not-found'],
    },
    submit: {
      ...shared,
      id: `submit${name}Form`,
      summary,
      body: { content: { [FORM_CONTENT]: form, [JSON_CONTENT]: form } },
      answers: {
        200: EMPTY_ANSWER,
        303: {
          description: 'A browser is redirected to a page that says what is next.',
          headers: ['Location'],
        },
      },
      errors: ['bad-request', 'forbidden', 'not-found', 'invalid', 'too-large'],
    },
  }
}

const LINK_PARAMETERS = { known: ['token'] }
