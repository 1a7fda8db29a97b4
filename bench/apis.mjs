// Builds the requests of each kind of server and reads its responses.
import { contact, FIELDS, fullContact, fullName, MODEL, phone } from './contacts.mjs'

export const PAGE = 40

/** The API of Verso, which the reference servers implement too. */
function verso({ model = MODEL } = {}) {
  const path = `/ws/rest/${model}`
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${id}` }),
    list: (offset, filter) => ({
      method: 'GET',
      path: `${path}?offset=${offset}&limit=${PAGE}${filter ? `&filter=${encodeURIComponent(filter)}` : ''}`,
    }),
    create: (index) => ({ method: 'PUT', path, body: { data: contact(index) } }),
    update: (id, version, turn) => ({
      method: 'POST',
      path: `${path}/${id}`,
      body: { data: { id, version, phone: phone(turn) } },
    }),
    hasVersions: true,
    recordsOf: ({ data }) => data,
    totalOf: ({ total }) => total,
  }
}

function pocketbase() {
  const path = '/api/collections/contacts/records'
  // Ids of PocketBase have fifteen letters or digits.
  const idOf = (id) => String(id).padStart(15, '0')
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${idOf(id)}` }),
    list: (offset) => ({
      method: 'GET',
      path: `${path}?page=${1 + Math.floor(offset / PAGE)}&perPage=${PAGE}&sort=@rowid`,
    }),
    create: (index) => ({ method: 'POST', path, body: fullContact(index) }),
    update: (id, _, turn) => ({ method: 'PATCH', path: `${path}/${idOf(id)}`, body: { phone: phone(turn) } }),
    recordsOf: (body) => body.items ?? [body],
    totalOf: ({ totalItems }) => totalItems,
  }
}

function feathers() {
  const path = '/contacts'
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${id}` }),
    list: (offset) => ({ method: 'GET', path: `${path}?$skip=${offset}&$limit=${PAGE}&$sort[id]=1` }),
    create: (index) => ({ method: 'POST', path, body: fullContact(index) }),
    update: (id, _, turn) => ({ method: 'PATCH', path: `${path}/${id}`, body: { phone: phone(turn) } }),
    recordsOf: (body) => body.data ?? [body],
    totalOf: ({ total }) => total,
  }
}

function jsonServer() {
  const path = '/contacts'
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${id}` }),
    list: (offset) => ({ method: 'GET', path: `${path}?_start=${offset}&_limit=${PAGE}` }),
    create: (index) => ({ method: 'POST', path, body: fullContact(index) }),
    update: (id, _, turn) => ({ method: 'PATCH', path: `${path}/${id}`, body: { phone: phone(turn) } }),
    recordsOf: (body) => (Array.isArray(body) ? body : [body]),
    totalOf: (_, headers) => Number(headers.get('x-total-count')),
  }
}

function directus() {
  const path = '/items/contacts'
  return {
    read: (id) => ({ method: 'GET', path: `${path}/${id}` }),
    list: (offset) => ({ method: 'GET', path: `${path}?limit=${PAGE}&offset=${offset}&meta=total_count` }),
    create: (index) => ({ method: 'POST', path, body: fullContact(index) }),
    update: (id, _, turn) => ({ method: 'PATCH', path: `${path}/${id}`, body: { phone: phone(turn) } }),
    recordsOf: ({ data }) => (Array.isArray(data) ? data : [data]),
    totalOf: ({ meta }) => meta?.total_count,
  }
}

const KINDS = { verso, pocketbase, feathers, jsonServer, directus }

export function apiOf({ kind, ...options }) {
  return KINDS[kind](options)
}

/** Serializes a request. */
export function bytesOf({ method, path, body, headers: own = {} }, headers) {
  const text = body === undefined ? '' : JSON.stringify(body)
  const all = {
    host: 'localhost',
    ...headers,
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
  const wanted = { ...contact(index), fullName: fullName(contact(index)) }
  return FIELDS.every((field) => record?.[field] === wanted[field])
}
