// Determines the final state of each record after all clients have stopped, and resolves writes without a response.
import { ConfigError } from '../../../errors.js'
import type { Adapter, RecordResult, SendRequest, ObservedState } from '../adapters/adapter.js'
import type { ProveClient, ClientContext } from './prove-client.js'
import type { Journal } from './journal.js'

const PARALLEL_REQUESTS = 16
/** How long a service may fail to answer before the run is given up. */
const READ_RETRY_TIMEOUT_MS = 60_000
const READ_RETRY_MS = 50

/** Final state of each record; removed records are absent. */
export type FinalTable = ReadonlyMap<string, ObservedState>

/** `client` is a client without fault injection. */
export async function readFinalTable(client: ProveClient, journal: Journal): Promise<FinalTable> {
  const table = new Map<string, ObservedState>()
  await forEachConcurrently([...journal.records], async (record) => {
    const state = await readFinalState(client, journal, record)
    if (state) table.set(record, state)
  })
  await client.total()
  return table
}

/** Removes the records of this run. Errors are no part of the result. */
export async function removeRecords(
  { adapter, connections, addresses }: ClientContext,
  records: FinalTable,
): Promise<void> {
  const [address] = addresses
  if (!address) return
  await forEachConcurrently([...records], async ([record, { version }]) => {
    await adapter.remove(connections.sendTo(address), record, version)
  })
}

/**
 * A write without a response may still be in flight. It names the current version, so one more update settles it: the
 * late write then conflicts.
 */
async function readFinalState(
  client: ProveClient,
  journal: Journal,
  record: string,
): Promise<ObservedState | undefined> {
  for (;;) {
    const state = await retryUntilKnown(() => client.read(record))
    if (state.outcome === 'refused' || state.outcome === 'unknown')
      throw new ConfigError('The run failed without a result', [
        `record ${record} cannot be read: no successful response for ${READ_RETRY_TIMEOUT_MS / 1000} s`,
      ])
    // Any other outcome is in the journal, and the checker reports it.
    if (state.outcome !== 'ok') return undefined
    if (!journal.isInDoubt(record, state)) return state
    await client.update(record, state)
  }
}

async function retryUntilKnown(read: () => Promise<RecordResult>): Promise<RecordResult> {
  const deadlineMs = performance.now() + READ_RETRY_TIMEOUT_MS
  for (;;) {
    const answer = await read()
    const isUnresolved = answer.outcome === 'refused' || answer.outcome === 'unknown'
    if (!isUnresolved || performance.now() > deadlineMs) return answer
    await new Promise((resolve) => setTimeout(resolve, READ_RETRY_MS))
  }
}

/** Finds records that no client knows: creates without a response, for services without idempotency keys. */
export async function findUnacknowledgedRecords(
  adapter: Adapter,
  send: SendRequest,
  journal: Journal,
): Promise<FinalTable> {
  const listed = await adapter.list?.(send)
  if (listed?.outcome !== 'ok') return new Map()
  return new Map(
    listed.records.filter(({ id }) => !journal.records.has(id)).map(({ id, ...state }) => [id, state]),
  )
}

/** Processes the items with a limited number of concurrent workers. */
async function forEachConcurrently<T>(all: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...all]
  const worker = async () => {
    for (let item = queue.pop(); item !== undefined; item = queue.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: PARALLEL_REQUESTS }, worker))
}
