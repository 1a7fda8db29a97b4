import { expect, test } from 'vitest'
import { mergeInProcess, mergeInProcesses } from './merge-race.js'

/** Each merge reads the changes of all writers before it, so the cost grows with the square of their number. */
const WRITERS = { sqlite: 300, postgres: 1_000 }
/** A merge waits for all that were sent before it. More at once would exceed the time limit of a request on a slow machine. */
const CONNECTIONS = { sqlite: 100, postgres: 30 }

test('sqlite: 300 writers merge one field each from the same version concurrently, and every change is kept', async () => {
  const writers = WRITERS.sqlite
  const race = await mergeInProcess('sqlite', { writers, connections: CONNECTIONS.sqlite })
  expect(race).toEqual({ successes: writers, version: writers, violations: [] })
})

test('postgres: 1,000 writers merge one field each through three nodes, and every change is kept', async () => {
  const writers = WRITERS.postgres
  const race = await mergeInProcesses('postgres', 3, { writers, connections: CONNECTIONS.postgres })
  expect(race).toEqual({ successes: writers, version: writers, violations: [] })
})
