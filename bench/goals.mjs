// Compares the measurements with the performance goals.
import { ratioOf, short, whole } from './numbers.mjs'
import { SERVERS } from './servers.mjs'
import { versoBeside } from './report.mjs'

const PEER_GOALS = { pocketbase: 7, feathers: 5, directus: 100, jsonServer: 5 }
const LISTS = ['list0', 'list50']
const WRITES = ['create', 'update']

/** Returns headings and rows; a goal that was not measured says so. */
export function goalsTable(results, started) {
  const { times, ofStatic } = comparing(results)
  const goals = [
    atLeast('read one: of static', 0.55, [ofStatic('read')]),
    atLeast('lists with their exact total: of static', 0.2, LISTS.map(ofStatic)),
    ['the same at 10M records, offset 99 %: times the cost at 100k', '≤ 2', 'by bench:growth', ''],
    atLeast('durable writes: of static', 0.3, WRITES.map(ofStatic)),
    atLeast(
      'durable writes: times hand-written FULL',
      4,
      WRITES.map((operation) => times(operation, 'full')),
    ),
    atLeast('mixed: of static', 0.28, [ofStatic('mixed')]),
    ...Object.entries(PEER_GOALS).map(([name, goal]) =>
      atLeast(`every operation: times ${SERVERS[name].title}`, goal, everyOperation(results, times, name)),
    ),
    atLeast(
      'PostgreSQL, reads and writes: times hand-written',
      2,
      ['read', ...WRITES].map((operation) => times(operation, 'postgres')),
    ),
    atLeast(
      'PostgreSQL, lists: times hand-written',
      15,
      LISTS.map((operation) => times(operation, 'postgres')),
    ),
    ...['verso', 'versoPostgres'].flatMap((name) => ownGoals(name, results, started)),
  ]
  return { headings: ['goal', 'wanted', 'measured', ''], rows: goals }
}

function comparing(results) {
  const times = (operation, name) => {
    const servers = results[operation] ?? {}
    return ratioOf(servers[versoBeside(name)], servers[name])
  }
  return { times, ofStatic: (operation) => times(operation, 'static') }
}

function everyOperation(results, times, name) {
  const measured = Object.keys(results).filter((operation) => results[operation][name])
  return measured.length > 0 ? measured.map((operation) => times(operation, name)) : [undefined]
}

function ownGoals(name, results, started) {
  const runs = Object.values(results).flatMap((servers) => servers[name] ?? [])
  const title = SERVERS[name].title
  const rss = runs.length > 0 ? Math.max(...runs.map((run) => run.allRssMb)) : undefined
  return [
    atMost(`${title}: RSS under load, MB`, 150, rss),
    atMost(`${title}: start to first answer, ms`, 1_000, started[name]?.firstAnswerMs),
  ]
}

/** The lowest value decides. */
function atLeast(title, goal, values) {
  const isKnown = values.every(Number.isFinite)
  const worst = isKnown ? Math.min(...values) : undefined
  return [title, `≥ ${goal}`, isKnown ? short(worst) : 'not measured', verdict(worst, worst >= goal)]
}

function atMost(title, goal, value) {
  return [title, `≤ ${whole(goal)}`, value > 0 ? whole(value) : 'not measured', verdict(value, value <= goal)]
}

function verdict(value, isReached) {
  if (!(value > 0)) return ''
  return isReached ? 'reached' : 'missed'
}
