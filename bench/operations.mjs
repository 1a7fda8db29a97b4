// What each connection asks for. Every operation answers a function: number of the connection → requests for autocannon.
import { randomUUID } from 'node:crypto'
import { sampleContact } from '../dist/cli/sample.js'

const PATH = '/ws/rest/com.axelor.contact.db.Contact'
const PREPARED = 100
const PAGE = 40
const PAGES = 10
const JSON_HEADER = { 'content-type': 'application/json' }
/** Prime, so that the ids of one connection lie all over the table. */
const STRIDE = 7919

export const operations = {
  ...{ read, find, update, create },
  keyedUpdate: async (run) => keyed(await update(run)),
  keyedCreate: async (run) => keyed(await create(run)),
}

async function read({ rows }) {
  return (connection) =>
    list(PREPARED, (index) => {
      const id = 1 + (((connection * PREPARED + index) * STRIDE) % rows)
      return { method: 'GET', path: `${PATH}/${id}` }
    })
}

/** The first pages, as people look at them. */
async function find() {
  return () =>
    list(PAGES, (index) => ({ method: 'GET', path: `${PATH}?offset=${index * PAGE}&limit=${PAGE}` }))
}

async function create({ headers, rows }) {
  return (connection) =>
    list(PREPARED, (index) => ({
      method: 'PUT',
      path: PATH,
      headers: { ...headers, ...JSON_HEADER },
      body: JSON.stringify({ data: sampleContact(rows + connection * PREPARED + index) }),
    }))
}

/** Each connection has records of its own, and names the version that its last answer made. */
async function update({ url, headers, connections, recordsPerConnection }) {
  const versions = new Map()
  for (let id = 1; id <= connections * recordsPerConnection; id++) {
    const response = await fetch(`${url}${PATH}/${id}`, { headers })
    if (!response.ok) throw new Error(`contact ${id} cannot be read: ${response.status}`)
    versions.set(id, (await response.json()).data[0].version)
  }
  return (connection) => {
    let turn = -1
    const idOf = () => 1 + connection * recordsPerConnection + (turn % recordsPerConnection)
    const setupRequest = (request) => {
      turn += 1
      const id = idOf()
      const version = versions.get(id)
      const phone = `+1 202 555 ${String(version % 10_000).padStart(4, '0')}`
      return { ...request, path: `${PATH}/${id}`, body: JSON.stringify({ data: { id, version, phone } }) }
    }
    const onResponse = (status) => {
      if (status === 200) versions.set(idOf(), versions.get(idOf()) + 1)
    }
    return [{ method: 'POST', headers: { ...headers, ...JSON_HEADER }, setupRequest, onResponse }]
  }
}

/** The same requests, each under a key that nobody has used. */
function keyed(requestsOf) {
  return (connection) =>
    requestsOf(connection).map(({ setupRequest = (request) => request, ...request }) => ({
      ...request,
      setupRequest: (asked) => {
        const made = setupRequest(asked)
        return { ...made, headers: { ...made.headers, 'idempotency-key': randomUUID() } }
      },
    }))
}

function list(length, make) {
  return Array.from({ length }, (_, index) => make(index))
}
