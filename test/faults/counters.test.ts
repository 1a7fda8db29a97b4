import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { killWhileCounting } from './counter-kills.js'

/** Processes start, and every total is asked for: on a busy machine that takes its time. */
const TIMEOUT_MS = 240_000

onEveryEngine((engine) => {
  test(
    'totals stay right beside a node that is killed under load',
    async () => {
      const { wrong, written } = await killWhileCounting(engine, 1)
      expect(wrong).toEqual([])
      expect(written).toBeGreaterThan(5)
    },
    TIMEOUT_MS,
  )
})
