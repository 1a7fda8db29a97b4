import type { Queryable, Transaction } from '../../store/engine/database.js'
import type { App } from './app.js'
import type { Principal } from './principal.js'

/** The first argument of the functions of the service: who acts, on which database handle, and when. */
export interface Context {
  readonly app: App
  readonly principal: Principal
  /** The reader, a snapshot, or the transaction. */
  readonly db: Queryable
  /** The time of the request. Every record that the request writes gets this timestamp. */
  readonly now: string
}

/** One attempt of a transaction. */
export interface WriteContext extends Context {
  readonly tx: Transaction
  /** The hash of the session that survives when all other sessions of its user end. */
  readonly keptSessionHash?: string | undefined
}

export function createContext(app: App, principal: Principal, db: Queryable = app.db.reader): Context {
  return { app, principal, db, now: getTimestamp(app) }
}

/** Copies the context with another database handle. */
export function withDatabase({ app, principal, now }: Context, db: Queryable): Context {
  return { app, principal, db, now }
}

export function withTransaction({ app, principal, now }: Context, tx: Transaction): WriteContext {
  return { app, principal, db: tx, now, tx }
}

export function getTimestamp(app: Pick<App, 'clock'>): string {
  return new Date(app.clock.now()).toISOString()
}
