import type { Queryable, Transaction } from '../../store/engine/database.js'
import type { App, Context, WriteContext } from './app.js'
import type { Principal } from './principal.js'

export type { Context, WriteContext } from './app.js'

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
