import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { mergeInProcess, mergeInProcesses, type MergeRace } from './merge-race.js'
import { WIDTH } from './wide-model.js'

const ALL: MergeRace = { writers: WIDTH, connections: 100 }
const ALL_STAND = { successes: WIDTH, version: WIDTH, violations: [] }

onEveryEngine((engine) => {
  test('1,000 people change a field each at once, all from the same version: every change stands', async () => {
    expect(await mergeInProcess(engine, ALL)).toEqual(ALL_STAND)
  })
})

test('postgres: 1,000 people do so through three nodes: every change stands', async () => {
  expect(await mergeInProcesses('postgres', 3, ALL)).toEqual(ALL_STAND)
})
