import { Refusal } from '../errors.js'
import { merge } from '../model/merge.js'
import type { Draft, Member } from '../model/draft.js'
import type { Field } from '../model/field.js'
import { factsOf } from '../model/file-facts.js'
import { isShown, isWritable } from '../model/model.js'
import type { Value, Values } from '../model/value.js'
import { valuesOf } from '../model/values.js'
import type { Queryable } from '../store/database.js'
import { valuesAt } from '../store/log.js'
import type { StoredFile } from '../store/files.js'
import * as store from '../store/records.js'
import type { Table } from '../store/table.js'
import type { ConflictData, WireRecord } from '../wire.js'
import { fileValues } from './held-files.js'
import type { Expected } from './versions.js'

/** The refusal of a write whose version is not the current one, with all that its sender needs to go on. */
export async function conflict(
  db: Queryable,
  table: Table,
  theirs: WireRecord,
  expected: Expected,
  /** What was to be written; null for a delete. */
  draft: Draft | null,
): Promise<Refusal> {
  const { model } = table
  const sent = draft && sentOf(draft)
  const current = { ...valuesOf(model, theirs), ...(await fileValues(db, table, theirs.id)) }
  const isMerged = (field: Field) => field.type === 'binary' || isShown(field)
  const fields = [...model.fields.values()].filter((field) => isMerged(field) && isWritable(field))
  const now: Values = {}
  const ours: Values = {}
  for (const { name } of fields) {
    now[name] = current[name] ?? null
    if (sent && Object.hasOwn(sent, name)) ours[name] = sent[name] ?? null
  }
  const base = await valuesAt(
    db,
    model,
    theirs.id,
    { version: theirs.version, values: now },
    expected.version,
  )
  const merged = merge(base, ours, now)
  // A delete takes their changes with it, and who changed a secret is not told: neither can stand beside the other.
  const isBlind = sent === null || Object.keys(sent).some((name) => model.fields.get(name)?.secret)
  const data: ConflictData = {
    entityName: model.name,
    entityId: theirs.id,
    expected: expected.version,
    current: theirs.version,
    ...merged,
    mergeable: merged.mergeable && !isBlind,
    changedBy: theirs[theirs['updatedOn'] === null ? 'createdBy' : 'updatedBy'] as ConflictData['changedBy'],
    changedOn: (theirs['updatedOn'] ?? theirs['createdOn']) as string,
    theirs,
  }
  const kind = expected.by === 'if-match' ? 'stale-match' : 'conflict'
  const message = `${model.name} ${theirs.id} is at version ${theirs.version}, not ${expected.version}: nothing was written`
  return new Refusal(kind, message, { data: { ...data } })
}

/** Refuses unless the record is at this version. What is no longer there is for the caller to say. */
export async function refuseIfStale(
  db: Queryable,
  table: Table,
  id: number,
  expected: Expected,
  draft: Draft | null,
): Promise<void> {
  const version = await store.versionOf(db, table, id)
  if (version === undefined || version === expected.version) return
  const theirs = await store.read(db, table, id)
  if (theirs) throw await conflict(db, table, theirs, expected, draft)
}

/** What was to be written, in the form that the Log knows it. */
function sentOf({ model, values, neighbours, lists }: Draft): Values {
  const sent: Values = { ...values }
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && model.fields.get(name)?.type === 'binary')
      sent[name] = factsOf(value as unknown as StoredFile)
  }
  for (const [name, neighbour] of neighbours) sent[name] = identityOf({ draft: neighbour })
  for (const [name, members] of lists) sent[name] = members.map(identityOf).sort(byId)
  return sent
}

/** Who it is; of one that is yet to be made, what it is to hold. */
function identityOf(member: Member): Value {
  if (!member.draft) return { id: member.id }
  const { model, key, values } = member.draft
  if (key) return { id: key.id }
  const isTold = ([name]: readonly [string, Value]) => model.fields.get(name)?.secret === undefined
  return Object.fromEntries(Object.entries(values).filter(isTold))
}

/** As lists are read; what has no id yet comes last. */
function byId(a: Value, b: Value): number {
  const [left, right] = [a, b].map((value) => (value as { readonly id?: number }).id ?? Infinity)
  return left === right ? 0 : (left ?? 0) - (right ?? 0)
}
