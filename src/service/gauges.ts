import type { Gauges } from '../store/database.js'
import { hashesPending } from './accounts/passwords.js'
import type { App } from './app.js'

/** Counters of work in progress: those of the database and those of the service. */
export function gaugesOf({ db, waiting }: Pick<App, 'db' | 'waiting'>): Gauges {
  return { ...db.gauges?.(), hashesPending: hashesPending(), feedReaders: waiting.size }
}
