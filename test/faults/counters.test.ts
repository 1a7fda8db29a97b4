import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { killWhileCounting } from './counter-kills.js'

/** Starts processes and reads every total, which takes long on a busy machine. */
const TIMEOUT_MS = 240_000

onEveryEngine((engine) => {
  test(
    'totals stay correct when a node is killed under load',
    async () => {
      const { wrong, written } = await killWhileCounting(engine, 1)
      expect(wrong).toEqual([])
      expect(written).toBeGreaterThan(5)
    },
    TIMEOUT_MS,
  )
})
