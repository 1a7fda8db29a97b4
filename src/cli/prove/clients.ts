// What clients do: they read a record, append to it, and begin again where somebody was faster.
import { ConfigError } from '../../errors.js'
import type { RecordAnswer, State } from './adapter.js'
import type { Caller } from './caller.js'
import type { Random } from './random.js'

/** A longer list is replaced by a new one, so that requests stay short. */
const FULL = 60
const ATTEMPTS = 6
const SHARE_OF_TOTALS = 0.02
const SHARE_OF_VISITS = 0.01
/** How often a client goes on from its own answer, without a look at the record. */
const SHARE_OF_SEQUELS = 0.5

/** How often one goes that others are still editing. */
const SHARE_OF_REMOVALS = 0.01
/** How often a client begins with what others were told, without a look at the record. */
const SHARE_OF_HEARSAY = 0.8
/** How often it believes what a conflict says of the record. */
const SHARE_OF_TRUST = 0.7

/** The record that is edited at this place now. */
export interface Slot {
  record: string
  isBeingReplaced: boolean
  /** What some client was told of that record last: perhaps no longer so. */
  told?: State | undefined
}

/** A place that has a record from the beginning. */
export async function newSlot(caller: Caller): Promise<Slot> {
  const made = await caller.create()
  if (made.outcome === 'ok') return { record: made.id, isBeingReplaced: false }
  const why = made.outcome === 'unexpected' ? made.message : `the first try was ${made.outcome}`
  throw new ConfigError('No record could be made', [why])
}

export async function keepEditing(
  caller: Caller,
  random: Random,
  slots: readonly Slot[],
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const chance = random.next()
    const slot = slots[random.below(slots.length)]
    if (chance < SHARE_OF_TOTALS) await caller.total()
    else if (chance < SHARE_OF_TOTALS + SHARE_OF_VISITS) await visit(caller)
    else if (slot) await edit(caller, random, slot, isOver)
  }
}

async function edit(caller: Caller, random: Random, slot: Slot, isOver: () => boolean): Promise<void> {
  const { record } = slot
  const { told } = slot
  let state: RecordAnswer =
    told && random.happens(SHARE_OF_HEARSAY)
      ? { outcome: 'ok', id: record, ...told }
      : await caller.read(record)
  for (let attempt = 0; attempt < ATTEMPTS && state.outcome === 'ok' && !isOver(); attempt++) {
    const isFull = state.tokens.length >= FULL || random.happens(SHARE_OF_REMOVALS)
    if (isFull) return replace(caller, random, slot, record, state)
    const answer = await caller.update(record, state)
    if (slot.record === record) slot.told = toldBy(answer) ?? slot.told
    if (answer.outcome === 'ok' && !random.happens(SHARE_OF_SEQUELS)) return
    state = stateIn(answer, random) ?? (await caller.read(record))
  }
}

/** Where to go on from: a success, or what a conflict has told, unless the client looks for itself. */
function stateIn(answer: RecordAnswer, random: Random): RecordAnswer | undefined {
  if (answer.outcome === 'ok') return answer
  const told = random.happens(SHARE_OF_TRUST) ? toldBy(answer) : undefined
  return told && { outcome: 'ok', id: '', ...told }
}

function toldBy(answer: RecordAnswer): State | undefined {
  if (answer.outcome === 'ok') return { version: answer.version, tokens: answer.tokens }
  return answer.outcome === 'conflict' ? answer.theirs : undefined
}

/** Half of the full ones are removed while others still hold on to them. */
async function replace(
  caller: Caller,
  random: Random,
  slot: Slot,
  record: string,
  { version }: State,
): Promise<void> {
  if (slot.record !== record || slot.isBeingReplaced) return
  slot.isBeingReplaced = true
  const made = await caller.create()
  if (made.outcome === 'ok') {
    slot.record = made.id
    slot.told = undefined
  }
  slot.isBeingReplaced = false
  if (made.outcome === 'ok' && random.happens(0.5)) await caller.remove(record, version)
}

/** A record that comes and goes, so that totals change. */
async function visit(caller: Caller): Promise<void> {
  const made = await caller.create()
  if (made.outcome !== 'ok') return
  const changed = await caller.update(made.id, made)
  if (changed.outcome === 'ok') await caller.remove(made.id, changed.version)
}
