import { expect, test } from 'vitest'
import { mergeInProcess, mergeInProcesses, type MergeRace } from './merge-race.js'
import { WIDTH } from './wide-model.js'

const ALL: MergeRace = { writers: WIDTH, connections: 100 }
const ALL_STAND = { successes: WIDTH, version: WIDTH, violations: [] }
const SOME = 300

test('sqlite: 300 writers merge one field each from the same version concurrently, and every change is kept', async () => {
  const some = { ...ALL, writers: SOME }
  expect(await mergeInProcess('sqlite', some)).toEqual({ successes: SOME, version: SOME, violations: [] })
})

test('postgres: 1,000 writers merge one field each through three nodes, and every change is kept', async () => {
  expect(await mergeInProcesses('postgres', 3, ALL)).toEqual(ALL_STAND)
})
