// The snippet in TypeScript: a method of the client where it has one, otherwise `request`.
import { UPLOADED_FILE } from './call.mjs'
import { isJson } from './resolve-references.mjs'

/**
 * @typedef {import('./call.mjs').Call} Call
 */

/** Methods of the client by the method and the path behind the model. */
const MODEL_CALLS = /** @type {Record<string, (call: Call) => string>} */ ({
  'GET ': ({ query }) => `find(${quote(query)})`,
  'PUT ': ({ body }) => `create(${quote(readData(body))})`,
  'POST ': ({ body }) => `create(${quote(readData(body))})`,
  'GET /{id}': ({ ids }) => `read(${quote(ids['id'])})`,
  'POST /{id}': ({ ids, body }) => `update(${quote(ids['id'])}, () => (${quote(omitKey(readData(body)))}))`,
  'PATCH /{id}': ({ ids, body }) => `update(${quote(ids['id'])}, () => (${quote(omitKey(body))}))`,
  'DELETE /{id}': ({ ids, query }) => `remove(${listArguments(ids['id'], query)})`,
  'POST /search': ({ body }) => `search(${quote(body)})`,
  'POST /{id}/fetch': ({ ids, body }) => `fetch(${quote(ids['id'])}, ${quote(body)})`,
  'GET /{id}/history': ({ ids, query }) => `history(${listArguments(ids['id'], query)})`,
  'GET /deleted': ({ query }) => `deleted(${listArguments(query)})`,
  'POST /{id}/revert': ({ ids, body }) => `revert(${quote(ids['id'])}, ${quote(readData(body))})`,
  'POST /upload': ({ upload }) => writeUpload(upload),
  'GET /{id}/{field}/download': ({ ids }) => `download(${listArguments(ids['id'], ids['field'])})`,
  'DELETE /{id}/{field}/download': ({ ids, query }) =>
    `clear(${listArguments(ids['id'], ids['field'], query)})`,
})

/** Methods of the client by the method and the path. */
const GENERAL_CALLS = /** @type {Record<string, (call: Call) => string>} */ ({
  'POST /ws/batch': ({ body }) => `batch(${quote(isJson(body) ? body['requests'] : [])})`,
  'GET /ws/changes': ({ query }) => `changes(${listArguments(query)})`,
})

/**
 * Returns undefined if the client cannot read the response.
 * @param {Call} call
 * @param {string} baseUrl
 */
export function writeTypeScript(call, baseUrl) {
  const expression = findClientCall(call)
  if (expression === undefined && call.answer !== 'json') return undefined
  const credentials = call.needsKey ? ", { key: process.env.VERSO_KEY ?? '' }" : ''
  return [
    "import { connect } from 'verso-records/client'",
    '',
    `const verso = connect(${quote(baseUrl)}${credentials})`,
    ...writeStatements(call, expression),
  ].join('\n')
}

/**
 * @param {Call} call
 * @param {string | undefined} expression
 */
function writeStatements(call, expression) {
  const { method, path, query, body } = call
  if (expression === undefined) {
    const options = omitEmpty({ query, body })
    return [
      `const { body } = await verso.request(${listArguments(method, path, options)})`,
      'console.log(JSON.stringify(body))',
    ]
  }
  if (call.answer === 'file')
    return [
      `const file = await verso.${expression}`,
      'console.log(file?.name, (await file?.bytes())?.length)',
    ]
  // `remove` returns nothing.
  if (/\)\.remove\(/.test(expression)) return [`await verso.${expression}`]
  return [`const result = await verso.${expression}`, 'console.log(JSON.stringify(result))']
}

/** @param {Call} call */
function findClientCall(call) {
  const { method, template } = call
  const general = GENERAL_CALLS[`${method} ${template}`]
  if (general) return general(call)
  const [, model, rest = ''] = /^\/ws\/rest\/([^/{}]+)(\/.*)?$/.exec(template) ?? []
  const write = MODEL_CALLS[`${method} ${rest}`]
  return model !== undefined && write ? `model(${quote(model)}).${write(call)}` : undefined
}

/** @param {Call['upload']} upload */
function writeUpload(upload) {
  const { id, version, ...data } = /** @type {Record<string, unknown>} */ (readData(upload?.request))
  const values = { version, field: upload?.field, ...UPLOADED_FILE, ...omitEmpty({ data }) }
  return `upload(${quote(id)}, ${quote(values)})`
}

/** @param {unknown} body */
function readData(body) {
  return isJson(body) ? (body['data'] ?? {}) : {}
}

/**
 * The client reads the version of the record itself.
 * @param {unknown} data
 */
function omitKey(data) {
  if (!isJson(data)) return {}
  return Object.fromEntries(Object.entries(data).filter(([name]) => name !== 'id' && name !== 'version'))
}

/**
 * Returns the object without empty values.
 * @param {Record<string, unknown>} object
 */
function omitEmpty(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => !isEmpty(value)))
}

/** @param {unknown[]} values Trailing empty options are left out. */
function listArguments(...values) {
  const last = values.findLastIndex((value) => !isEmpty(value))
  return values
    .slice(0, last + 1)
    .map(quote)
    .join(', ')
}

/** @param {unknown} value */
function isEmpty(value) {
  return value === undefined || (isJson(value) && Object.keys(value).length === 0)
}

/**
 * JSON text is also an expression of TypeScript.
 * @param {unknown} value
 */
function quote(value) {
  return JSON.stringify(value) ?? 'undefined'
}
