// When all clients have gone: what became of every record, and of every request without an answer.
import { ConfigError } from '../../errors.js'
import type { Adapter, RecordAnswer, Send, State } from './adapter.js'
import type { Caller, Ground } from './caller.js'
import type { Journal } from './journal.js'

const HANDS = 16
/** A service that answers nothing for so long is not waited for. */
const PATIENCE_MS = 60_000
const PAUSE_MS = 50

/** What is there, by record; those that are gone are not in it. */
export type Table = ReadonlyMap<string, State>

/** `judge` is a client that nothing happens to. */
export async function settle(judge: Caller, journal: Journal): Promise<Table> {
  const table = new Map<string, State>()
  await forEach([...journal.records], async (record) => {
    const state = await settleRecord(judge, journal, record)
    if (state) table.set(record, state)
  })
  await judge.total()
  return table
}

/** Takes away what this run has made, as well as it can: this is no part of the proof any more. */
export async function cleanUp({ adapter, connection, places }: Ground, records: Table): Promise<void> {
  const [place] = places
  if (!place) return
  await forEach([...records], async ([record, { version }]) => {
    await adapter.remove(connection.to(place), record, version)
  })
}

/**
 * A request without an answer may be under way still. It names the version that the record is at, so one more update decides: from
 * then on it comes too late.
 */
async function settleRecord(judge: Caller, journal: Journal, record: string): Promise<State | undefined> {
  for (;;) {
    const state = await insist(() => judge.read(record))
    if (state.outcome === 'refused' || state.outcome === 'unknown')
      throw new ConfigError('The run cannot be brought to its end', [`record ${record} can be read no more`])
    // Whatever else it is, it is in the journal, and will be told.
    if (state.outcome !== 'ok') return undefined
    if (!journal.isInDoubt(record, state)) return state
    await judge.update(record, state)
  }
}

async function insist(ask: () => Promise<RecordAnswer>): Promise<RecordAnswer> {
  const untilMs = performance.now() + PATIENCE_MS
  for (;;) {
    const answer = await ask()
    const isOpen = answer.outcome === 'refused' || answer.outcome === 'unknown'
    if (!isOpen || performance.now() > untilMs) return answer
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

/** Records that nobody was told of: creates without an answer, where there are no keys to ask again with. */
export async function strays(adapter: Adapter, send: Send, known: Journal): Promise<Table> {
  const listed = await adapter.list?.(send)
  if (listed?.outcome !== 'ok') return new Map()
  return new Map(
    listed.records.filter(({ id }) => !known.records.has(id)).map(({ id, ...state }) => [id, state]),
  )
}

/** Several at a time. */
async function forEach<T>(all: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...all]
  const hand = async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: HANDS }, hand))
}
