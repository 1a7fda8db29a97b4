// Behaviour of a client: reads a record, appends to it, and starts again after a conflict.
import { ConfigError } from '../../../errors.js'
import { NOTHING_TESTED, type RecordResult, type ObservedState } from '../adapters/adapter.js'
import type { ProveClient } from './prove-client.js'
import type { SeededRandom } from './random.js'

/** A record with more tokens is replaced by a new one, so that requests stay short. */
const MAX_TOKENS = 60
const MAX_EDIT_ATTEMPTS = 6
const SHARE_OF_TOTALS = 0.02
const SHARE_OF_SHORT_LIVED = 0.01
/** How often a client continues from its own response without reading the record. */
const SHARE_OF_FOLLOW_UPS = 0.5

/** How often a client removes a record that other clients still edit. */
const SHARE_OF_REMOVALS = 0.01
/** How often a client starts from a state that another client observed, without reading the record. */
const SHARE_OF_CACHED_STATES = 0.8
/** How often a client continues from the state in a conflict response. */
const SHARE_OF_CONFLICT_STATES = 0.7

/** A slot holds the record that clients edit; the record is replaced when it is full. */
export interface RecordSlot {
  record: string
  isBeingReplaced: boolean
  /** The last state that a client observed; it may be outdated. */
  lastKnown?: ObservedState | undefined
}

/** Creates a slot with its first record. */
export async function createSlot(client: ProveClient): Promise<RecordSlot> {
  const created = await client.create()
  if (created.outcome === 'ok') return { record: created.id, isBeingReplaced: false }
  const why =
    created.outcome === 'unexpected'
      ? created.message
      : `the outcome of the first create is "${created.outcome}"`
  throw new ConfigError(NOTHING_TESTED, [`no record could be created: ${why}`])
}

/** One client at work, with the records that it may edit. */
export interface Editor {
  readonly client: ProveClient
  readonly random: SeededRandom
  readonly slots: readonly RecordSlot[]
  readonly isOver: () => boolean
}

export async function editUntilOver(editor: Editor): Promise<void> {
  const { client, random, slots, isOver } = editor
  while (!isOver()) {
    const chance = random.next()
    const slot = slots[random.below(slots.length)]
    if (chance < SHARE_OF_TOTALS) await client.total()
    else if (chance < SHARE_OF_TOTALS + SHARE_OF_SHORT_LIVED) await createAndRemove(client)
    else if (slot) await editRecord(editor, slot)
  }
}

async function editRecord(editor: Editor, slot: RecordSlot): Promise<void> {
  const { client, random, isOver } = editor
  const { record, lastKnown } = slot
  let state: RecordResult =
    lastKnown && random.chance(SHARE_OF_CACHED_STATES)
      ? { outcome: 'ok', id: record, ...lastKnown }
      : await client.read(record)
  for (let attempt = 0; attempt < MAX_EDIT_ATTEMPTS && state.outcome === 'ok' && !isOver(); attempt++) {
    const isFull = state.tokens.length >= MAX_TOKENS || random.chance(SHARE_OF_REMOVALS)
    if (isFull) return replaceRecord(editor, slot, record, state.version)
    const answer = await client.update(record, state)
    if (slot.record === record) slot.lastKnown = extractState(answer) ?? slot.lastKnown
    if (answer.outcome === 'ok' && !random.chance(SHARE_OF_FOLLOW_UPS)) return
    state = pickNextState(answer, random) ?? (await client.read(record))
  }
}

/** Continues from a success, or from the state in a conflict response; undefined makes the client read the record. */
function pickNextState(answer: RecordResult, random: SeededRandom): RecordResult | undefined {
  if (answer.outcome === 'ok') return answer
  const lastKnown = random.chance(SHARE_OF_CONFLICT_STATES) ? extractState(answer) : undefined
  return lastKnown && { outcome: 'ok', id: '', ...lastKnown }
}

function extractState(answer: RecordResult): ObservedState | undefined {
  if (answer.outcome === 'ok') return { version: answer.version, tokens: answer.tokens }
  return answer.outcome === 'conflict' ? answer.theirs : undefined
}

/** Removes half of the replaced records while other clients still edit them. */
async function replaceRecord(
  { client, random }: Editor,
  slot: RecordSlot,
  record: string,
  version: number,
): Promise<void> {
  if (slot.record !== record || slot.isBeingReplaced) return
  slot.isBeingReplaced = true
  const created = await client.create()
  if (created.outcome === 'ok') {
    slot.record = created.id
    slot.lastKnown = undefined
  }
  slot.isBeingReplaced = false
  if (created.outcome === 'ok' && random.chance(0.5)) await client.remove(record, version)
}

/** Creates a record and removes it soon after, so that totals change. */
async function createAndRemove(client: ProveClient): Promise<void> {
  const created = await client.create()
  if (created.outcome !== 'ok') return
  const updated = await client.update(created.id, created)
  if (updated.outcome === 'ok') await client.remove(created.id, updated.version)
}
