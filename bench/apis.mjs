// Builds the requests of each kind of server and reads its responses.
import { buildContact, FIELDS, buildFullContact, formatFullName, MODEL, formatPhone } from './contacts.mjs'
import { OFFICE_COUNTRY, OFFICE_MODEL } from './offices.mjs'

export const PAGE = 40
/** The condition of a filtered list: the last name of every ninth contact. */
export const LAST_NAME = 'Novak'

const SMALL_PATH = `/ws/rest/${OFFICE_MODEL}`

/** The API of Verso, which the reference servers implement too. */
function createVersoApi({ model = MODEL } = {}) {
  const path = `/ws/rest/${model}`
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${id}` }),
    list: (offset, filter) => ({
      method: 'GET',
      path: `${path}?offset=${offset}&limit=${PAGE}${filter ? `&filter=${encodeURIComponent(filter)}` : ''}`,
    }),
    create: (index) => ({ method: 'PUT', path, body: { data: buildContact(index) } }),
    update: (id, version, turn) => ({
      method: 'POST',
      path: `${path}/${id}`,
      body: { data: { id, version, phone: formatPhone(turn) } },
    }),
    sorted: () => ({ method: 'GET', path: `${path}?limit=${PAGE}&sortBy=email` }),
    filtered: () => ({
      method: 'GET',
      path: `${path}?limit=${PAGE}&filter=${encodeURIComponent(`lastName = '${LAST_NAME}'`)}`,
    }),
    small: () => ({ method: 'GET', path: `${SMALL_PATH}?limit=${PAGE}` }),
    smallSorted: () => ({ method: 'GET', path: `${SMALL_PATH}?limit=${PAGE}&sortBy=city` }),
    smallFiltered: () => ({
      method: 'GET',
      path: `${SMALL_PATH}?limit=${PAGE}&filter=${encodeURIComponent(`country = '${OFFICE_COUNTRY}'`)}`,
    }),
    hasVersions: true,
    readRecords: ({ data }) => data,
    readTotal: ({ total }) => total,
  }
}

function createPocketbaseApi() {
  const path = '/api/collections/contacts/records'
  // Ids of PocketBase have fifteen letters or digits.
  const formatId = (id) => String(id).padStart(15, '0')
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${formatId(id)}` }),
    list: (offset) => ({
      method: 'GET',
      path: `${path}?page=${1 + Math.floor(offset / PAGE)}&perPage=${PAGE}&sort=@rowid`,
    }),
    create: (index) => ({ method: 'POST', path, body: buildFullContact(index) }),
    update: (id, _, turn) => ({
      method: 'PATCH',
      path: `${path}/${formatId(id)}`,
      body: { phone: formatPhone(turn) },
    }),
    readRecords: (body) => body.items ?? [body],
    readTotal: ({ totalItems }) => totalItems,
  }
}

function createFeathersApi() {
  const path = '/contacts'
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${id}` }),
    list: (offset) => ({ method: 'GET', path: `${path}?$skip=${offset}&$limit=${PAGE}&$sort[id]=1` }),
    create: (index) => ({ method: 'POST', path, body: buildFullContact(index) }),
    update: (id, _, turn) => ({ method: 'PATCH', path: `${path}/${id}`, body: { phone: formatPhone(turn) } }),
    readRecords: (body) => body.data ?? [body],
    readTotal: ({ total }) => total,
  }
}

function createJsonServerApi() {
  const path = '/contacts'
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${id}` }),
    list: (offset) => ({ method: 'GET', path: `${path}?_start=${offset}&_limit=${PAGE}` }),
    create: (index) => ({ method: 'POST', path, body: buildFullContact(index) }),
    update: (id, _, turn) => ({ method: 'PATCH', path: `${path}/${id}`, body: { phone: formatPhone(turn) } }),
    readRecords: (body) => (Array.isArray(body) ? body : [body]),
    readTotal: (_, headers) => Number(headers.get('x-total-count')),
  }
}

function createDirectusApi() {
  const path = '/items/contacts'
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${id}` }),
    list: (offset) => ({ method: 'GET', path: `${path}?limit=${PAGE}&offset=${offset}&meta=total_count` }),
    create: (index) => ({ method: 'POST', path, body: buildFullContact(index) }),
    update: (id, _, turn) => ({ method: 'PATCH', path: `${path}/${id}`, body: { phone: formatPhone(turn) } }),
    readRecords: ({ data }) => (Array.isArray(data) ? data : [data]),
    readTotal: ({ meta }) => meta?.total_count,
  }
}

const KINDS = {
  verso: createVersoApi,
  pocketbase: createPocketbaseApi,
  feathers: createFeathersApi,
  jsonServer: createJsonServerApi,
  directus: createDirectusApi,
}

export function createApi({ kind, ...options }) {
  return KINDS[kind](options)
}

/** Serializes a request; `writeHeaders` are added to requests with a body. */
export function serializeRequest({ method, path, body, headers: own = {} }, headers, writeHeaders = {}) {
  const text = body === undefined ? '' : JSON.stringify(body)
  const all = {
    host: 'localhost',
    ...headers,
    ...(body === undefined ? {} : writeHeaders),
    ...own,
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`)
}

/** Returns true if the record equals contact number `index`. */
export function isContact(record, index) {
  const expected = { ...buildContact(index), fullName: formatFullName(buildContact(index)) }
  return FIELDS.every((field) => record?.[field] === expected[field])
}
