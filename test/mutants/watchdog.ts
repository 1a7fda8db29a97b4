// Copies of the built service with one mistake in how it watches PostgreSQL.
import { importFromMutant, type Mistake } from './program.js'

export const WATCHDOG_MISTAKES = {
  'a silent server is not noticed': {
    file: 'store/postgres/watchdog.js',
    from: 'const SILENT_TICKS = 7',
    to: 'const SILENT_TICKS = 1e9',
  },
  'long statements of a healthy server are cut': {
    file: 'store/postgres/connections.js',
    from: 'statementTimeoutMs + CONNECT_TIMEOUT_MS',
    to: '3_000',
  },
  'every answer cuts the connections': {
    file: 'store/postgres/server-health.js',
    from: 'last.startedAt !== answer.startedAt',
    to: 'true',
  },
  'abandoned sessions keep their locks': {
    file: 'store/postgres/server-health.js',
    from: 'this.#endSessions(answer, this.#abandoned)',
    to: 'void 0',
  },
  'a blocked event loop is taken for silence': {
    file: 'store/postgres/watchdog.js',
    from: 'this.#ticksWithoutAnswer++',
    to: 'const now = performance.now(); this.#ticksWithoutAnswer += Math.max(1, Math.floor((now - (this.lastMs ?? now)) / TICK_MS)); this.lastMs = now',
  },
  'connections to a former server stay': {
    file: 'store/postgres/server-health.js',
    from: 'last.startedAt !== answer.startedAt',
    to: 'false',
  },
  'a read-only server is asked on its old connection': {
    file: 'store/postgres/server-health.js',
    from: "options.writeHealth.unwritable?.kind === 'read-only'",
    to: 'false',
  },
  'connections that are read-only stay': {
    file: 'store/postgres/server-health.js',
    from: 'replaceConnections();',
    to: '',
  },
  'a full disk is not noticed': {
    file: 'store/postgres/disk-room.js',
    from: "this.writeHealth.report('full', error)",
    to: 'void error',
  },
  'the room of a full disk is not tested': {
    file: 'store/postgres/disk-room.js',
    from: 'if (!this.#isFull ||',
    to: 'if (true ||',
  },
  'a pooler in transaction mode is accepted': {
    file: 'store/postgres/server-health.js',
    from: 'answer?.isThroughPooler',
    to: 'false',
  },
} as const satisfies Record<string, Mistake>

export type WatchdogMistake = keyof typeof WATCHDOG_MISTAKES

/** Imports the mutant that opens databases. `parent` is a folder for its copy of the program. */
export async function importMutantStore(
  parent: string,
  mistake: WatchdogMistake,
): Promise<typeof import('../../src/store/open.js')> {
  const module = await importFromMutant(parent, WATCHDOG_MISTAKES[mistake], 'store/open.js')
  return module as typeof import('../../src/store/open.js')
}
