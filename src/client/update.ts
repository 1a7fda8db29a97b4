// An update with its conflicts: changes are computed from a record, saved on its version, and resolved if others have changed it.
//
// The service can merge, too (`Prefer: merge=fields`), and does so for values that a caller sends. For a function it would lose changes: two
// functions that both count from 1 to 2 send the same value, which the service takes for one and the same change.
import type { WireRecord } from '../wire.js'
import { isSameJson } from './answer.js'
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
  save(draft: UpdateDraft): Promise<WireRecord>
}

/** The next body to send. */
export interface UpdateDraft {
  /** Values that the caller sent with a version, a result of the caller's function, or an answer of `onConflict`. */
  readonly source: 'values' | 'function' | 'answer'
  readonly version: number
  /** Unknown if the caller sent values with a version. */
  readonly base: WireRecord | undefined
  readonly changes: Changes
}

/** An update as the caller asked for it. */
export interface UpdatePlan {
  readonly change: ChangeCalculation | Changes
  readonly onConflict: ConflictResolution
  /** Changes of different fields are both kept. */
  readonly merges: boolean
}

const MAX_CONFLICT_DELAY_MS = 1_000

export async function runUpdate(
  scope: CallScope,
  record: UpdatedRecord,
  plan: UpdatePlan,
): Promise<WireRecord> {
  const { change } = plan
  let draft: UpdateDraft =
    typeof change === 'function'
      ? await computeChanges(scope, await record.read(), change)
      : {
          source: 'values',
          version: change['version'] as number,
          base: undefined,
          changes: omitIdentity(change),
        }
  for (let attempt = 0; ; attempt++) {
    if (draft.base && Object.keys(draft.changes).length === 0) return draft.base
    // Clients that clash again and again must not do so in step.
    if (attempt > 1) await scope.wait(Math.random() * Math.min(MAX_CONFLICT_DELAY_MS, 5 * 2 ** attempt))
    try {
      return await record.save(draft)
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error
      const { entityName, entityId, isShortened } = error.data
      const isOfRecord = entityName === record.model && entityId === record.id
      // A conflict of a record inside this one cannot be resolved by changes of this one.
      if (!isOfRecord && plan.onConflict !== 'retry') throw error
      const conflict = attachSides(error, { base: draft.base, ours: draft.changes })
      const isWhole = isOfRecord && isShortened !== true
      const theirs = freezeRecord(isWhole ? conflict.theirs : await record.read())
      const next = await resolveConflict(scope, { conflict, theirs, draft, plan })
      if (next === undefined) return theirs
      draft = next
    }
  }
}

interface Clash {
  readonly conflict: ConflictError
  readonly theirs: WireRecord
  readonly draft: UpdateDraft
  readonly plan: UpdatePlan
}

/** Returns the next draft; undefined if the caller gives up the changes. */
async function resolveConflict(scope: CallScope, clash: Clash): Promise<UpdateDraft | undefined> {
  const { conflict, theirs, draft, plan } = clash
  const { change, onConflict } = plan
  const { base, ours, fields, mergeable } = conflict
  const verdicts = Object.keys(ours).map((name) => findVerdict(fields, name))
  const isClear = plan.merges && mergeable && !verdicts.includes('theirs')
  const isSame = isClear && verdicts.includes('same')
  // Two equal values may be one wish, such as a state, or two, such as a count: the function tells them apart.
  if (typeof change === 'function' && (onConflict === 'retry' || (isSame && draft.source === 'function')))
    return computeChanges(scope, theirs, change)
  if (isClear && !isSame && draft.source !== 'values')
    return { ...draft, version: theirs.version, base: theirs }
  // Nobody can tell whether others have changed a field that the user may write but not read.
  const isUnseen = (name: string) => !Object.hasOwn(fields, name) && !Object.hasOwn(theirs, name)
  if (typeof onConflict !== 'function' || Object.keys(ours).some(isUnseen)) throw conflict
  const answer = await scope.runOutside(() => onConflict({ base, ours, theirs, fields }))
  if (answer === undefined || answer === null) return undefined
  // Changes that clash with nothing are still wanted: an answer about one field must not drop another.
  const wanted = Object.entries(ours).filter(([name]) => findVerdict(fields, name) === 'ours')
  const changes = { ...Object.fromEntries(wanted), ...listDifferences(theirs, answer) }
  return { source: 'answer', version: theirs.version, base: theirs, changes }
}

/** A field that is in the record, but not among the changed ones, has the same value as before. */
function findVerdict(fields: LooseConflict['fields'], name: string): FieldSides['verdict'] {
  return (Object.hasOwn(fields, name) ? fields[name]?.verdict : undefined) ?? 'ours'
}

async function computeChanges(
  scope: CallScope,
  record: WireRecord,
  change: ChangeCalculation,
): Promise<UpdateDraft> {
  // A function that changes the record in place would change nothing: frozen, it fails instead.
  const base = freezeRecord(record)
  const changes = await scope.runOutside(() => change(base))
  return { source: 'function', version: base.version, base, changes: listDifferences(base, changes ?? {}) }
}

/** Leaves out values that the record already has: sent back, they would clash with the changes of others. */
function listDifferences(record: WireRecord, given: Changes): Changes {
  return Object.fromEntries(
    Object.entries(omitIdentity(given)).filter(
      ([name, value]) => value !== undefined && !isSameJson(record[name], value),
    ),
  )
}

function omitIdentity(given: Changes): Changes {
  return Object.fromEntries(Object.entries(given).filter(([name]) => name !== 'id' && name !== 'version'))
}

function freezeRecord<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) freezeRecord(inner)
  return Object.freeze(value)
}
