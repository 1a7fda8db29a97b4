// An update with its conflicts: changes are computed from a record, saved on its version, and resolved if others have changed it.
import type { WireRecord } from '../wire.js'
import { isJsonObject } from './answer.js'
import type { CallScope } from './call-scope.js'
import { ConflictError, attachSides, type FieldSides } from './errors.js'

type Changes = Readonly<Record<string, unknown>>
type MaybeChanges = Changes | null | undefined

/** Both sides of a conflict, whatever the model. */
export interface LooseConflict {
  readonly base: WireRecord | undefined
  readonly ours: Changes
  readonly theirs: WireRecord
  readonly fields: Readonly<Record<string, FieldSides>>
}

export type ChangeCalculation = (record: WireRecord) => MaybeChanges | Promise<MaybeChanges>
export type ConflictResolution =
  'retry' | ((conflict: LooseConflict) => MaybeChanges | Promise<MaybeChanges>) | undefined

/** How an update reads and writes its record. */
export interface UpdatedRecord {
  readonly model: string
  readonly id: number
  read(): Promise<WireRecord>
  /** Sends changes that are based on a version. `attempt` counts the different bodies from 0. */
  save(changes: Changes, version: number, attempt: number): Promise<WireRecord>
}

const MAX_CONFLICT_DELAY_MS = 1_000

/** A draft is what the next save sends. The base is unknown if the caller sent changes with a version. */
interface UpdateDraft {
  readonly version: number
  readonly base: WireRecord | undefined
  readonly changes: Changes
}

export async function runUpdate(
  scope: CallScope,
  access: UpdatedRecord,
  change: ChangeCalculation | Changes,
  onConflict: ConflictResolution,
): Promise<WireRecord> {
  let draft =
    typeof change === 'function'
      ? await computeChanges(scope, await access.read(), change)
      : toVersionedDraft(change)
  for (let attempt = 0; ; attempt++) {
    if (draft.base && Object.keys(draft.changes).length === 0) return draft.base
    // Clients that clash again and again must not do so in step.
    if (attempt > 1) await scope.wait(Math.random() * Math.min(MAX_CONFLICT_DELAY_MS, 5 * 2 ** attempt))
    try {
      return await access.save(draft.changes, draft.version, attempt)
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error
      const { entityName, entityId, isShortened } = error.data
      const isOfRecord = entityName === access.model && entityId === access.id
      // A conflict of a record inside this one cannot be resolved by changes of this one.
      if (!isOfRecord && onConflict !== 'retry') throw error
      const conflict = attachSides(error, { base: draft.base, ours: draft.changes })
      const isWhole = isOfRecord && isShortened !== true
      const theirs = freezeRecord(isWhole ? conflict.theirs : await access.read())
      const next = await resolveConflict(scope, { conflict, theirs, draft, change, onConflict })
      if (next === undefined) return theirs
      draft = next
    }
  }
}

interface Clash {
  readonly conflict: ConflictError
  readonly theirs: WireRecord
  readonly draft: UpdateDraft
  readonly change: ChangeCalculation | Changes
  readonly onConflict: ConflictResolution
}

/** Returns the next draft; undefined if the caller gives up the changes. */
async function resolveConflict(scope: CallScope, clash: Clash): Promise<UpdateDraft | undefined> {
  const { conflict, theirs, draft, change, onConflict } = clash
  if (onConflict === 'retry' && typeof change === 'function') return computeChanges(scope, theirs, change)
  if (typeof onConflict !== 'function') throw conflict
  const { base, ours, fields } = conflict
  const answer = await scope.runOutside(() => onConflict({ base, ours, theirs, fields }))
  if (answer === undefined || answer === null) return undefined
  // Changes that clash with nothing are still wanted: an answer about one field must not drop another.
  const clear = Object.entries(draft.changes).filter(([name]) => isClear(fields, name))
  const changes = { ...Object.fromEntries(clear), ...listDifferences(theirs, answer) }
  return { version: theirs.version, base: theirs, changes }
}

function isClear(fields: LooseConflict['fields'], name: string): boolean {
  const verdict = Object.hasOwn(fields, name) ? fields[name]?.verdict : undefined
  return verdict === undefined || verdict === 'ours'
}

async function computeChanges(
  scope: CallScope,
  record: WireRecord,
  change: ChangeCalculation,
): Promise<UpdateDraft> {
  // A function that changes the record in place would change nothing: frozen, it fails instead.
  const base = freezeRecord(record)
  const changes = await scope.runOutside(() => change(base))
  return { version: base.version, base, changes: listDifferences(base, changes ?? {}) }
}

function toVersionedDraft(given: Changes): UpdateDraft {
  return { version: given['version'] as number, base: undefined, changes: omitIdentity(given) }
}

/** Leaves out values that the record already has: sent back, they would clash with the changes of others. */
function listDifferences(record: WireRecord, given: Changes): Changes {
  return Object.fromEntries(
    Object.entries(omitIdentity(given)).filter(
      ([name, value]) => value !== undefined && !isEqual(record[name], value),
    ),
  )
}

function omitIdentity(given: Changes): Changes {
  return Object.fromEntries(Object.entries(given).filter(([name]) => name !== 'id' && name !== 'version'))
}

/** Compares JSON values; the order of keys does not matter. */
function isEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((each, index) => isEqual(each, right[index]))
  if (!isJsonObject(left) || !isJsonObject(right)) return false
  const names = Object.keys(left)
  const isSameSize = names.length === Object.keys(right).length
  return isSameSize && names.every((name) => Object.hasOwn(right, name) && isEqual(left[name], right[name]))
}

function freezeRecord<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) freezeRecord(inner)
  return Object.freeze(value)
}
