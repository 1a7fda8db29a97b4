// Tables about kinds of clients: paired ratios to a client with a cookie, to an earlier build, and to static responses.
import { CLIENTS } from './client-kinds.mjs'
import {
  computeRatios,
  findMedian,
  findMedianInterval,
  formatHalf,
  formatShort,
  formatWhole,
} from './numbers.mjs'
import { OPERATIONS } from './requests.mjs'
import { SERVERS } from './servers.mjs'

/** The cells of clients with a cookie on the server of the proxied clients. */
export const PROXY_REFERENCE = 'cookie-beside-proxy'
const COMPARED = ['read', 'list0', 'create', 'update']
const TOLERANCE_PERCENT = 5
const EARLIER = { verso: 'before', versoPostgres: 'beforePostgres' }

/** `results` maps operation and `<server> <kind>` to a list of turns, one for each round. */
export function buildClientsTable(results, clients) {
  const headings = [
    ...['operation', 'engine', 'client', 'requests/s', 'CPU µs', '÷ cookie, requests/s', '÷ cookie, CPU'],
    ...['÷ before, requests/s', '÷ before, CPU', '÷ static, requests/s'],
  ]
  const rows = Object.entries(results).flatMap(([operation, cells]) =>
    listVersos(cells).flatMap((server) =>
      clients
        .filter((kind) => cells[`${server} ${kind}`])
        .map((kind) => [
          ...[OPERATIONS[operation], SERVERS[server].engine, CLIENTS[kind].title],
          ...formatCell(cells, server, kind),
        ]),
    ),
  )
  return dropEmptyColumns({ headings, rows, texts: 3 })
}

function formatCell(cells, server, kind) {
  const turns = cells[`${server} ${kind}`]
  const against = (other, key) => {
    const others = cells[other]
    return others && others !== turns ? formatHalf(computeRatios(turns, others, key)) : ''
  }
  const earlier = `${EARLIER[server]} ${kind}`
  const reference = nameReference(cells, server, kind)
  return [
    ...[formatWhole(medianOf(turns, 'perSecond')), formatShort(medianOf(turns, 'cpuUs'))],
    ...[against(reference, 'perSecond'), against(reference, 'cpuUs')],
    ...[against(earlier, 'perSecond'), against(earlier, 'cpuUs'), against(`static ${kind}`, 'perSecond')],
  ]
}

/** Names the cells of the client with a cookie on the same server. */
function nameReference(cells, server, kind) {
  const own = `${server} ${PROXY_REFERENCE}`
  return CLIENTS[kind].isProxied && cells[own] ? own : `${server} cookie`
}

/** Tells for each engine whether all kinds cost about as much as a cookie. */
export function buildEqualityTable(results, clients) {
  const servers = [...new Set(Object.values(results).flatMap(listVersos))]
  const rows = servers.flatMap((server) =>
    COMPARED.filter((operation) => results[operation]?.[`${server} cookie`]).map((operation) => {
      const title = [OPERATIONS[operation], SERVERS[server].engine]
      const farthest = findFarthest(results[operation], server, clients)
      if (!farthest) return [...title, '–', 'not measured', '']
      const { kind, ratio, interval } = farthest
      const shown = `${formatShort(ratio)} (${interval.map(formatShort).join('–')})`
      const isEqual = Math.round(Math.abs(ratio - 1) * 100) <= TOLERANCE_PERCENT
      return [...title, CLIENTS[kind].title, shown, isEqual ? 'reached' : 'missed']
    }),
  )
  const headings = ['CPU within 5 % of a cookie', 'engine', 'farthest kind', '÷ cookie (95 %)', '']
  return { headings, rows, texts: 3 }
}

/** Returns the kind whose CPU time differs most from that of a cookie. */
function findFarthest(cells, server, clients) {
  const measured = clients.filter((kind) => kind !== 'cookie' && cells[`${server} ${kind}`])
  const ratios = measured.map((kind) => {
    const all = computeRatios(cells[`${server} ${kind}`], cells[nameReference(cells, server, kind)], 'cpuUs')
    return { kind, ratio: findMedian(all), interval: findMedianInterval(all) }
  })
  const known = ratios.filter(({ ratio }) => ratio !== undefined)
  return known.sort((a, b) => Math.abs(b.ratio - 1) - Math.abs(a.ratio - 1))[0]
}

/** Lists failed requests. */
export function buildClientNotes(results) {
  const notes = []
  for (const [operation, cells] of Object.entries(results)) {
    for (const [name, turns] of Object.entries(cells)) {
      const faults = new Map()
      for (const [what, count] of turns.flatMap((turn) => turn.faults))
        faults.set(what, (faults.get(what) ?? 0) + count)
      for (const [what, count] of faults)
        notes.push(`NOT ALL SUCCEEDED: ${name}, ${OPERATIONS[operation]}: ${what} × ${count}`)
    }
  }
  return notes
}

function listVersos(cells) {
  const names = new Set(Object.keys(cells).map((name) => name.split(' ')[0]))
  return Object.keys(EARLIER).filter((name) => names.has(name))
}

function medianOf(turns, key) {
  return findMedian(turns.map((turn) => turn[key]))
}

/** Drops the columns of comparisons that were not measured. */
function dropEmptyColumns({ headings, rows, texts }) {
  const kept = headings.map((_, column) => column < texts || rows.some((row) => row[column] !== ''))
  const drop = (row) => row.filter((_, column) => kept[column])
  return { headings: drop(headings), rows: rows.map(drop), texts }
}
