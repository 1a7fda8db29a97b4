// When all clients have gone: what became of every record, and of every request without an answer.
import { ConfigError } from '../../errors.js'
import type { Adapter, RecordResult, SendRequest, ObservedState } from './adapter.js'
import type { ProveClient, ClientContext } from './caller.js'
import type { Journal } from './journal.js'

const PARALLEL_REQUESTS = 16
/** A service that answers nothing for so long is not waited for. */
const READ_RETRY_TIMEOUT_MS = 60_000
const READ_RETRY_MS = 50

/** What is there, by record; those that are gone are not in it. */
export type FinalTable = ReadonlyMap<string, ObservedState>

/** `judge` is a client that nothing happens to. */
export async function readFinalTable(client: ProveClient, journal: Journal): Promise<FinalTable> {
  const table = new Map<string, ObservedState>()
  await forEachConcurrently([...journal.records], async (record) => {
    const state = await readFinalState(client, journal, record)
    if (state) table.set(record, state)
  })
  await client.total()
  return table
}

/** Takes away what this run has made, as well as it can: this is no part of the proof any more. */
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
 * A request without an answer may be under way still. It names the version that the record is at, so one more update decides: from
 * then on it comes too late.
 */
async function readFinalState(
  client: ProveClient,
  journal: Journal,
  record: string,
): Promise<ObservedState | undefined> {
  for (;;) {
    const state = await retryUntilKnown(() => client.read(record))
    if (state.outcome === 'refused' || state.outcome === 'unknown')
      throw new ConfigError('The run cannot be brought to its end', [`record ${record} can be read no more`])
    // Whatever else it is, it is in the journal, and will be told.
    if (state.outcome !== 'ok') return undefined
    if (!journal.isInDoubt(record, state)) return state
    await client.update(record, state)
  }
}

async function retryUntilKnown(ask: () => Promise<RecordResult>): Promise<RecordResult> {
  const untilMs = performance.now() + READ_RETRY_TIMEOUT_MS
  for (;;) {
    const answer = await ask()
    const isOpen = answer.outcome === 'refused' || answer.outcome === 'unknown'
    if (!isOpen || performance.now() > untilMs) return answer
    await new Promise((resolve) => setTimeout(resolve, READ_RETRY_MS))
  }
}

/** Records that nobody was told of: creates without an answer, where there are no keys to ask again with. */
export async function findUnacknowledgedRecords(
  adapter: Adapter,
  send: SendRequest,
  known: Journal,
): Promise<FinalTable> {
  const listed = await adapter.list?.(send)
  if (listed?.outcome !== 'ok') return new Map()
  return new Map(
    listed.records.filter(({ id }) => !known.records.has(id)).map(({ id, ...state }) => [id, state]),
  )
}

/** Several at a time. */
async function forEachConcurrently<T>(all: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...all]
  const worker = async () => {
    for (let item = queue.pop(); item !== undefined; item = queue.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: PARALLEL_REQUESTS }, worker))
}
