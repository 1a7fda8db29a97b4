// Generates the requests of each connection. Most are serialized before the run.
import { randomUUID } from 'node:crypto'
import { serializeRequest } from './apis.mjs'

/** Listed in the order they run. Creates come last, because they make the tables grow by different amounts. */
export const OPERATIONS = {
  read: 'read one',
  list0: 'list, offset 0',
  list50: 'list, offset 50 %',
  update: 'update',
  mixed: 'mixed',
  create: 'create',
}

const READ = ['read', 'read', 'read']
/** Each connection repeats these steps. */
const STEPS = {
  read: ['read'],
  list0: ['first'],
  list50: ['middle'],
  create: ['create'],
  update: ['update'],
  keyedCreate: ['keyedCreate'],
  keyedUpdate: ['keyedUpdate'],
  mixed: [...READ, 'page', 'create', ...READ, 'page', 'update'],
}
const PREPARED = 2_000
const RECORDS_EACH = 4
/** A prime stride spreads ids and offsets over the whole table. */
const STRIDE = 7919
const VERSION = Buffer.from('"version":')

/**
 * Returns connection number → { next(), learn(answer) }; `load` is { api, headers, url, connections, rows, operation }.
 */
export async function buildRequests(load) {
  const steps = STEPS[load.operation]
  const versions = await readVersions(load, steps)
  const makers = createRequestMakers(load, versions)
  return (connection) => {
    let turn = connection
    let updated
    return {
      next() {
        const step = steps[turn++ % steps.length]
        updated = step === 'update' || step === 'keyedUpdate' ? pickOwnRecord(connection, turn) : undefined
        return makers[step](updated ?? turn * load.connections + connection, turn)
      },
      /** Remembers the version that an update made, for the next update of the record. */
      learn(answer) {
        if (updated !== undefined && load.api.hasVersions) versions.set(updated, parseVersion(answer))
      },
    }
  }
}

function createRequestMakers({ api, headers, rows }, versions) {
  const prepare = (many, make) => {
    const prepared = Array.from({ length: many }, (_, index) => serializeRequest(make(index), headers))
    return (number) => prepared[number % prepared.length]
  }
  const key = () => ({ 'idempotency-key': randomUUID() })
  const update = (id, turn, own) =>
    serializeRequest({ ...api.update(id, versions.get(id), turn), headers: own }, headers)
  const pages = Math.max(1, Math.floor(rows / 40))
  return {
    read: prepare(PREPARED, (index) => api.read(1 + ((index * STRIDE) % rows))),
    first: prepare(1, () => api.list(0)),
    middle: prepare(1, () => api.list(Math.floor(rows / 80) * 40)),
    page: prepare(PREPARED, (index) => api.list(((index * STRIDE) % pages) * 40)),
    create: prepare(PREPARED, (index) => api.create(rows + index)),
    update,
    keyedCreate: (number) => serializeRequest({ ...api.create(rows + number), headers: key() }, headers),
    keyedUpdate: (id, turn) => update(id, turn, key()),
  }
}

/** Each connection updates records of its own, so no other connection changes their versions. */
function pickOwnRecord(connection, turn) {
  return 1 + connection * RECORDS_EACH + (turn % RECORDS_EACH)
}

async function readVersions({ api, url, headers, connections }, steps) {
  const versions = new Map()
  if (!api.hasVersions || !steps.some((step) => /update/i.test(step))) return versions
  for (let id = 1; id <= connections * RECORDS_EACH; id++) {
    const response = await fetch(`${url}${api.read(id).path}`, { headers })
    if (!response.ok) throw new Error(`contact ${id} cannot be read: ${response.status}`)
    versions.set(id, api.readRecords(await response.json())[0].version)
  }
  return versions
}

function parseVersion(answer) {
  const at = answer.indexOf(VERSION)
  const number = Number.parseInt(answer.latin1Slice(at + VERSION.length, at + VERSION.length + 12), 10)
  if (at < 0 || !Number.isInteger(number)) throw new Error('an answer to an update tells no version')
  return number
}
