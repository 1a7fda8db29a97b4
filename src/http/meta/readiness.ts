// Checks what this node can do, for `/readyz`.
import { setTimeout as sleep } from 'node:timers/promises'
import { summarizeError } from '../../errors.js'
import type { App } from '../../service/context/app.js'
import { findUnwritable, type UnwritableKind } from '../../store/engine/write-health.js'
import { isSchemaCurrent } from '../../store/records/write.js'

/** `/readyz` is public, so the database is queried at most this often. */
const READINESS_CACHE_MS = 1_000
/** `/readyz` answers within a second: balancers give a check little time. */
const READINESS_TIMEOUT_MS = 700

export interface Readiness {
  /** False if this node should get no requests. */
  readonly canRead: boolean
  /** Why this node rejects writes, or all requests. */
  readonly obstacle?: Obstacle | undefined
}

interface Obstacle {
  /** For programs. */
  readonly problem: UnwritableKind | 'shutting-down' | 'outdated-models' | 'unreachable' | 'no-answer'
  /** For operators. */
  readonly reason: string
}

export const SHUTTING_DOWN: Readiness = {
  canRead: false,
  obstacle: { problem: 'shutting-down', reason: 'The service is shutting down' },
}

const OUTDATED_MODELS: Readiness = {
  canRead: false,
  obstacle: {
    problem: 'outdated-models',
    reason:
      'This node runs outdated models: the schema changed after it started. Restart it with the new models',
  },
}

const NO_ANSWER: Readiness = {
  canRead: false,
  obstacle: {
    problem: 'no-answer',
    reason: `The database did not answer within ${READINESS_TIMEOUT_MS} ms`,
  },
}

/** Queries the database at most once a second, and never twice at the same time. */
export class ReadinessCheck {
  #last: { readonly atMs: number; readonly readiness: Readiness } | undefined
  #running: Promise<Readiness> | undefined

  constructor(private readonly app: App) {}

  async find(): Promise<Readiness> {
    const last = this.#last
    if (last && performance.now() - last.atMs <= READINESS_CACHE_MS) return last.readiness
    this.#running ??= this.#check()
    const timer = new AbortController()
    const timeout = sleep(READINESS_TIMEOUT_MS, NO_ANSWER, { signal: timer.signal }).catch(() => NO_ANSWER)
    const readiness = await Promise.race([this.#running, timeout])
    timer.abort()
    return readiness
  }

  async #check(): Promise<Readiness> {
    const readiness = await checkReadiness(this.app)
    this.#last = { atMs: performance.now(), readiness }
    this.#running = undefined
    return readiness
  }
}

async function checkReadiness({ db, snapshots, log }: App): Promise<Readiness> {
  try {
    if (!(await isSchemaCurrent(db.reader, snapshots, [...snapshots.keys()]))) return OUTDATED_MODELS
    const unwritable = await db.writability()
    if (!unwritable) return { canRead: true }
    return { canRead: true, obstacle: { problem: unwritable.kind, reason: unwritable.reason } }
  } catch (error) {
    log.warn(summarizeError(error), 'database unavailable')
    const unwritable = findUnwritable(error)
    if (unwritable)
      return { canRead: false, obstacle: { problem: unwritable.kind, reason: unwritable.reason } }
    return {
      canRead: false,
      obstacle: { problem: 'unreachable', reason: 'The database cannot be reached' },
    }
  }
}
