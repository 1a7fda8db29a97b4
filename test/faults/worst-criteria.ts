// Measures how long the most expensive allowed searches delay the event loop of a service.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { newLocation, type Engine } from '../targets.js'
import type * as mutants from '../mutants/records.js'
import type { Measured } from './worst-searches.js'

export const LIMIT_MS = 50
const MAX_ATTEMPTS = 3
const script = fileURLToPath(new URL('search-hard.mjs', import.meta.url))

export interface Question {
  readonly searches: number
  /** One of the kinds of worst-searches.ts; all in turn if undefined. */
  readonly kind?: string
  readonly mutant?: keyof typeof mutants
}

/**
 * Repeats a run, at most three times, if its delay exceeds the limit although the process itself did not work that long: then it waited
 * for a processor that other programs or the searches used. An idle loop shows no such delay (10 to 28 ms in a run with 106), so idle
 * time cannot tell.
 */
export async function measureInQuiet(engine: Engine, question: Question): Promise<Measured> {
  for (let attempt = 1; ; attempt++) {
    const measured = await measure(engine, question)
    const isNoise = measured.p99Ms >= LIMIT_MS && measured.ownP99Ms < LIMIT_MS
    if (!isNoise) return measured
    // The machine is never quiet: only the work of the process itself tells.
    if (attempt === MAX_ATTEMPTS) return { ...measured, p99Ms: measured.ownP99Ms }
  }
}

async function measure(engine: Engine, { searches, kind, mutant }: Question): Promise<Measured> {
  const location = await newLocation(engine)
  const child = fork(script, [location.url, String(searches), ...(kind === undefined ? [] : [kind])], {
    execArgv: [],
    env: { ...process.env, ...(mutant ? { MUTANT: mutant } : {}) },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  const [measured] = (await Promise.race([
    once(child, 'message'),
    ended.then(() => Promise.reject(new Error('the service ended before it had measured'))),
  ])) as [Measured]
  await ended
  location.remove()
  return measured
}
