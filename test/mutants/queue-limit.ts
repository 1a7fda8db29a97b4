// Copies of the built service with one mistake in how it refuses requests while the queue of the database is too long.
import { importFromMutant, type Mistake } from './program.js'

const file = 'store/engine/queue-limit.js'

/** `fault` names the check that finds it. */
export const QUEUE_MISTAKES = {
  'nothing is refused': {
    ...{ file, from: 'this.#room > 0', to: 'true' },
    fault: 'delay',
  },
  'the speed of the database is not measured': {
    ...{ file, from: '(this.#perMs ?? 0)', to: '0' },
    fault: 'goodput',
  },
  'an empty queue counts as a slow database': {
    ...{ file, from: 'Math.min(count, this.#measured.count) >= MIN_WAITING', to: 'true' },
    fault: 'goodput after a pause',
  },
  'a lock that is held for a moment is taken for an overload': {
    ...{ file, from: 'const LONG_DELAYS = 5', to: 'const LONG_DELAYS = 1' },
    fault: 'a lock',
  },
  'a few long statements are taken for an overload': {
    ...{ file, from: 'const MIN_WAITING = 16', to: 'const MIN_WAITING = 1' },
    fault: 'few clients with long statements',
  },
  'the limit stays': {
    ...{ file, from: 'const CALM_MS = 1_000', to: 'const CALM_MS = 1e9' },
    fault: 'time after the overload',
  },
} as const satisfies Record<string, Mistake & { readonly fault: string }>

export type QueueMistake = keyof typeof QUEUE_MISTAKES

/** `parent` is a folder for the copy of the program. */
export async function importMutantQueueLimit(
  parent: string,
  mistake: QueueMistake,
): Promise<typeof import('../../src/store/engine/queue-limit.js')> {
  const module = await importFromMutant(parent, QUEUE_MISTAKES[mistake], file)
  return module as typeof import('../../src/store/engine/queue-limit.js')
}
