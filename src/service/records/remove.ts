// Deletes records.
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { isObject } from '../../model/values/value.js'
import * as store from '../../store/records/records.js'
import type { RemoveOptions, RemovedRecord, WriteOptions, WriteResult } from '../../wire.js'
import { createConflictError, refuseIfStale } from '../write/conflict.js'
import {
  requireId,
  throwNotFound,
  parseVersion,
  parseRemoveVersion,
  type ExpectedVersion,
} from '../access/request-checks.js'
import { lockForRemove } from '../write/lock-order.js'
import { WriteState } from '../write/write-state.js'
import type { Context } from '../context/context.js'
import type { Table } from '../../store/sql/table.js'
import { buildWriteRequest, writeInTransaction } from '../write/transaction.js'

const MAX_REMOVALS = 1_000

export async function removeRecord(
  context: Context,
  model: Model,
  id: number,
  options: RemoveOptions = {},
): Promise<WriteResult<number>> {
  requireId(model, id)
  const expected = parseRemoveVersion(options)
  const sent = { action: 'delete', id, version: expected?.version } as const
  const request = await buildWriteRequest(context, model, sent, options)
  return writeInTransaction(
    context,
    request,
    { ...options, isNecessary: true },
    async ({ context: writing, changes }) => {
      const state = new WriteState(writing)
      await removeInTransaction(state, { model, id, expected })
      changes.push(...(await state.finish()))
      return id
    },
  )
}

interface RemovalRequest {
  readonly id: number
  /** Undefined if any version may be deleted. */
  readonly expected: ExpectedVersion | undefined
}

/** Deletes all of the listed records, or none. */
export async function removeListedRecords(
  context: Context,
  model: Model,
  records: readonly unknown[],
  options: WriteOptions = {},
): Promise<WriteResult<readonly RemovedRecord[]>> {
  const removals = parseRemovals(model, records)
  const request = await buildWriteRequest(context, model, { action: 'delete-all', data: records }, options)
  return writeInTransaction(
    context,
    request,
    { ...options, isNecessary: true },
    async ({ context: writing, changes }) => {
      const state = new WriteState(writing)
      const ids = removals.map(({ id }) => id)
      await lockForRemove(writing, model, ids)
      const table = writing.app.tables.of(model)
      for (const { id } of removals) await state.access.requireRemovable(table, id, false)
      await refuseStaleRemovals(writing, table, removals)
      const versions = new Map<number, number>()
      for (const { id, expected } of removals)
        versions.set(id, await removeInTransaction(state, { model, id, expected }))
      changes.push(...(await state.finish()))
      return removals.map(({ id }) => ({ id, version: versions.get(id) ?? 0 }))
    },
  )
}

/** Refuses stale removals before any record is deleted, so that a conflict shows committed values. */
async function refuseStaleRemovals(
  context: Context,
  table: Table,
  removals: readonly RemovalRequest[],
): Promise<void> {
  for (const { id, expected } of removals) {
    if (expected) await refuseIfStale(context, table, id, { expected, draft: null })
  }
}

interface RemovalTask extends RemovalRequest {
  readonly model: Model
  /** The path of the removal in a batch. */
  readonly path?: string
}

/** Removes a record and returns the version that it had. */
export async function removeInTransaction(
  state: WriteState,
  { model, id, expected, path = '' }: RemovalTask,
): Promise<number> {
  const { context } = state
  const { app, tx } = context
  const table = app.tables.of(model)
  // An owned member was already removed with its owner.
  const removed = state.changeSet.findRemoved(model, id)
  for (;;) {
    const record = removed ?? (await store.readById(tx, table, id)) ?? throwNotFound(model, id)
    // The guarded delete fails if the version changes after this check, so the permission holds for the record that is deleted.
    if (!removed) await state.access.requireRemovable(table, id, false)
    const committed = state.findBeforeHooks(model, id) ?? record
    if (expected && committed.version !== expected.version)
      throw await createConflictError(context, { table, record: committed, expected, draft: null })
    // Another transaction has changed the record: read it again. It is locked by now.
    if (removed ?? (await state.deleter.remove(table, record, path))) return record.version
  }
}

function parseRemovals(model: Model, records: readonly unknown[]): RemovalRequest[] {
  if (records.length > MAX_REMOVALS)
    throw new VersoError(
      'bad-request',
      `At most ${MAX_REMOVALS} records can be removed in one request; nothing was changed`,
    )
  const seen = new Set<number>()
  return records.map((record, index) => {
    const { id = null } = isObject(record) ? record : {}
    if (typeof id !== 'number')
      throw new VersoError(
        'bad-request',
        `records[${index}] must be an object such as { "id": 5, "version": 2 }`,
      )
    if (seen.has(requireId(model, id)))
      throw new VersoError('bad-request', `records[${index}] repeats the id ${id}`)
    seen.add(id)
    // A record from a list carries its version as `$version`.
    const { $version, version: named = $version } = isObject(record) ? record : {}
    const version = parseVersion({ version: named }, `records[${index}]`)
    return { id, expected: version === undefined ? undefined : { version, source: 'version' } }
  })
}
