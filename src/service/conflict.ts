import { Refusal } from '../errors.js'
import { merge } from '../model/merge.js'
import { isShown, isWritable } from '../model/model.js'
import type { Values } from '../model/value.js'
import type { Queryable } from '../store/database.js'
import { valuesAt } from '../store/log.js'
import type { Table } from '../store/table.js'
import type { ConflictData, WireRecord } from '../wire.js'
import type { Expected } from './versions.js'

/** The refusal of a write whose version is not the current one, with all that its sender needs to go on. */
export async function conflict(
  db: Queryable,
  { model }: Table,
  theirs: WireRecord,
  expected: Expected,
  /** What was to be written; null for a delete. */
  sent: Readonly<Values> | null,
): Promise<Refusal> {
  const fields = [...model.fields.values()].filter((field) => isShown(field) && isWritable(field))
  const now: Values = {}
  const ours: Values = {}
  for (const { name } of fields) {
    now[name] = (theirs as unknown as Values)[name] ?? null
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
