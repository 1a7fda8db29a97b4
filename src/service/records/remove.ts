// Removing records: check → transaction → Changes.
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { isObject } from '../../model/values/value.js'
import * as store from '../../store/records/records.js'
import type { RemoveOptions, RemovedRecord, WriteOptions, WriteResult } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { conflict, refuseIfStale } from '../write/conflict.js'
import { checkId, missing } from '../context/ids.js'
import { lockToRemove } from '../write/lock-order.js'
import { Saving } from '../write/record-writer.js'
import { versionIn, versionToRemove, type Expected } from '../write/versions.js'
import { nowOf, type Work } from '../context/context.js'
import { requestOf, write } from '../write/transaction.js'

const MAX_REMOVALS = 1_000

export async function remove(
  app: App,
  by: Caller,
  model: Model,
  id: number,
  options: RemoveOptions = {},
): Promise<WriteResult<number>> {
  checkId(model, id)
  const expected = versionToRemove(options)
  const now = nowOf(app)
  const request = await requestOf(app, model, 'delete', { id, version: expected?.version }, options)
  return write(app, by, request, options.idempotencyKey, async ({ tx, changes }) => {
    const saving = new Saving({ app, ...by, tx, now })
    await removeOne({ app, tx, ...by }, saving, model, id, expected)
    changes.push(...(await saving.finish()))
    return id
  })
}

interface Removal {
  readonly id: number
  /** Undefined where any version will do. */
  readonly expected: Expected | undefined
}

/** All of them are removed, or none. */
export async function removeAll(
  app: App,
  by: Caller,
  model: Model,
  records: readonly unknown[],
  options: WriteOptions = {},
): Promise<WriteResult<readonly RemovedRecord[]>> {
  const now = nowOf(app)
  const removals = removalsFrom(model, records)
  const request = await requestOf(app, model, 'delete-all', { data: records }, options)
  return write(app, by, request, options.idempotencyKey, async ({ tx, changes }) => {
    const saving = new Saving({ app, ...by, tx, now })
    const ids = removals.map(({ id }) => id)
    await lockToRemove({ app, tx }, model, ids)
    for (const { id } of removals) await saving.requireRemovable(app.tables.of(model), id)
    await refuseStale({ app, tx, ...by }, model, removals)
    const versions = new Map<number, number>()
    for (const { id, expected } of removals)
      versions.set(id, await removeOne({ app, tx, ...by }, saving, model, id, expected))
    changes.push(...(await saving.finish()))
    return removals.map(({ id }) => ({ id, version: versions.get(id) ?? 0 }))
  })
}

/** Before any of them goes: so that a conflict shows them as they are, and not as we would leave them. */
async function refuseStale(
  work: Omit<Work, 'now'>,
  model: Model,
  removals: readonly Removal[],
): Promise<void> {
  const table = work.app.tables.of(model)
  for (const { id, expected } of removals) {
    if (expected) await refuseIfStale(work, work.tx, table, id, expected, null)
  }
}

/** Answers the version that it had. */
export async function removeOne(
  work: Omit<Work, 'now'>,
  saving: Saving,
  model: Model,
  id: number,
  expected: Expected | undefined,
  /** Where in the request that is asked for. */
  place = '',
): Promise<number> {
  const { app, tx } = work
  const table = app.tables.of(model)
  // A member of one that was removed before it.
  const gone = saving.goneFrom(model, id)
  for (;;) {
    const record = gone ?? (await store.read(tx, table, id)) ?? missing(model, id)
    // Between the read and the guarded delete: it was at this version all the time, and so was what is permitted.
    if (!gone) await saving.requireRemovable(table, id)
    if (expected && record.version !== expected.version)
      throw await conflict(work, tx, table, record, expected, null)
    // Somebody was faster: the record is read again, and by now it is locked.
    if (gone ?? (await saving.remove(table, record, place))) return record.version
  }
}

function removalsFrom(model: Model, records: readonly unknown[]): Removal[] {
  if (records.length > MAX_REMOVALS)
    throw new VersoError('bad-request', `At most ${MAX_REMOVALS} records can be removed at once`)
  const seen = new Set<number>()
  return records.map((record, index) => {
    const { id = null } = isObject(record) ? record : {}
    if (typeof id !== 'number')
      throw new VersoError(
        'bad-request',
        `records[${index}] must be an object such as { "id": 5, "version": 2 }`,
      )
    if (seen.has(checkId(model, id)))
      throw new VersoError('bad-request', `records[${index}] names ${id} again`)
    seen.add(id)
    // As it was read, in a list for one, it has its version under the other name.
    const { $version, version: named = $version } = isObject(record) ? record : {}
    const version = versionIn({ version: named }, `records[${index}]`)
    return { id, expected: version === undefined ? undefined : { version, by: 'version' } }
  })
}
