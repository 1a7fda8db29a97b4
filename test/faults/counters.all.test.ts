import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { killWhileCounting } from './counter-kills.js'

onEveryEngine((engine) => {
  test('totals stay correct when a node is killed under load 5 times', async () => {
    const { wrong, written } = await killWhileCounting(engine, 5)
    expect(wrong).toEqual([])
    expect(written).toBeGreaterThan(60)
  })
})
