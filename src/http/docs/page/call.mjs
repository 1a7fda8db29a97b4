// One call of an operation, as all languages write it.
import { describeRequest, FORM_TYPE } from './request-values.mjs'
import { resolveReference } from './resolve-references.mjs'

/**
 * @typedef {import('./request-values.mjs').ApiDocument} ApiDocument
 * @typedef {import('./request-values.mjs').Operation} Operation
 * @typedef {import('./request-values.mjs').UploadParts} UploadParts
 * @typedef {'json' | 'text' | 'file'} AnswerKind
 * @typedef {{ method: string, path: string, template: string, ids: Record<string, unknown>, query: Record<string, unknown>, headers: Record<string, string>, needsKey: boolean, body?: unknown, upload?: UploadParts | undefined, answer: AnswerKind }} Call
 */

/** The file that an upload sends. */
export const UPLOADED_FILE = { name: 'hello.txt', content: 'Hello' }

/**
 * Returns undefined if the call takes no API key, or if a value that it needs is not known.
 * @param {import('./request-values.mjs').RequestSource} source
 * @returns {Call | undefined}
 */
export function describeCall(source) {
  const { document, path, method } = source
  const { operation, parameters, type, body, upload, isComplete } = describeRequest(source)
  if (!isComplete || !acceptsKey(operation)) return undefined
  const select = (/** @type {string} */ place) =>
    parameters.filter((parameter) => parameter.in === place && parameter.value !== undefined)
  const collect = (/** @type {string} */ place) =>
    Object.fromEntries(select(place).map(({ name, value }) => [name, value]))
  const ids = collect('path')
  const headers = Object.fromEntries(select('header').map(({ name, value }) => [name, String(value)]))
  return {
    method: method.toUpperCase(),
    path: path.replaceAll(/\{([^}]+)\}/g, (_, name) => encodeURIComponent(String(ids[name]))),
    template: path,
    ids,
    query: collect('query'),
    headers: type === undefined || type === FORM_TYPE ? headers : { ...headers, 'Content-Type': type },
    needsKey: operation.security?.length !== 0,
    body,
    upload,
    answer: findAnswerKind(document, operation),
  }
}

/**
 * Operations without `security` take what the document lists, which includes keys; an empty list means that they need no credentials.
 * @param {Operation} operation
 */
function acceptsKey({ security = [] }) {
  return security.length === 0 || security.some((scheme) => 'key' in scheme || 'bearer' in scheme)
}

/**
 * @param {ApiDocument} document
 * @param {Operation} operation
 * @returns {AnswerKind}
 */
function findAnswerKind(document, { responses = {} }) {
  const [status] = Object.keys(responses).filter((each) => each.startsWith('2'))
  const response = /** @type {{ content?: object } | undefined} */ (
    resolveReference(document, responses[status ?? ''])
  )
  const types = Object.keys(response?.content ?? {})
  if (types.length === 0 || types.some((type) => /[/+]json$/.test(type))) return 'json'
  return types.every((type) => type.startsWith('text/')) ? 'text' : 'file'
}
