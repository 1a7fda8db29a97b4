// The section of npm run bench that compares kinds of clients: each kind with a cookie, with the same kind on an earlier
// build, and with static responses, in short turns one after the other.
import { CLIENTS } from './client-kinds.mjs'
import {
  buildClientNotes,
  buildClientsTable,
  buildEqualityTable,
  PROXY_REFERENCE,
} from './clients-report.mjs'
import { listSteps } from './interleaved.mjs'
import { startLoadGenerator } from './processes.mjs'
import { OPERATIONS } from './requests.mjs'
import { BEFORE, SERVERS } from './servers.mjs'
import { findFaults } from './truth.mjs'

export const CLIENTS_DEFAULTS = {
  ...{ seconds: 0.05, rounds: 60, starts: 2, rows: 5_000 },
  only: Object.keys(OPERATIONS).filter((operation) => !['list50', 'mixed', 'screens'].includes(operation)),
  servers: ['verso', 'static'],
}
/** For each server, operation and start, not counted. The clients of a server share it. */
const WARM_UP_S = 1.6

/** Measures the kinds of clients against the servers among `servers` that are Verso. Returns { about, tables, notes }. */
export async function measureClients(flags) {
  const { connections, rounds, seconds, starts, rows, clients, only } = flags
  const groups = await startGroups(flags)
  const missing = await listFaults(groups, rows)
  const load = startLoadGenerator()
  const results = {}
  const steps = listSteps(only, starts)
  for (const [step, { operations, start }] of steps.entries()) {
    if (step > 0) await restart(groups)
    for (const operation of operations) {
      const cells = listCells(groups, operation, connections)
      const measured = await load.run({
        cells,
        ...{ operation, rounds: rounds / starts, seconds, warmUpSeconds: WARM_UP_S, connections, rows },
      })
      results[operation] ??= {}
      for (const [index, { name }] of cells.entries())
        (results[operation][name] ??= []).push(...measured[index])
      process.stderr.write(`${OPERATIONS[operation]}: start ${start + 1} of ${starts}\n`)
    }
  }
  await load.end()
  const about = `${rows} contacts, ${connections} connections for each kind of client, medians of ${rounds} paired turns of ${seconds} s in ${starts} starts of each server; ratios: middle (middle half) of the rounds.`
  const tables = [buildClientsTable(results, clients), buildEqualityTable(results, clients)]
  return { about, tables, notes: [...missing, ...buildClientNotes(results)] }
}

/**
 * Starts one server for the clients that come directly and one for those behind a proxy, on each build. A client with a cookie
 * uses the second server, too: two servers differ, so a proxy is compared with the cookie on its own server. Returns a list of
 * { name, kinds, server }; the static server serves all kinds.
 */
async function startGroups(flags) {
  const { clients, servers, before } = flags
  const earlier = BEFORE.filter(
    (name) =>
      before !== undefined &&
      servers.includes(SERVERS[name].engine === 'postgres' ? 'versoPostgres' : 'verso'),
  )
  const [proxied, direct] = [true, false].map((isProxied) =>
    clients.filter((kind) => isProxiedKind(kind) === isProxied),
  )
  const groups = []
  for (const name of [...servers, ...earlier]) {
    for (const kinds of name === 'static' ? [clients] : [direct, proxied]) {
      if (kinds.length === 0) continue
      process.stderr.write(`starting ${SERVERS[name].title} for ${kinds.join(', ')}\n`)
      groups.push({
        name,
        kinds,
        server: await SERVERS[name].start({ ...flags, clients: withReference(kinds), timedStarts: 1 }),
      })
    }
  }
  return groups
}

function withReference(kinds) {
  return kinds.some(isProxiedKind) ? ['cookie', ...kinds] : kinds
}

function isProxiedKind(kind) {
  return Boolean(CLIENTS[kind].isProxied)
}

async function restart(groups) {
  for (const group of groups) if (group.server.restart) group.server = await group.server.restart()
}

/** Checks the answers to each kind of client. A kind with wrong answers is not measured. */
async function listFaults(groups, rows) {
  const missing = []
  for (const group of groups.filter(({ name }) => name !== 'static')) {
    for (const [earlier, kind] of [...group.kinds].entries()) {
      const server = { ...group.server, ...group.server.opened[kind], isVerso: true }
      const faults = await findFaults(server, rows, earlier)
      if (faults.length === 0) continue
      missing.push(`NOT MEASURED: ${SERVERS[group.name].title}, ${kind}: ${faults.join('; ')}`)
      group.kinds = group.kinds.filter((each) => each !== kind)
    }
  }
  return missing
}

/** Returns the cells of an operation; the name of a cell is `<server> <kind>`. Builds of the same kind are neighbours. */
function listCells(groups, operation, connections) {
  const kinds = Object.keys(CLIENTS)
  const opened = Object.assign({}, ...groups.map(({ server }) => server.opened))
  const toCell = (kind, title, number) => {
    const firstConnection = number * connections
    return ({ name, server: { url, pid, api, opened: own = opened } }) => ({
      ...{ name: `${name} ${title}`, url, pid, api, ...own[kind], firstConnection },
    })
  }
  const references = groups.filter(
    ({ name, kinds: served }) => name !== 'static' && served.some(isProxiedKind),
  )
  return [
    ...kinds.flatMap((kind, number) =>
      groups
        .filter((group) => group.kinds.includes(kind) && (group.name !== 'static' || operation === 'read'))
        .map(toCell(kind, kind, number)),
    ),
    ...references.map(toCell('cookie', PROXY_REFERENCE, kinds.length)),
  ]
}
