// Broken bookkeeping of the hooks after the commit, which the same scenarios catch that pass without it.
import { afterEach, expect, test } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { forgetsOrder, ignoresLease, movesBeforeRun, stopsAtFailure } from '../mutants/commit-hooks.js'
import { onEveryEngine, preparedLocation, type Engine } from '../targets.js'
import {
  CallNotes,
  createTaskModels,
  startCommitService,
  type CommitService,
  type DatabaseLocation,
} from './commit-fixture.js'

type Mutant = (db: Database) => Database

const running: CommitService[] = []
afterEach(async () => {
  for (const service of running.splice(0)) await service.close()
})

const newDatabase = async (engine: Engine) =>
  preparedLocation(engine, createTaskModels(new CallNotes(), new CallNotes()))

async function startNode(
  engine: Engine,
  location: DatabaseLocation,
  mutant: Mutant | undefined,
  notes?: CallNotes,
): Promise<CommitService> {
  const options = { poolSize: 10, statementTimeoutMs: 10_000 }
  const database = mutant && mutant(await openDatabase(location.url, options))
  const service = await startCommitService(engine, {
    location,
    ...(database ? { database } : {}),
    ...(notes ? { notes } : {}),
  })
  running.push(service)
  return service
}

/** Waits until the hooks have settled. A mutant may never settle: it shows itself within a time. */
async function settle({ hooks }: CommitService, mutant: Mutant | undefined): Promise<void> {
  if (!mutant) return hooks.settle()
  await Promise.race([hooks.settle(), new Promise((resolve) => setTimeout(resolve, 4_000))])
}

/** A node dies while its hook runs; another one takes over. Returns the titles that the other one runs. */
async function dieDuringRun(engine: Engine, mutant?: Mutant): Promise<unknown[]> {
  const location = await newDatabase(engine)
  const first = await startNode(engine, location, mutant)
  let begin: () => void = () => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))
  first.notes.act = () => {
    begin()
    return new Promise(() => undefined)
  }
  await first.create('lost?')
  await begun
  await first.app.db.transaction((tx) => tx.run(`update verso_hook set lease = 'dead', leased_until_ms = 0`))
  const second = await startNode(engine, location, undefined)
  await second.hooks.settle()
  return second.notes.titles()
}

/** Two nodes run the same hooks. Returns how often each change ran. */
async function runOnTwoNodes(engine: Engine, mutant?: Mutant): Promise<number[]> {
  const location = await newDatabase(engine)
  const notes = new CallNotes()
  const nodes = [
    await startNode(engine, location, mutant, notes),
    await startNode(engine, location, mutant, notes),
  ]
  // Slow enough for the other node to find the change, too.
  notes.act = () => new Promise((resolve) => setTimeout(resolve, 20))
  for (let i = 0; i < 5; i++) await nodes[i % 2]?.create(`n${i}`)
  // A node without a lease looks for a free one every second.
  await new Promise((resolve) => setTimeout(resolve, 2_500))
  for (let i = 5; i < 20; i++) await nodes[i % 2]?.create(`n${i}`)
  for (const node of nodes) await settle(node, mutant)
  const counts = new Map<number, number>()
  for (const { seq } of notes.calls) counts.set(seq, (counts.get(seq) ?? 0) + 1)
  expect(counts.size).toBe(20)
  return [...counts.values()]
}

/** One record fails. Returns the titles that the hook gets for it and for another record. */
async function failOnce(engine: Engine, mutant?: Mutant): Promise<{ bad: unknown[]; good: unknown[] }> {
  const service = await startNode(engine, await newDatabase(engine), mutant)
  const { notes } = service
  notes.act = ({ after }) => {
    if (after?.['title'] === 'bad') throw new Error('refused')
  }
  const bad = await service.create('bad')
  const good = await service.create('good')
  await settle(service, mutant)
  await service.update(bad, { title: 'later' })
  await service.update(good, { title: 'still good' })
  await settle(service, mutant)
  const titlesOf = (id: number) =>
    notes.calls.filter((call) => call.id === id).map(({ after }) => after?.['title'])
  return { bad: titlesOf(bad.id), good: titlesOf(good.id) }
}

onEveryEngine((engine) => {
  test('a change runs again if its node dies during the run, and a mutant that moves the position first loses it', async () => {
    expect(await dieDuringRun(engine)).toEqual(['lost?'])
    expect(await dieDuringRun(engine, movesBeforeRun)).toEqual([])
  })

  test('two nodes run each change once, and a mutant without the lease runs some twice', async () => {
    expect(await runOnTwoNodes(engine)).toEqual(Array.from({ length: 20 }, () => 1))
    expect(await runOnTwoNodes(engine, ignoresLease)).toContain(2)
  })

  test('later changes of a failed record wait, and a mutant that forgets the order runs them', async () => {
    expect(await failOnce(engine)).toEqual({ bad: ['bad'], good: ['good', 'still good'] })
    expect((await failOnce(engine, forgetsOrder)).bad).toContain('later')
  })

  test('a failed change does not hold back others, and a mutant that stops at it delays them', async () => {
    expect(await failOnce(engine)).toMatchObject({ good: ['good', 'still good'] })
    expect((await failOnce(engine, stopsAtFailure)).good).not.toContain('still good')
  })
})
