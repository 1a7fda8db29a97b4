// The most expensive allowed searches, and how long many of them delay the event loop. Runs beside a service in its own process without
// vitest, see search-hard.mjs.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  MAX_CONDITION_DEPTH,
  MAX_IN_VALUES,
  MAX_LIKE_CHARACTERS,
  MAX_TERMS,
  MAX_LIST_VALUES,
} from '../../src/model/query/condition.js'
import type { SearchRequest } from '../../src/model/query/search.js'
import type { Database } from '../../src/store/engine/database.js'
import type { Records } from '../../src/wire.js'

const MODEL = 'rel.Person'
const PEOPLE = 20_000
const COMPANIES = 200
const CIRCLES = 50
const AT_ONCE = 8
const APART_MS = 37
const WARM_UP = 24
const RESOLUTION_MS = 10
const MAX_TRIES = 100

/** Paths through lists of lists, at most 8 steps. */
const LONG_PATHS = [
  'company.people.circles.members.name',
  'circles.members.company.name',
  'company.people.boss.circles.name',
  'boss.boss.boss.circles.members.name',
  'name',
]
const SORT_KEYS = [
  ...['boss.boss.boss.name', '-boss.company.name', 'company.parent.name', 'boss.name'],
  ...['-name', 'company.name', '-boss.boss.name', 'born'],
]

/** Matches no name completely, but all of them for long; some letters are those that take longest to fold. */
function pattern(number: number): string {
  const letters = number % 4 === 0 ? '%한%글ẞ%é' : '%a%b%c'
  return letters.repeat(MAX_LIKE_CHARACTERS).slice(0, MAX_LIKE_CHARACTERS - 6) + `%z${number % 1_000}`
}

function terms(count: number, term: (index: number) => object): object[] {
  return Array.from({ length: count }, (_, index) => term(index))
}

/** The criteria inside as many groups as allowed. */
function deep(criteria: readonly object[]): object {
  let data: object = { operator: 'or', criteria }
  for (let level = 1; level < MAX_CONDITION_DEPTH; level++)
    data = { operator: level % 2 ? 'not' : 'and', criteria: [data] }
  return data
}

const likes = (number: number) => (index: number) => ({
  fieldName: LONG_PATHS[index % LONG_PATHS.length],
  operator: 'like',
  value: pattern(number + index),
})
const lists = (number: number) => (index: number) => ({
  fieldName: ['boss.boss.id', 'company.people.id', 'circles.members.boss.id', 'id'][index % 4],
  operator: 'in',
  value: Array.from({ length: MAX_IN_VALUES }, (_, value) => PEOPLE + 1_000 * (index + number) + value),
})
const LISTS = MAX_LIST_VALUES / MAX_IN_VALUES

/** Each creates another search of its kind for each number. */
export const KINDS: Readonly<Record<string, (number: number) => SearchRequest>> = {
  'one list': (number) => ({ data: deep([lists(number)(0)]) }),
  patterns: (number) => ({ data: deep(terms(MAX_TERMS, likes(number))) }),
  lists: (number) => ({ data: deep(terms(LISTS, lists(number))) }),
  orders: (number) => ({ sortBy: SORT_KEYS, offset: PEOPLE - 1_000 - (number % 100), limit: 1_000 }),
  'everything at once': (number) => ({
    data: deep([...terms(LISTS, lists(number)), ...terms(MAX_TERMS - LISTS, likes(number))]),
    ...{ sortBy: SORT_KEYS, offset: PEOPLE - 1_000, limit: 1_000 },
  }),
}

/** The kinds in turn. */
export function worstSearches(count: number): SearchRequest[] {
  const kinds = Object.values(KINDS)
  return Array.from({ length: count }, (_, number) => kinds[number % kinds.length]?.(number) ?? {})
}

export interface Delays {
  /** The delay of the event loop in 99 of 100 turns. */
  readonly p99Ms: number
  /** The part of `p99Ms` in which this process itself worked, without waiting for a processor. */
  readonly ownP99Ms: number
  readonly longestMs: number
  readonly tookMs: number
}

export interface Measured extends Delays {
  /** The number of answered searches, and of errors by kind. */
  readonly answers: Readonly<Record<string, number>>
  /** The results of a find, a write and a search after the load. */
  readonly afterwards: readonly string[]
}

export async function measure(records: Records, searches: readonly SearchRequest[]): Promise<Measured> {
  // Warms up, because code is slow when it runs for the first time.
  await searchAll(records, searches.slice(0, WARM_UP), {})
  const answers: Record<string, number> = {}
  const delays = await watched(() => searchAll(records, searches, answers))
  return { ...delays, answers, afterwards: await useAfterwards(records) }
}

async function watched(work: () => Promise<unknown>): Promise<Delays> {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  const own = watchOwnDelays()
  // A delay is measured from one turn to the next, so there must be one before and one after.
  await sleep(2 * RESOLUTION_MS)
  const begin = performance.now()
  await work()
  const tookMs = performance.now() - begin
  await sleep(2 * RESOLUTION_MS)
  histogram.disable()
  const [p99Ms, longestMs] = [histogram.percentile(99) / 1e6, histogram.max / 1e6]
  return { p99Ms, ownP99Ms: own.p99Ms(), longestMs, tookMs }
}

function watchOwnDelays(): { readonly p99Ms: () => number } {
  const delays: number[] = []
  let [turn, used] = [performance.now(), process.cpuUsage()]
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(used)
    delays.push(Math.min(performance.now() - turn, RESOLUTION_MS + (user + system) / 1_000))
    ;[turn, used] = [performance.now(), process.cpuUsage()]
  }, RESOLUTION_MS)
  return {
    p99Ms: () => {
      clearInterval(timer)
      delays.sort((a, b) => a - b)
      return delays[Math.ceil(delays.length * 0.99) - 1] ?? 0
    },
  }
}

async function searchAll(
  records: Records,
  searches: readonly SearchRequest[],
  answers: Record<string, number>,
): Promise<void> {
  const left = searches.values()
  const work = async (_: unknown, index: number) => {
    // Clients are not synchronized.
    await sleep(index * APART_MS)
    for (const search of left) {
      const outcome = await records.search(MODEL, search).then(() => 'answered', kindOf)
      answers[outcome] = (answers[outcome] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, searches.length) }, work))
}

function kindOf(error: unknown): string {
  if (error instanceof Error && 'kind' in error) return String(error.kind)
  throw error
}

/** Retries the search, because it may have to wait for a query worker. */
async function useAfterwards(records: Records): Promise<string[]> {
  const { total } = await records.find(MODEL, { limit: 1 })
  const { data: person } = await records.create(MODEL, { name: 'afterwards' })
  const search = { data: { criteria: [{ fieldName: 'id', operator: '=', value: person.id }] } }
  const found: Record<string, number> = {}
  for (let tries = 0; tries < MAX_TRIES && !found['answered']; tries++)
    await searchAll(records, [search], found)
  return [`${total} people`, `version ${person.version}`, found['answered'] === 1 ? 'found' : 'not found']
}

/** Fills the tables with SQL; the service would take minutes. Names are long, and every second one has an accent, which is slow to fold. */
export async function fill(db: Database): Promise<void> {
  const numbers = (count: number) =>
    `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})`
  const name = `'${'abc'.repeat(60)}' || case when i % 2 = 0 then 'é' else 'e' end || i`
  await db.transaction(async (tx) => {
    await tx.run(
      `${numbers(COMPANIES)} insert into "rel.Company" ("version", "name", "parent") select 0, ${name}, 1 + i % ${COMPANIES} from n`,
    )
    await tx.run(`${numbers(CIRCLES)} insert into "rel.Circle" ("version", "name") select 0, ${name} from n`)
    await tx.run(
      `${numbers(PEOPLE)} insert into "rel.Person" ("version", "name", "company", "boss") ` +
        `select 0, ${name}, 1 + i % ${COMPANIES}, 1 + i * 7 % ${PEOPLE} from n`,
    )
    for (const step of [1, 7]) {
      await tx.run(
        `${numbers(PEOPLE)} insert into "rel.Person:circles" ("owner", "member") ` +
          `select i, 1 + (i * ${step} + ${step}) % ${CIRCLES} from n where true on conflict do nothing`,
      )
    }
  })
}
