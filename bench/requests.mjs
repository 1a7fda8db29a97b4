// Generates the requests of each connection. Most are serialized before the run.
import { randomUUID } from 'node:crypto'
import { serializeRequest } from './apis.mjs'

/** Listed in the order they run. Creates come last, because they make the tables grow by different amounts. */
export const OPERATIONS = {
  read: 'read one',
  list0: 'list, offset 0',
  list50: 'list, offset 50 %',
  sorted: 'list, sorted',
  filtered: 'list, filtered',
  small: 'small list',
  smallSorted: 'small list, sorted',
  smallFiltered: 'small list, filtered',
  update: 'update',
  mixed: 'mixed',
  screens: 'screens of a web application',
  create: 'create',
}

/** Only Verso holds the small table, and only its lists can be sorted and filtered here. */
export const VERSO_ONLY = ['sorted', 'filtered', 'small', 'smallSorted', 'smallFiltered', 'screens']

const READ = ['read', 'read', 'read']
/** Each connection repeats these steps. */
const STEPS = {
  read: ['read'],
  list0: ['first'],
  list50: ['middle'],
  ...Object.fromEntries(VERSO_ONLY.map((operation) => [operation, [operation]])),
  create: ['create'],
  update: ['update'],
  keyedCreate: ['keyedCreate'],
  keyedUpdate: ['keyedUpdate'],
  mixed: [...READ, 'page', 'create', ...READ, 'page', 'update'],
  screens: ['first', 'read', 'filtered', 'read', 'update', 'sorted', 'read', 'create', 'filtered', 'read'],
}
const PREPARED = 2_000
/** Records of one connection. */
export const RECORDS_EACH = 4
/** A prime stride spreads ids and offsets over the whole table. */
const STRIDE = 7919
const VERSION = Buffer.from('"version":')

/**
 * Returns connection number → { next(), learn(answer) }; `load` is { api, headers, writeHeaders, url, connections, rows,
 * operation, firstConnection }. Clients of the same server count their connections from different numbers, so that no
 * two of them update the same record.
 */
export async function buildRequests(load) {
  const steps = STEPS[load.operation]
  const versions = await readVersions(load, steps)
  const makers = createRequestMakers(load, versions)
  const { firstConnection = 0 } = load
  return (number) => {
    const connection = firstConnection + number
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

function createRequestMakers({ api, headers, writeHeaders, rows }, versions) {
  const serialize = (request) => serializeRequest(request, headers, writeHeaders)
  const prepare = (many, make) => {
    const prepared = Array.from({ length: many }, (_, index) => serialize(make(index)))
    return (number) => prepared[number % prepared.length]
  }
  const key = () => ({ 'idempotency-key': randomUUID() })
  const update = (id, turn, own) => serialize({ ...api.update(id, versions.get(id), turn), headers: own })
  const pages = Math.max(1, Math.floor(rows / 40))
  const lists = VERSO_ONLY.filter((operation) => api[operation]).map((operation) => [
    operation,
    prepare(1, () => api[operation]()),
  ])
  return {
    ...Object.fromEntries(lists),
    read: prepare(PREPARED, (index) => api.read(1 + ((index * STRIDE) % rows))),
    first: prepare(1, () => api.list(0)),
    middle: prepare(1, () => api.list(Math.floor(rows / 80) * 40)),
    page: prepare(PREPARED, (index) => api.list(((index * STRIDE) % pages) * 40)),
    create: prepare(PREPARED, (index) => api.create(rows + index)),
    update,
    keyedCreate: (number) => serialize({ ...api.create(rows + number), headers: key() }),
    keyedUpdate: (id, turn) => update(id, turn, key()),
  }
}

/** Each connection updates records of its own, so no other connection changes their versions. */
function pickOwnRecord(connection, turn) {
  return 1 + connection * RECORDS_EACH + (turn % RECORDS_EACH)
}

async function readVersions({ api, url, headers, connections, firstConnection = 0 }, steps) {
  const versions = new Map()
  if (!api.hasVersions || !steps.some((step) => /update/i.test(step))) return versions
  const first = 1 + firstConnection * RECORDS_EACH
  for (let id = first; id < first + connections * RECORDS_EACH; id++) {
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
