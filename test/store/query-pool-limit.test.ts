// Queries that wait too long for a query worker are rejected, and the others run soon.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { openSqlite } from '../../src/store/sqlite/sqlite.js'
import { newLocation } from '../targets.js'

/** Takes tens of milliseconds. */
const SLOW_QUERY =
  'with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) select max(i) as i from n'
const CLIENTS = 60
const LOAD_MS = 6_000
/** The part of it in which the overload has been noticed, and the queue has become short. */
const LAST_MS = 2_000
const MAX_DELAY_MS = 20

interface Outcome {
  answered: number
  rejected: number
  /** In the last part of the load. */
  shortestQueue: number
}

/** Clients that send a query again as soon as the last one was answered, and wait a little after a rejection. */
async function overload(maxQueueDelayMs: number): Promise<Outcome> {
  const location = await newLocation('sqlite')
  const db = await openSqlite(location.url.slice('sqlite:'.length), { maxQueueDelayMs })
  const outcome: Outcome = { answered: 0, rejected: 0, shortestQueue: Infinity }
  const startMs = performance.now()
  const readMs = () => performance.now() - startMs
  const keepAsking = async () => {
    while (readMs() < LOAD_MS)
      try {
        await db.queryPool.all(SLOW_QUERY)
        outcome.answered++
      } catch (error) {
        if (!(error instanceof VersoError) || error.kind !== 'busy') throw error
        outcome.rejected++
        await sleep(20)
      }
  }
  try {
    const clients = Promise.all(Array.from({ length: CLIENTS }, keepAsking))
    while (readMs() < LOAD_MS) {
      await sleep(10)
      const { searchesWaiting = 0 } = db.gauges()
      if (readMs() > LOAD_MS - LAST_MS && readMs() < LOAD_MS)
        outcome.shortestQueue = Math.min(outcome.shortestQueue, searchesWaiting)
    }
    await clients
    await sleep(1_100)
    expect(await db.queryPool.all(SLOW_QUERY)).toHaveLength(1)
    return outcome
  } finally {
    await db.close()
    location.remove()
  }
}

test('while queries wait long, those that cannot run soon are rejected as busy, and the queue is short', async () => {
  const { answered, rejected, shortestQueue } = await overload(MAX_DELAY_MS)
  expect(rejected).toBeGreaterThan(0)
  expect(answered).toBeGreaterThan(0)
  expect(shortestQueue).toBeLessThan(CLIENTS / 2)
})

test('the mutant without a limit is caught: all clients wait in the queue', async () => {
  const { rejected, shortestQueue } = await overload(0)
  expect(rejected).toBe(0)
  expect(shortestQueue).toBeGreaterThan(CLIENTS / 2)
})
