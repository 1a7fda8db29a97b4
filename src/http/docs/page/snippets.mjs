// Programs that make one call, in curl, TypeScript and Python. They are made from the operation of the OpenAPI document and its example.
// Every snippet takes the API key from the environment variable VERSO_KEY.

import { isJson, resolveReference } from './resolve-references.mjs'

/**
 * @typedef {Record<string, unknown>} Json
 * @typedef {{ id: number, version: number }} Sample
 * @typedef {{ name: string, in: string, required?: boolean, example?: unknown, schema?: { example?: unknown, default?: unknown } }} Parameter
 * @typedef {{ schema?: unknown, example?: unknown, examples?: Record<string, { value?: unknown }> }} MediaType
 * @typedef {{ parameters?: unknown[], requestBody?: unknown, security?: Record<string, unknown>[] }} Operation
 * @typedef {{ paths: Record<string, Record<string, unknown>> } & Json} ApiDocument
 * @typedef {{ document: ApiDocument, path: string, method: string, baseUrl: string, sample?: Sample | undefined }} SnippetSource
 * @typedef {{ method: string, path: string, ids: Record<string, unknown>, query: Record<string, unknown>, headers: Record<string, string>, body?: unknown, template: string }} Call
 */

/** Optional parameters that a newcomer wants to see, with the value that a snippet gives them. */
const USUAL_QUERY = /** @type {Record<string, unknown>} */ ({ limit: 10 })

/**
 * Returns the snippets by language. A call with a body other than JSON has none, nor has a call that takes no API key.
 * @param {SnippetSource} source
 * @returns {{ label: string, text: string }[]}
 */
export function buildSnippets(source) {
  const call = describeCall(source)
  if (!call) return []
  const { baseUrl } = source
  return [
    { label: 'curl', text: writeCurl(call, baseUrl) },
    { label: 'TypeScript', text: writeTypeScript(call, baseUrl) },
    { label: 'Python', text: writePython(call, baseUrl) },
  ]
}

/**
 * @param {SnippetSource} source
 * @returns {Call | undefined}
 */
function describeCall({ document, path, method, sample }) {
  const item = document.paths[path] ?? {}
  const operation = /** @type {Operation} */ (item[method] ?? {})
  if (!acceptsKey(operation)) return undefined
  const parameters = [...asArray(item['parameters']), ...asArray(operation.parameters)].map(
    (parameter) => /** @type {Parameter} */ (resolveReference(document, parameter)),
  )
  const valueOf = (/** @type {Parameter} */ { name, example, schema }) => {
    if (name === 'id' && sample) return sample.id
    if (name === 'version' && sample) return sample.version
    return example ?? schema?.example ?? schema?.default ?? 1
  }
  const select = (/** @type {string} */ place) => parameters.filter((parameter) => parameter.in === place)
  const ids = Object.fromEntries(select('path').map((parameter) => [parameter.name, valueOf(parameter)]))
  const query = Object.fromEntries(
    select('query')
      .filter(({ name, required }) => required === true || name in USUAL_QUERY)
      .map((parameter) => [parameter.name, USUAL_QUERY[parameter.name] ?? valueOf(parameter)]),
  )
  const headers = Object.fromEntries(
    select('header')
      .filter(({ required }) => required === true)
      .map((parameter) => [parameter.name, String(valueOf(parameter))]),
  )
  const body = /** @type {{ content?: Record<string, MediaType> } | undefined} */ (
    resolveReference(document, operation.requestBody)
  )
  const type = Object.keys(body?.content ?? {}).find((name) => /[/+]json$/.test(name))
  if (body?.content && type === undefined) return undefined
  const filledPath = path.replaceAll(/\{([^}]+)\}/g, (_, name) => encodeURIComponent(String(ids[name] ?? 1)))
  const call = { method: method.toUpperCase(), path: filledPath, ids, query, headers, template: path }
  if (type === undefined) return call
  return {
    ...call,
    headers: { ...headers, 'Content-Type': type },
    body: withSample(readExample(document, body?.content?.[type]), sample),
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
 * @param {MediaType | undefined} media
 */
function readExample(document, media) {
  if (media?.example !== undefined) return media.example
  const [first] = Object.values(media?.examples ?? {})
  if (first !== undefined) return /** @type {{ value?: unknown }} */ (resolveReference(document, first)).value
  const schema = /** @type {{ example?: unknown, examples?: unknown[] } | undefined} */ (
    resolveReference(document, media?.schema)
  )
  return schema?.example ?? schema?.examples?.[0] ?? {}
}

/**
 * Puts the id and the version of an existing record into a body that names one.
 * @param {unknown} body
 * @param {Sample | undefined} sample
 */
function withSample(body, sample) {
  if (!sample || !isJson(body)) return body
  const data = body['data']
  if (!isJson(data)) return body
  const known = Object.entries(sample).filter(([name]) => name in data)
  return { ...body, data: { ...data, ...Object.fromEntries(known) } }
}

/**
 * @param {Call} call
 * @param {string} baseUrl
 */
function writeCurl({ method, path, query, headers, body }, baseUrl) {
  const lines = [
    `curl -sS${method === 'GET' ? '' : ` -X ${method}`} ${quoteForShell(baseUrl + path + writeQuery(query))}`,
    '-H "Authorization: Bearer $VERSO_KEY"',
    ...Object.entries(headers).map(([name, value]) => `-H ${quoteForShell(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-d ${quoteForShell(JSON.stringify(body))}`]),
  ]
  return lines.join(' \\\n  ')
}

/**
 * @param {Call} call
 * @param {string} baseUrl
 */
function writePython({ method, path, query, headers, body }, baseUrl) {
  const sent = { Authorization: 'Bearer ', ...headers }
  const fields = Object.entries(sent).map(([name, value]) =>
    name === 'Authorization'
      ? `${quote(name)}: "Bearer " + os.environ["VERSO_KEY"]`
      : `${quote(name)}: ${quote(value)}`,
  )
  const data = body === undefined ? [] : [`    data=json.dumps(${toPython(body)}).encode(),`]
  return [
    ...(body === undefined ? [] : ['import json']),
    'import os',
    'import urllib.error',
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    ${quote(baseUrl + path + writeQuery(query))},`,
    `    method=${quote(method)},`,
    `    headers={${fields.join(', ')}},`,
    ...data,
    ')',
    'try:',
    '    with urllib.request.urlopen(request) as response:',
    '        print(response.read().decode())',
    'except urllib.error.HTTPError as error:',
    '    raise SystemExit(error.read().decode())',
  ].join('\n')
}

/**
 * @param {Call} call
 * @param {string} baseUrl
 */
function writeTypeScript(call, baseUrl) {
  const expression = `await verso.${writeClientCall(call)}`
  return [
    "import { connect } from 'verso-records/client'",
    '',
    `const verso = connect(${quote(baseUrl)}, { key: process.env.VERSO_KEY ?? '' })`,
    // `remove` returns nothing.
    ...(/\)\.remove\(/.test(expression)
      ? [expression]
      : [`const result = ${expression}`, 'console.log(JSON.stringify(result))']),
  ].join('\n')
}

/** Methods of the client by the method and the path behind the model. */
const CLIENT_CALLS = /** @type {Record<string, (call: Call) => string>} */ ({
  'GET ': ({ query }) => `find(${quote(query)})`,
  'PUT ': ({ body }) => `create(${quote(readData(body))})`,
  'POST ': ({ body }) => `create(${quote(readData(body))})`,
  'GET /{id}': ({ ids }) => `read(${quote(ids['id'])})`,
  'POST /{id}': ({ ids, body }) => `update(${quote(ids['id'])}, () => (${quote(readChanges(body))}))`,
  'PATCH /{id}': ({ ids, body }) => `update(${quote(ids['id'])}, () => (${quote(body)}))`,
  'DELETE /{id}': ({ ids }) => `remove(${quote(ids['id'])})`,
  'POST /search': ({ body }) => `search(${quote(body)})`,
  'POST /{id}/fetch': ({ ids, body }) => `fetch(${quote(ids['id'])}, ${quote(body)})`,
  'GET /{id}/history': ({ ids, query }) => `history(${quote(ids['id'])}, ${quote(query)})`,
  'POST /{id}/revert': ({ ids, body }) => `revert(${quote(ids['id'])}, ${quote(readData(body))})`,
})

/** @param {Call} call */
function writeClientCall(call) {
  const { method, template, path, query, body } = call
  const [, model, rest = ''] = /^\/ws\/rest\/([^/{}]+)(\/.*)?$/.exec(template) ?? []
  const write = model === undefined ? undefined : CLIENT_CALLS[`${method} ${rest}`]
  if (model !== undefined && write) return `model(${quote(model)}).${write(call)}`
  const options = {
    ...(Object.keys(query).length > 0 ? { query } : {}),
    ...(body === undefined ? {} : { body }),
  }
  return `request(${quote(method)}, ${quote(path)}, ${quote(options)})`
}

/** @param {unknown} body */
function readData(body) {
  return isJson(body) ? (body['data'] ?? {}) : {}
}

/**
 * The client reads the version of the record itself.
 * @param {unknown} body
 */
function readChanges(body) {
  const data = readData(body)
  if (!isJson(data)) return {}
  return Object.fromEntries(Object.entries(data).filter(([name]) => name !== 'id' && name !== 'version'))
}

/** @param {Record<string, unknown>} query */
function writeQuery(query) {
  const entries = Object.entries(query).map(([name, value]) => [name, String(value)])
  return entries.length === 0 ? '' : `?${new URLSearchParams(entries).toString()}`
}

/**
 * JSON text is also an expression of TypeScript, and a string of JSON is a string of Python.
 * @param {unknown} value
 */
function quote(value) {
  return JSON.stringify(value) ?? 'undefined'
}

/** @param {string} text */
function quoteForShell(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function toPython(value) {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(toPython).join(', ')}]`
  if (!isJson(value)) return quote(value)
  const entries = Object.entries(value).map(([name, entry]) => `${quote(name)}: ${toPython(entry)}`)
  return `{${entries.join(', ')}}`
}

/**
 * @param {unknown} value
 * @returns {unknown[]}
 */
function asArray(value) {
  return Array.isArray(value) ? value : []
}
