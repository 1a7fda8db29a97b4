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
const TOLERANCE = 0.05
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

/**
 * Tells for each engine whether all kinds cost about as much as a cookie. Node itself takes longer to parse the additional headers of a browser
 * or a proxy, so the verdict leaves out what these headers cost a static server.
 */
export function buildEqualityTable(results, clients) {
  const servers = [...new Set(Object.values(results).flatMap(listVersos))]
  const headerCosts = measureHeaderCosts(results.read, clients)
  const rows = servers.flatMap((server) =>
    COMPARED.filter((operation) => results[operation]?.[`${server} cookie`]).map((operation) => {
      const worst = findWorst(results[operation], server, headerCosts)
      const title = [OPERATIONS[operation], SERVERS[server].engine]
      if (!worst) return [...title, '–', 'not measured', '', '']
      const { kind, ratio, ownRatio, interval } = worst
      const own = `${formatShort(ownRatio)} (${interval.map(formatShort).join('–')})`
      const verdict = Math.abs(ownRatio - 1) <= TOLERANCE ? 'reached' : 'missed'
      return [...title, CLIENTS[kind].title, formatShort(ratio), own, verdict]
    }),
  )
  const headings = [
    'CPU within 5 % of a cookie',
    'engine',
    'farthest kind',
    '÷ cookie',
    'without its headers in node:http (95 %)',
    '',
  ]
  return { headings, rows, texts: 3 }
}

/** Returns kind → CPU µs that a static server takes longer than for a cookie; 0 where it was not measured. */
export function measureHeaderCosts(cells, clients) {
  const cookie = cells?.['static cookie']
  return new Map(
    clients
      .filter((kind) => kind !== 'cookie')
      .map((kind) => {
        const turns = cells?.[`static ${kind}`]
        const differences =
          turns && cookie ? turns.map((turn, round) => turn.cpuUs - cookie[round].cpuUs) : [0]
        return [kind, findMedian(differences)]
      }),
  )
}

/** Returns the kind whose CPU time, without the cost of its headers, differs most from that of a cookie. */
export function findWorst(cells, server, headerCosts) {
  const ratios = [...headerCosts].flatMap(([kind, headersUs]) => {
    const turns = cells[`${server} ${kind}`]
    if (!turns) return []
    const cookie = cells[nameReference(cells, server, kind)]
    const own = turns.map((turn) => ({ cpuUs: turn.cpuUs - headersUs }))
    const ratio = findMedian(computeRatios(turns, cookie, 'cpuUs'))
    const ownRatios = computeRatios(own, cookie, 'cpuUs')
    return [{ kind, ratio, ownRatio: findMedian(ownRatios), interval: findMedianInterval(ownRatios) }]
  })
  const known = ratios.filter(({ ownRatio }) => ownRatio !== undefined)
  return known.sort((a, b) => Math.abs(b.ownRatio - 1) - Math.abs(a.ownRatio - 1))[0]
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
