import type { Transaction } from '../../store/engine/database.js'
import type { App } from './app.js'
import type { Principal } from './principal.js'

/** What is done in one attempt of a transaction: by whom, when. */
export interface WriteContext extends Principal {
  readonly app: App
  readonly tx: Transaction
  readonly now: string
  /** What the one session is kept under that stays where all others of its user end. */
  readonly keptSessionHash?: string | undefined
}

/** One moment for all that a request writes. */
export function getTimestamp(app: Pick<App, 'clock'>): string {
  return new Date(app.clock.now()).toISOString()
}
