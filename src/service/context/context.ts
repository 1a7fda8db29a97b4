import type { FieldErrors } from '../../model/definition/field-errors.js'
import type { Visibility } from '../../model/query/visibility.js'
import type { Queryable, Transaction } from '../../store/engine/database.js'
import type { App, Context, TransactionAttempt, WriteContext } from './app.js'
import type { Principal } from './principal.js'

export type { Context, WriteContext } from './app.js'

export function createContext(app: App, principal: Principal, db: Queryable = app.db.reader): Context {
  return { app, principal, db, now: getTimestamp(app) }
}

/** Copies the context with another database handle. */
export function withDatabase({ app, principal, now }: Context, db: Queryable): Context {
  return { app, principal, db, now }
}

/** The time of the write is that of this attempt: a request may have waited, and others have committed since. */
export function withTransaction(
  { app, principal }: Context,
  tx: Transaction,
  attempt: TransactionAttempt,
): WriteContext {
  return { app, principal, db: tx, now: getTimestamp(app), tx, attempt }
}

export function createAttempt(number = 1, errors?: FieldErrors): TransactionAttempt {
  return { number, errors, mayHaveMoreErrors: true, hookMs: 0 }
}

/** The models and fields that the principal may see. */
export function getVisibility({ catalog }: Pick<App, 'catalog'>, { permissions }: Principal): Visibility {
  return permissions ?? catalog
}

export function getTimestamp({ clock }: Pick<App, 'clock'>): string {
  const ms = clock.now()
  if (ms !== latest.ms) latest = { ms, timestamp: new Date(ms).toISOString() }
  return latest.timestamp
}

/**
 * The last timestamp. Many requests begin in one millisecond, and formatting costs more than reading the clock. The text depends on the
 * millisecond alone, so all apps share it.
 */
let latest = { ms: 0, timestamp: new Date(0).toISOString() }
