// Copies of the built service with one mistake in how it refuses requests under overload.
import { importFromMutant, type Mistake } from './program.js'

const file = 'http/connection/load-shedder.js'

/** `fault` names the check that finds it. */
export const SHEDDER_MISTAKES = {
  'nothing is refused': {
    ...{ file, from: 'this.#accepted < this.#limit', to: 'true' },
    fault: 'delay',
  },
  'refusals count as work': {
    ...{
      file,
      from: 'const refusalsMs = this.#refused * this.#refusalMs * this.#refusalParts',
      to: 'const refusalsMs = 0',
    },
    fault: 'goodput',
  },
  'refusals take the place of all responses': {
    ...{ file, from: 'const MIN_WORK_PER_REFUSALS = 0.25', to: 'const MIN_WORK_PER_REFUSALS = 0' },
    fault: 'clients that repeat refused requests at once',
  },
  'the costs are never learnt': {
    ...{ file, from: 'const LEARNING_RATE = 0.2', to: 'const LEARNING_RATE = 0' },
    fault: 'requests that become longer',
  },
  'the first slow turn is taken for an overload': {
    ...{ file, from: 'const MIN_SLOW_TURNS = 3', to: 'const MIN_SLOW_TURNS = 1' },
    fault: 'a burst and a garbage collection',
  },
  'long requests are taken for an overload': {
    ...{ file, from: 'const MIN_REQUESTS = 8', to: 'const MIN_REQUESTS = 1' },
    fault: 'few clients with long requests',
  },
  'the limit stays': {
    ...{ file, from: 'const CALM_MS = 1_000', to: 'const CALM_MS = 1e9' },
    fault: 'time after the overload',
  },
  'the limit survives a pause': {
    ...{ file, from: 'this.#isOverloaded && this.#accepted + this.#refused === 0', to: 'false' },
    fault: 'a burst after a pause',
  },
  'work in many short turns counts as one long turn': {
    ...{ file, from: 'const MAX_IDLE_SHARE = 0.1', to: 'const MAX_IDLE_SHARE = 1' },
    fault: 'long work between rare requests',
  },
  'the time in which the event loop waits counts': {
    ...{ file, from: ' - (turn.idleMs - this.#turn.idleMs)', to: '' },
    fault: 'time that the event loop waits',
  },
} as const satisfies Record<string, Mistake & { readonly fault: string }>

export type ShedderMistake = keyof typeof SHEDDER_MISTAKES

/** `parent` is a folder for the copy of the program. */
export async function importMutantShedder(
  parent: string,
  mistake: ShedderMistake,
): Promise<typeof import('../../src/http/connection/load-shedder.js')> {
  const module = await importFromMutant(parent, SHEDDER_MISTAKES[mistake], file)
  return module as typeof import('../../src/http/connection/load-shedder.js')
}
