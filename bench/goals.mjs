// Compares the measurements with the performance goals.
import { computeRatio, formatShort, formatWhole } from './numbers.mjs'
import { SERVERS } from './servers.mjs'
import { findVersoFor } from './report.mjs'

const PEER_GOALS = { pocketbase: 7, feathers: 5, directus: 100, jsonServer: 5 }
const LISTS = ['list0', 'list50']
const WRITES = ['create', 'update']

/** Returns headings and rows; a goal that was not measured says so. */
export function buildGoalsTable(results, started) {
  const { times, ofStatic } = createComparison(results)
  const goals = [
    buildMinimumGoal('read one: of static', 0.55, [ofStatic('read')]),
    buildMinimumGoal('lists with their exact total: of static', 0.2, LISTS.map(ofStatic)),
    ['the same at 10M records, offset 99 %: times the cost at 100k', '≤ 2', 'by bench:growth', ''],
    buildMinimumGoal('durable writes: of static', 0.3, WRITES.map(ofStatic)),
    buildMinimumGoal(
      'durable writes: times hand-written FULL',
      4,
      WRITES.map((operation) => times(operation, 'full')),
    ),
    buildMinimumGoal('mixed: of static', 0.28, [ofStatic('mixed')]),
    ...Object.entries(PEER_GOALS).map(([name, goal]) =>
      buildMinimumGoal(
        `every operation: times ${SERVERS[name].title}`,
        goal,
        compareOperations(results, times, name),
      ),
    ),
    buildMinimumGoal(
      'PostgreSQL, reads and writes: times hand-written',
      2,
      ['read', ...WRITES].map((operation) => times(operation, 'postgres')),
    ),
    buildMinimumGoal(
      'PostgreSQL, lists: times hand-written',
      15,
      LISTS.map((operation) => times(operation, 'postgres')),
    ),
    ...['verso', 'versoPostgres'].flatMap((name) => buildOwnGoals(name, results, started)),
  ]
  return { headings: ['goal', 'wanted', 'measured', ''], rows: goals }
}

function createComparison(results) {
  const times = (operation, name) => {
    const servers = results[operation] ?? {}
    return computeRatio(servers[findVersoFor(name)], servers[name])
  }
  return { times, ofStatic: (operation) => times(operation, 'static') }
}

function compareOperations(results, times, name) {
  const measured = Object.keys(results).filter((operation) => results[operation][name])
  return measured.length > 0 ? measured.map((operation) => times(operation, name)) : [undefined]
}

function buildOwnGoals(name, results, started) {
  const runs = Object.values(results).flatMap((servers) => servers[name] ?? [])
  const title = SERVERS[name].title
  const rss = runs.length > 0 ? Math.max(...runs.map((run) => run.allRssMb)) : undefined
  return [
    buildMaximumGoal(`${title}: RSS under load, MB`, 150, rss),
    buildMaximumGoal(`${title}: start to first answer, ms`, 1_000, started[name]?.firstAnswerMs),
  ]
}

/** The lowest value decides. */
function buildMinimumGoal(title, goal, values) {
  const isKnown = values.every(Number.isFinite)
  const worst = isKnown ? Math.min(...values) : undefined
  return [
    title,
    `≥ ${goal}`,
    isKnown ? formatShort(worst) : 'not measured',
    formatVerdict(worst, worst >= goal),
  ]
}

function buildMaximumGoal(title, goal, value) {
  return [
    title,
    `≤ ${formatWhole(goal)}`,
    value > 0 ? formatWhole(value) : 'not measured',
    formatVerdict(value, value <= goal),
  ]
}

function formatVerdict(value, isReached) {
  if (!(value > 0)) return ''
  return isReached ? 'reached' : 'missed'
}
