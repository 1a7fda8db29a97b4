// A write that runs only the stages of its plan, alone or in a list, answers, refuses and logs as one that runs every stage alone.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../../src/service/context/app.js'
import { runBatch } from '../../src/service/records/batch.js'
import { updateMass } from '../../src/service/records/mass-update.js'
import { createRecord, saveRecords, saveWithAddition, updateRecord } from '../../src/service/records/save.js'
import { onEveryEngine } from '../targets.js'
import { SEED, steps, World, type Step, type WriteVerbs } from './one-writer-fixture.js'

const RUNS = Number(process.env['VERSO_WRITER_RUNS'] ?? 15)

const VERBS: WriteVerbs = { createRecord, updateRecord, saveRecords, saveWithAddition, runBatch, updateMass }
/** Plans every stage for every draft, so that no write is plain. */
function planningEveryStage(app: App): App {
  return {
    ...app,
    planWrite: (...input) => ({
      ...{ locks: true, sentBack: true, patches: true, related: true, references: true, lists: true },
      ...{ files: true, permissions: true, sequences: true, hooks: true, readsBack: true },
      ...{ isPlain: false, groupable: app.planWrite(...input).groupable },
    }),
  }
}

onEveryEngine((engine) => {
  let worlds: World[]

  beforeAll(async () => {
    worlds = [await World.start(engine, VERBS), await World.start(engine, VERBS, planningEveryStage)]
    for (const step of SEED) await compare(step)
  })
  afterAll(async () => {
    for (const { service } of worlds) await service.close()
  })

  async function compare(step: Step): Promise<void> {
    const [actual, expected] = await Promise.all(worlds.map((world) => world.run(step)))
    expect(actual, JSON.stringify(step)).toBe(expected)
  }

  test('a plan with only the needed stages equals one with every stage for random models, drafts and permissions', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        for (const world of worlds) world.beginCase()
        for (const step of all) await compare(step)
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
  })
})
