import type { Gauges } from '../store/database.js'
import { hashesPending } from './accounts/passwords.js'
import type { App } from './app.js'

/** Counters of work in progress: those of the database and those of the service. */
export function gaugesOf({ db, waiting, staging }: Pick<App, 'db' | 'waiting' | 'staging'>): Gauges {
  const own = { hashesPending: hashesPending(), feedReaders: waiting.size, stagedBytes: staging.bytes }
  return { ...db.gauges?.(), ...own }
}
