// Gauges whose values are read when Prometheus asks for them: pending work, the database, and the lag of the readers of the Log.
import { Gauge, Registry } from 'prom-client'
import type { Json } from '../../model/values/value.js'
import type { LogLag } from '../../service/maintenance/log-lag.js'
import type { Gauges } from '../../store/engine/database.js'
import type { DatabaseMeasures } from '../../store/engine/measures.js'
import type { Readiness } from '../meta/readiness.js'

/** Descriptions of the gauges of a server, by the names that they have in `Server.gauges`. */
export const WORK_GAUGES: Readonly<Record<string, string>> = {
  requestsInFlight: 'Requests in progress, without those that wait for changes.',
  requestsWaiting: 'Long polls and event streams that wait for changes.',
  feedReaders: 'Readers that wait for the next change.',
  connectionsInUse: 'PostgreSQL connections in use.',
  connectionsAwaited: 'Operations that wait for a PostgreSQL connection.',
  searchesRunning: 'Query workers that run a search.',
  searchesWaiting: 'Searches that wait for a query worker.',
  writesPending: 'Writes that run or wait for their transaction.',
  uploadsPending: 'Files that are being uploaded.',
  hashesPending: 'Passwords that are being hashed or wait for it.',
  stagedBytes: 'Bytes of large responses in temporary files.',
  waitingBytes: 'Bytes of responses in memory that clients have not read.',
  responsesCompressing: 'Responses that are being compressed.',
}

/** `requestsInFlight` is `verso_requests_in_flight`. */
export function toMetricName(gauge: string): string {
  return `verso_${gauge.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`
}

/** A value with its labels. */
type LabeledValue = readonly [value: number, labels: Readonly<Record<string, string>>]

export interface ScrapedState {
  readonly work: Gauges
  readonly readiness: Readiness
  readonly measures: DatabaseMeasures | undefined
  readonly lag: LogLag | undefined
  /** The facts in the body of `/readyz`, by name. */
  readonly facts: Readonly<Record<string, Json>>
}

interface GaugeDefinition {
  readonly help: string
  /** No values if they are unknown. */
  readonly read: (state: ScrapedState) => readonly LabeledValue[] | number | undefined
}

const GAUGES: Readonly<Record<string, GaugeDefinition>> = {
  verso_up: {
    help: '1 if this node can serve requests, as /readyz says.',
    read: ({ readiness }) => Number(readiness.canRead),
  },
  verso_writable: {
    help: '1 if this node can write. Otherwise 0, and the label names the problem as /readyz does.',
    read: ({ readiness: { obstacle } }) => [[Number(!obstacle), { problem: obstacle?.problem ?? '' }]],
  },
  verso_database_bytes: {
    help: 'Size of the SQLite database file.',
    read: ({ measures }) => measures?.bytes?.database,
  },
  verso_wal_bytes: {
    help: 'Size of the write-ahead log of SQLite.',
    read: ({ measures }) => measures?.bytes?.wal,
  },
  verso_disk_free_bytes: {
    help: 'Free space on the disk of the SQLite database.',
    read: ({ measures }) => measures?.bytes?.free,
  },
  verso_last_verified_backup_timestamp_seconds: {
    help: 'Unix time of the last scheduled backup, which was restored and verified.',
    read: ({ facts }) => toUnixSeconds(facts['lastBackup']),
  },
  verso_log_last_seq: {
    help: 'Sequence number of the last change.',
    read: ({ lag }) => lag?.lastSeq,
  },
  verso_feed_lag_changes: {
    help: 'Changes that the waiting feed reader that is furthest behind has not seen.',
    read: ({ lag }) => lag?.feed,
  },
  verso_webhook_lag_changes: {
    help: 'Changes after the position of a webhook. At most 50 webhooks, those that are furthest behind.',
    read: ({ lag }) => lag?.webhooks.map((each) => [each.lag, { webhook: String(each.id) }]),
  },
  verso_webhook_failures: {
    help: 'Consecutive failed calls of a webhook.',
    read: ({ lag }) => lag?.webhooks.map((each) => [each.failures, { webhook: String(each.id) }]),
  },
  verso_webhook_paused: {
    help: '1 if a webhook is paused.',
    read: ({ lag }) => lag?.webhooks.map((each) => [Number(each.isPaused), { webhook: String(each.id) }]),
  },
  verso_hook_lag_changes: {
    help: 'Changes of its model that an afterCommit hook has not reached.',
    read: ({ lag }) =>
      lag?.hooks.flatMap(({ hook, lag: behind }) => (behind === null ? [] : [[behind, { hook }]])),
  },
  verso_hook_jobs: {
    help: 'Changes for which an afterCommit hook has failed: waiting for a retry, or dead.',
    read: ({ lag }) =>
      lag?.hooks.flatMap(({ hook, waiting, dead }) => [
        [waiting, { hook, state: 'waiting' }],
        [dead, { hook, state: 'dead' }],
      ]),
  },
}

function toUnixSeconds(time: Json | undefined): number | undefined {
  return typeof time === 'string' && !Number.isNaN(Date.parse(time)) ? Date.parse(time) / 1_000 : undefined
}

/** Renders the state as Prometheus text. Unknown values have no line. */
export async function renderState(state: ScrapedState): Promise<string> {
  // A registry of its own: the gauges of another scrape that runs at the same time cannot mix with these.
  const registry = new Registry()
  const add = (name: string, help: string, values: readonly LabeledValue[]) => {
    const gauge = new Gauge({
      name,
      help,
      labelNames: Object.keys(values[0]?.[1] ?? {}),
      registers: [registry],
    })
    for (const [value, labels] of values) gauge.set(labels, value)
  }
  for (const [name, { help, read }] of Object.entries(GAUGES)) {
    const found = read(state) ?? []
    const values: readonly LabeledValue[] = typeof found === 'number' ? [[found, {}]] : found
    if (values.length > 0) add(name, help, values)
  }
  for (const [gauge, value] of Object.entries(state.work))
    add(toMetricName(gauge), WORK_GAUGES[gauge] ?? `The gauge ${gauge} of the server.`, [[value, {}]])
  return registry.metrics()
}
