// Saving a record that nothing hangs on, by somebody whose rights ask nothing of it: what is left of `Saving` where there are no neighbours
// to look at. It answers, refuses and logs the same, which a test holds against it.
import type { Draft, VersionedId } from '../../../src/model/write/draft.js'
import type { Model } from '../../../src/model/definition/model.js'
import { isSameValue, type Values } from '../../../src/model/values/value.js'
import { computeValues, toValues } from '../../../src/model/definition/record-values.js'
import type { NewChange } from '../../../src/store/log/log.js'
import * as store from '../../../src/store/records/records.js'
import { insertRows, updateRows } from '../../../src/store/records/write.js'
import type { WireRecord } from '../../../src/wire.js'
import { buildChange, toUserReference } from '../../../src/service/write/write-rows.js'
import { createConflictError, refuseStaleWrite } from '../../../src/service/write/conflict.js'
import { throwNotFound } from '../../../src/service/access/permission-checks.js'
import { inPlace } from './in-place.js'
import type { Principal } from '../../../src/service/context/principal.js'
import type { ExpectedVersion } from '../../../src/service/input/versions.js'
import { type WriteContext, type Context } from '../../../src/service/context/context.js'
import { emptyLists, recordOf } from './written-record.js'

/** Of a write that is plain. */
export function isBare(context: Context, { model, key, values, copies, patched }: Draft): boolean {
  if (
    copies.size > 0 ||
    patched !== undefined ||
    !maySaveAny(context.principal, model, key ? 'update' : 'create')
  )
    return false
  if (context.principal.permissions?.seesWhole(model) === false) return false
  for (const { name, relation } of model.fields.values()) {
    // A record may be its own neighbour, which then has a new version, and its members may be ordered by what it holds.
    if (relation?.target === model.name || relation?.orderBy) return false
    const isTouched = key ? Object.hasOwn(values, name) : (values[name] ?? null) !== null
    if (relation && isTouched) return false
  }
  return true
}

function maySaveAny({ permissions }: Principal, model: Model, action: 'create' | 'update'): boolean {
  return (
    permissions
      ?.of(model)
      .grantsFor(action)
      .some(({ where, writable }) => !where && !writable) ?? true
  )
}

export interface Saved {
  readonly record: WireRecord
  readonly change: NewChange
}

export async function createBare(work: WriteContext, draft: Draft): Promise<Saved> {
  const { app, principal, tx, now } = work
  const { model, path } = draft
  const values: Values = Object.assign(
    emptyLists(model),
    draft.values,
    computeValues(model, draft.values, path),
  )
  values['createdOn'] = now
  values['createdBy'] = toUserReference(principal.user)
  values['updatedOn'] = values['updatedBy'] = null
  const [id = 0] = await inPlace(principal, draft, () => insertRows(tx, app.tables.of(model), [values]))
  const record = recordOf(model, id, 0, values)
  return { record, change: buildChange(work, model, { before: undefined, after: record }) }
}

/** One guarded statement decides, as everywhere. */
export async function updateBare(
  work: WriteContext,
  draft: Draft,
  { id }: VersionedId,
  expected: ExpectedVersion,
): Promise<Saved> {
  const { app, principal, tx, now } = work
  const { model, path, values: sent } = draft
  const table = app.tables.of(model)
  const before = (await store.readById(tx, table, id)) ?? throwNotFound(model, id)
  const { version } = before
  if (version !== expected.version) await refuseStaleWrite(work, { table, record: before, expected, draft })
  const raised = computeValues(model, Object.assign(toValues(model, before), sent), path)
  raised['updatedOn'] = now
  raised['updatedBy'] = toUserReference(principal.user)
  const updates = [{ id, version, values: Object.assign({}, sent, raised) }]
  const [isDone] = await inPlace(principal, draft, () => updateRows(tx, table, updates))
  if (!isDone) {
    const theirs = (await store.readById(tx, table, id)) ?? throwNotFound(model, id)
    throw await createConflictError(work, { table, record: theirs, expected, draft })
  }
  const record = recordOf(model, id, version + 1, Object.assign(changed(before, sent), raised))
  return { record, change: buildChange(work, model, { before, after: record }) }
}

/** What was sent and is there already stays as it was read. */
function changed(before: WireRecord, sent: Values): Values {
  const values = { ...before } as unknown as Values
  for (const name of Object.keys(sent)) {
    const value = sent[name] ?? null
    if (!isSameValue(values[name] ?? null, value)) values[name] = value
  }
  return values
}
