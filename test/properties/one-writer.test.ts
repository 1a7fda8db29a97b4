// The record writer answers, refuses and logs random writes as the two writers did that it replaces.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runBatch } from '../../src/service/records/batch.js'
import { updateMass } from '../../src/service/records/mass-update.js'
import { createRecord, saveRecords, saveWithAddition, updateRecord } from '../../src/service/records/save.js'
import { onEveryEngine } from '../targets.js'
import { runBatch as keptRunBatch } from './kept-writer/batch.js'
import { updateMass as keptUpdateMass } from './kept-writer/mass-update.js'
import * as kept from './kept-writer/save.js'
import { SEED, steps, World, type Step, type WriteVerbs } from './one-writer-fixture.js'

const RUNS = Number(process.env['VERSO_WRITER_RUNS'] ?? 25)

const VERBS: WriteVerbs = { createRecord, updateRecord, saveRecords, saveWithAddition, runBatch, updateMass }
const KEPT_VERBS: WriteVerbs = {
  createRecord: kept.createRecord,
  updateRecord: kept.updateRecord,
  saveRecords: kept.saveRecords,
  saveWithAddition: kept.saveWithAddition,
  runBatch: keptRunBatch,
  updateMass: keptUpdateMass,
}

onEveryEngine((engine) => {
  let worlds: World[]

  beforeAll(async () => {
    worlds = [await World.start(engine, VERBS), await World.start(engine, KEPT_VERBS)]
    for (const step of SEED) await compare(step)
  })
  afterAll(async () => {
    for (const { service } of worlds) await service.close()
  })

  async function compare(step: Step): Promise<void> {
    const [actual, expected] = await Promise.all(worlds.map((world) => world.run(step)))
    expect(actual, JSON.stringify(step)).toBe(expected)
  }

  test('the writer equals the former two writers for random models, drafts and permissions', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        for (const world of worlds) world.beginCase()
        for (const step of all) await compare(step)
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
  })
})
