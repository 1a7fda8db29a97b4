// What clients do: they read a record, append to it, and begin again where somebody was faster.
import { ConfigError } from '../../errors.js'
import type { RecordResult, ObservedState } from './adapter.js'
import type { ProveClient } from './caller.js'
import type { SeededRandom } from './random.js'

/** A longer list is replaced by a new one, so that requests stay short. */
const MAX_TOKENS = 60
const MAX_EDIT_ATTEMPTS = 6
const SHARE_OF_TOTALS = 0.02
const SHARE_OF_SHORT_LIVED = 0.01
/** How often a client goes on from its own answer, without a look at the record. */
const SHARE_OF_FOLLOW_UPS = 0.5

/** How often one goes that others are still editing. */
const SHARE_OF_REMOVALS = 0.01
/** How often a client begins with what others were told, without a look at the record. */
const SHARE_OF_CACHED_STATES = 0.8
/** How often it believes what a conflict says of the record. */
const SHARE_OF_CONFLICT_STATES = 0.7

/** The record that is edited at this place now. */
export interface RecordSlot {
  record: string
  isBeingReplaced: boolean
  /** What some client was told of that record last: perhaps no longer so. */
  lastKnown?: ObservedState | undefined
}

/** A place that has a record from the beginning. */
export async function createSlot(client: ProveClient): Promise<RecordSlot> {
  const made = await client.create()
  if (made.outcome === 'ok') return { record: made.id, isBeingReplaced: false }
  const why = made.outcome === 'unexpected' ? made.message : `the first try was ${made.outcome}`
  throw new ConfigError('No record could be made', [why])
}

export async function editUntilOver(
  client: ProveClient,
  random: SeededRandom,
  slots: readonly RecordSlot[],
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const chance = random.next()
    const slot = slots[random.below(slots.length)]
    if (chance < SHARE_OF_TOTALS) await client.total()
    else if (chance < SHARE_OF_TOTALS + SHARE_OF_SHORT_LIVED) await createAndRemove(client)
    else if (slot) await editRecord(client, random, slot, isOver)
  }
}

async function editRecord(
  client: ProveClient,
  random: SeededRandom,
  slot: RecordSlot,
  isOver: () => boolean,
): Promise<void> {
  const { record } = slot
  const { lastKnown } = slot
  let state: RecordResult =
    lastKnown && random.chance(SHARE_OF_CACHED_STATES)
      ? { outcome: 'ok', id: record, ...lastKnown }
      : await client.read(record)
  for (let attempt = 0; attempt < MAX_EDIT_ATTEMPTS && state.outcome === 'ok' && !isOver(); attempt++) {
    const isFull = state.tokens.length >= MAX_TOKENS || random.chance(SHARE_OF_REMOVALS)
    if (isFull) return replaceRecord(client, random, slot, record, state)
    const answer = await client.update(record, state)
    if (slot.record === record) slot.lastKnown = extractState(answer) ?? slot.lastKnown
    if (answer.outcome === 'ok' && !random.chance(SHARE_OF_FOLLOW_UPS)) return
    state = pickNextState(answer, random) ?? (await client.read(record))
  }
}

/** Where to go on from: a success, or what a conflict has told, unless the client looks for itself. */
function pickNextState(answer: RecordResult, random: SeededRandom): RecordResult | undefined {
  if (answer.outcome === 'ok') return answer
  const lastKnown = random.chance(SHARE_OF_CONFLICT_STATES) ? extractState(answer) : undefined
  return lastKnown && { outcome: 'ok', id: '', ...lastKnown }
}

function extractState(answer: RecordResult): ObservedState | undefined {
  if (answer.outcome === 'ok') return { version: answer.version, tokens: answer.tokens }
  return answer.outcome === 'conflict' ? answer.theirs : undefined
}

/** Half of the full ones are removed while others still hold on to them. */
async function replaceRecord(
  client: ProveClient,
  random: SeededRandom,
  slot: RecordSlot,
  record: string,
  { version }: ObservedState,
): Promise<void> {
  if (slot.record !== record || slot.isBeingReplaced) return
  slot.isBeingReplaced = true
  const made = await client.create()
  if (made.outcome === 'ok') {
    slot.record = made.id
    slot.lastKnown = undefined
  }
  slot.isBeingReplaced = false
  if (made.outcome === 'ok' && random.chance(0.5)) await client.remove(record, version)
}

/** A record that comes and goes, so that totals change. */
async function createAndRemove(client: ProveClient): Promise<void> {
  const made = await client.create()
  if (made.outcome !== 'ok') return
  const changed = await client.update(made.id, made)
  if (changed.outcome === 'ok') await client.remove(made.id, changed.version)
}
