import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { onEveryEngine, PASSWORD, startService, USERNAME } from '../targets.js'
import { findViolations, readStoredState, runControls } from './checker.js'
import { LANES } from './lanes.js'
import { composePage, readResults } from './page.js'
import { MODEL, Recorder, writeDuring } from './recorder.js'
import { HttpTarget } from './service-process.js'

const MIN_WRITE_MS = 1_000
const KINDS = ['create', 'update', 'merge', 'delete', 'batch']

const Item = defineModel(
  JSON.parse(readFileSync(new URL('models/item.json', import.meta.url), 'utf8')) as Parameters<
    typeof defineModel
  >[0],
)

onEveryEngine((engine) => {
  test('without faults the checker finds nothing, and in each broken state something', async () => {
    const models = [{ file: 'item.json', definition: Item }]
    const service = await startService(engine, { models, isNew: true })
    const target = new HttpTarget(service.url)
    await target.login(USERNAME, PASSWORD)
    const recorder = new Recorder()
    const isAcknowledged = (kind: string) =>
      recorder.writes.some((write) => write.kind === kind && write.outcome === 'acknowledged')
    await writeDuring({ recorder, targets: [target], writers: 8 }, async () => {
      await sleep(MIN_WRITE_MS)
      while (recorder.count('refused') === 0 || !KINDS.every(isAcknowledged)) await sleep(MIN_WRITE_MS / 10)
    })
    const state = await readStoredState(target)
    expect([...recorder.faults, ...findViolations(recorder.writes, state)]).toEqual([])
    expect(runControls(recorder.writes, state)).toEqual({ tried: 7, caught: 7, missed: [] })
    expect(state.changes.length).toBeGreaterThan(state.items.length)
    expect(MODEL).toBe(Item.name)
    target.close()
    await service.close()
  })
})

test('docs/promises.md has each promise once, with the stored results', async () => {
  const bars = LANES.flatMap((lane) => lane.bars)
  expect(new Set(bars).size).toBe(bars.length)
  const page = fileURLToPath(new URL('../../docs/promises.md', import.meta.url))
  expect(readFileSync(page, 'utf8')).toBe(await composePage(LANES, readResults()))
})

test('a promise without a result is not run, and never held', async () => {
  const page = await composePage(LANES, {})
  expect(page).not.toMatch(/\| yes/)
  expect(page.match(/\| not run +\| not run +\|/g)).toHaveLength(LANES.flatMap((lane) => lane.bars).length)
})
