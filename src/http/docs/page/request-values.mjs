// The values of a request that snippets and forms show: the examples of the document, with an existing record in place of invented ids and
// versions.
import { isJson, resolveReference } from './resolve-references.mjs'

/**
 * @typedef {Record<string, unknown>} Json
 * @typedef {{ model?: string | undefined, id?: number | undefined, version?: number | undefined }} Sample
 * @typedef {{ name: string, in: string, required?: boolean, example?: unknown, schema?: unknown }} Parameter
 * @typedef {{ schema?: unknown, example?: unknown, examples?: Record<string, unknown> }} MediaType
 * @typedef {{ parameters?: unknown[], requestBody?: unknown, responses?: Record<string, unknown>, security?: Record<string, unknown>[] }} Operation
 * @typedef {{ paths: Record<string, Record<string, unknown>> } & Json} ApiDocument
 * @typedef {{ document: ApiDocument, path: string, method: string, sample?: Sample | undefined }} RequestSource
 * @typedef {Parameter & { value: unknown }} FilledParameter
 * @typedef {{ request: Json, field: string }} UploadParts
 * @typedef {{ operation: Operation, parameters: FilledParameter[], type?: string | undefined, body?: unknown, upload?: UploadParts | undefined, isComplete: boolean }} RequestValues
 */

export const FORM_TYPE = 'multipart/form-data'
const RECORD_PATH = '/ws/rest/'

/** Optional parameters that a newcomer wants to see, with the value that a snippet gives them. */
const USUAL_QUERY = /** @type {Json} */ ({ limit: 10 })
/** The service rejects a request without these, although the document calls them optional: a form may send them in another place. */
const NEEDED_QUERY = ['token']

/**
 * Returns the values of the parameters and of the body. `isComplete` is false if a value that the service needs is not known.
 * @param {RequestSource} source
 * @returns {RequestValues}
 */
export function describeRequest(source) {
  const { document, path, method, sample } = source
  const item = document.paths[path] ?? {}
  const operation = /** @type {Operation} */ (item[method] ?? {})
  const parameters = [...asArray(item['parameters']), ...asArray(operation.parameters)].map((reference) => {
    const parameter = /** @type {Parameter} */ (resolveReference(document, reference))
    return { ...parameter, value: findValue(source, parameter) }
  })
  const isKnown = parameters.every((parameter) => parameter.value !== undefined || !isNeeded(parameter))
  const requestBody = readRequestBody(document, operation)
  const types = Object.keys(requestBody?.content ?? {})
  const type = types.find((name) => /[/+]json$/.test(name)) ?? types.find((name) => name === FORM_TYPE)
  if (!requestBody) return { operation, parameters, isComplete: isKnown }
  const body =
    type === undefined || type === FORM_TYPE
      ? undefined
      : fillBody(readExample(document, requestBody.content?.[type]), path, sample)
  const upload = type === FORM_TYPE ? describeUpload(source) : undefined
  const hasBody = body !== undefined || upload !== undefined
  return { operation, parameters, type, body, upload, isComplete: isKnown && hasBody }
}

/**
 * @param {RequestSource} source
 * @param {Parameter} parameter
 */
function findValue({ document, path, sample }, parameter) {
  const { name, example, required } = parameter
  const isOfRecord = path.startsWith(RECORD_PATH)
  if (parameter.in === 'query') {
    if (name in USUAL_QUERY) return USUAL_QUERY[name]
    if (name === 'version' && isOfRecord) return sample?.version
  }
  if (parameter.in !== 'path' && required !== true) return undefined
  if (name === 'model' && sample?.model !== undefined) return sample.model
  // The id of a user or of a webhook is not that of the record.
  if (isOfRecord && name === 'id') return sample?.id ?? 1
  if (isOfRecord && name === 'version') return sample?.version ?? 0
  const schema = /** @type {{ example?: unknown, default?: unknown, enum?: unknown[] } | undefined} */ (
    resolveReference(document, parameter.schema)
  )
  return example ?? schema?.example ?? schema?.default ?? schema?.enum?.[0] ?? (name === 'id' ? 1 : undefined)
}

/** @param {Parameter} parameter */
function isNeeded({ name, in: place, required }) {
  return place === 'path' || required === true || (place === 'query' && NEEDED_QUERY.includes(name))
}

/**
 * Puts an existing record into the example of a body. Returns undefined if no such request can succeed for the record.
 * @param {unknown} body
 * @param {string} path
 * @param {Sample | undefined} sample
 */
export function fillBody(body, path, sample) {
  if (sample?.id === undefined || sample.version === undefined || !isJson(body)) return body
  const { data, records, requests } = body
  if (path.endsWith('/revert')) {
    if (sample.version === 0) return undefined
    return { ...body, data: { version: sample.version, to: sample.version - 1 } }
  }
  return {
    .../** @type {Json} */ (fillRecord(body, sample)),
    ...(isJson(data) ? { data: fillData(data, sample) } : {}),
    ...(Array.isArray(records) ? { records: records.map((record) => fillRecord(record, sample)) } : {}),
    ...(Array.isArray(requests) ? { requests: requests.map((request) => ({ ...request, ...sample })) } : {}),
  }
}

/**
 * @param {unknown} record
 * @param {Sample} sample
 */
function fillRecord(record, { id, version }) {
  if (!isJson(record)) return record
  return { ...record, ...('id' in record ? { id } : {}), ...('version' in record ? { version } : {}) }
}

/**
 * The data of a write name a record; those of a mass update select it by a criterion.
 * @param {Json} data
 * @param {Sample} sample
 */
function fillData(data, sample) {
  const { criteria } = data
  const selected = asArray(criteria).map((criterion) =>
    isJson(criterion) && criterion['fieldName'] === 'id' && criterion['operator'] === '='
      ? { ...criterion, value: sample.id }
      : criterion,
  )
  return {
    .../** @type {Json} */ (fillRecord(data, sample)),
    ...(selected.length > 0 ? { criteria: selected } : {}),
  }
}

/**
 * An upload creates a record with the required fields of the example of a create, or updates the existing record.
 * @param {RequestSource} source
 * @returns {UploadParts | undefined}
 */
function describeUpload({ document, path, sample }) {
  const modelPath = path.replace(/\/upload$/, '')
  const item = document.paths[`${modelPath}/{id}/{field}/download`]
  const field = asArray(item?.['parameters'])
    .map((parameter) => /** @type {{ name: string, schema?: { enum?: string[] } }} */ (parameter))
    .find(({ name }) => name === 'field')?.schema?.enum?.[0]
  if (field === undefined) return undefined
  const create = /** @type {Operation | undefined} */ (document.paths[modelPath]?.['put'])
  if (create) return { request: { data: readRequiredFields(document, create, field) }, field }
  if (sample?.id === undefined) return undefined
  return { request: { data: { id: sample.id, version: sample.version } }, field }
}

/**
 * @param {ApiDocument} document
 * @param {Operation} create
 * @param {string} fileField
 */
function readRequiredFields(document, create, fileField) {
  const [media] = Object.values(readRequestBody(document, create)?.content ?? {})
  const example = readExample(document, media)
  const body = /** @type {{ properties?: Json } | undefined} */ (resolveReference(document, media?.schema))
  const data = /** @type {{ required?: string[] } | undefined} */ (
    resolveReference(document, body?.properties?.['data'])
  )
  const values = isJson(example) && isJson(example['data']) ? example['data'] : {}
  const names = (data?.required ?? []).filter((name) => name !== fileField && name in values)
  return Object.fromEntries(names.map((name) => [name, values[name]]))
}

/**
 * Returns the document with these values as its examples, which are what the forms of Swagger UI contain.
 * @param {ApiDocument} document
 * @param {Sample | undefined} sample
 * @returns {ApiDocument}
 */
export function fillExamples(document, sample) {
  const paths = Object.entries(document.paths).map(([path, item]) => {
    const methods = Object.keys(item).filter((name) => name !== 'parameters')
    const operations = methods.map((method) => [method, fillOperation({ document, path, method, sample })])
    return [path, Object.fromEntries(operations)]
  })
  return { ...document, paths: Object.fromEntries(paths) }
}

/** @param {RequestSource} source */
function fillOperation(source) {
  const { operation, parameters, type, body, upload } = describeRequest(source)
  const requestBody = readRequestBody(source.document, operation)
  const media = type === undefined ? undefined : requestBody?.content?.[type]
  const filled = upload ? fillForm(media, upload) : body === undefined ? media : { ...media, example: body }
  return {
    ...operation,
    parameters: parameters.map(({ value, ...parameter }) =>
      value === undefined ? parameter : { ...parameter, example: value },
    ),
    ...(type === undefined || !filled
      ? {}
      : { requestBody: { ...requestBody, content: { ...requestBody?.content, [type]: filled } } }),
  }
}

/**
 * The inputs of a form have their values in the schema.
 * @param {MediaType | undefined} media
 * @param {UploadParts} parts
 */
function fillForm(media, parts) {
  const schema = /** @type {{ properties?: Record<string, Json> } | undefined} */ (media?.schema)
  const examples = Object.entries(parts).map(([name, example]) => [
    name,
    { ...schema?.properties?.[name], example },
  ])
  return {
    ...media,
    schema: { ...schema, properties: { ...schema?.properties, ...Object.fromEntries(examples) } },
  }
}

/**
 * @param {ApiDocument} document
 * @param {Operation} operation
 */
function readRequestBody(document, { requestBody }) {
  return /** @type {{ content?: Record<string, MediaType> } | undefined} */ (
    resolveReference(document, requestBody)
  )
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
  return schema?.example ?? schema?.examples?.[0]
}

/**
 * @param {unknown} value
 * @returns {unknown[]}
 */
function asArray(value) {
  return Array.isArray(value) ? value : []
}
