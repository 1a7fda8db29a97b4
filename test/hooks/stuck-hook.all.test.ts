// A hook that never returns beside 100 writers: it is refused at its limit, and the others hardly notice.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Records } from '../../src/wire.js'
import { enter, onEveryEngine, startService, type Service } from '../targets.js'

const WRITERS = 100
const ROUNDS = 5
const MAX_ATTEMPTS = 10
/** The largest p99 of the other writers, as a multiple of their p99 without the hook. */
const MAX_RATIO = 3

const Plain = defineModel({ name: 'stuck.Plain', fields: { name: { type: 'string' } } })
const Stuck = defineModel({
  name: 'stuck.Stuck',
  fields: { name: { type: 'string' } },
  hooks: { beforeSave: () => new Promise(() => undefined) },
})
/** Holds its transaction for a second, as the other hook would without a limit for idle ones. */
const Slow = defineModel({
  name: 'stuck.Slow',
  fields: { name: { type: 'string' } },
  hooks: {
    beforeSave: async ({ records }) => {
      const endMs = performance.now() + 900
      while (performance.now() < endMs) {
        await records.of(Plain).find({ limit: 1 })
        await sleep(20)
      }
      return undefined
    },
  },
})
const MODELS = [Plain, Stuck, Slow].map((definition) => ({ file: 'stuck.ts', definition }))

onEveryEngine((engine) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine, { models: MODELS, expects: ['internal', 'busy'] })
    records = await enter(service, 'http')
    await measureP99(5)
  })
  afterAll(() => service.close())

  /** Repeats a write that a slow machine refuses as busy. The time of all attempts counts. */
  async function createPlain(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await records.create('stuck.Plain', { name: 'a' })
        return
      } catch (error) {
        const isBusy = error instanceof VersoError && error.kind === 'busy'
        if (!isBusy || attempt === MAX_ATTEMPTS) throw error
      }
    }
  }

  /** The p99 of the writers, in milliseconds. */
  async function measureP99(writesEach: number): Promise<number> {
    const latencies: number[] = []
    const write = async () => {
      for (let count = 0; count < writesEach; count++) {
        const startMs = performance.now()
        await createPlain()
        latencies.push(performance.now() - startMs)
      }
    }
    await Promise.all(Array.from({ length: WRITERS }, write))
    latencies.sort((a, b) => a - b)
    return latencies[Math.ceil(latencies.length * 0.99) - 1] ?? 0
  }

  /** Measures beside a client that writes this model without a pause. Returns its errors, too. */
  async function measureBeside(
    model: string,
    writesEach: number,
  ): Promise<{ p99: number; errors: unknown[] }> {
    const errors: unknown[] = []
    let isOver = false
    const disturb = async () => {
      while (!isOver) await records.create(model, { name: 'a' }).catch((error: unknown) => errors.push(error))
    }
    const disturbing = disturb()
    const p99 = await measureP99(writesEach)
    isOver = true
    await disturbing
    return { p99, errors }
  }

  async function measureRatio(
    model: string,
    writesEach: number,
  ): Promise<{ ratio: number; errors: unknown[] }> {
    const ratios: number[] = []
    const errors: unknown[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const alone = await measureP99(writesEach)
      const beside = await measureBeside(model, writesEach)
      ratios.push(beside.p99 / alone)
      errors.push(...beside.errors)
    }
    ratios.sort((a, b) => a - b)
    const ratio = ratios[Math.floor(ROUNDS / 2)] ?? Infinity
    process.stdout.write(
      `${engine}: p99 of ${WRITERS} writers beside ${model}: ${ratios.map((each) => each.toFixed(2)).join(' ')} of without\n`,
    )
    return { ratio, errors }
  }

  test(`a hook that never returns is refused, and p99 of 100 other writers stays within ${MAX_RATIO} times`, async () => {
    const { ratio, errors } = await measureRatio('stuck.Stuck', 12)
    expect(errors.length).toBeGreaterThan(ROUNDS)
    const isRefused = (error: unknown) => error instanceof VersoError && error.kind === 'hook-failed'
    expect(errors.filter((error) => !isRefused(error))).toEqual([])
    expect((await records.find('stuck.Stuck')).total).toBe(0)
    expect(ratio).toBeLessThanOrEqual(MAX_RATIO)
  })

  // PostgreSQL has other connections for the other writers.
  if (engine === 'sqlite')
    test('the measurement notices a hook that holds the lock for a second', async () => {
      expect((await measureRatio('stuck.Slow', 3)).ratio).toBeGreaterThan(MAX_RATIO)
    })
})
