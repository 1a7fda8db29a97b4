// Locks the records of a write in one order, so that two writes do not deadlock. A nested write locks the records that it names first.
// Records that it does not name, such as members it removes, are locked later: there a deadlock is possible, and the database ends one
// transaction, which runs again.
import type { Catalog, ModelField } from '../../model/catalog/catalog.js'
import { listNestedDrafts, type Draft } from '../../model/write/draft.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import { isReference, type Model } from '../../model/definition/model.js'
import { getReferenceId, isSameValue, type Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import { findOwnersOfAny } from '../../store/records/list-members.js'
import * as store from '../../store/records/records.js'
import { lockReferenced } from '../../store/records/references.js'
import { filterVisibleIds, isRecordVisible } from '../access/visible-records.js'
import type { App } from '../context/app.js'
import type { WriteContext } from '../context/context.js'

type LockSet = Map<Model, Set<number>>

type LockContext = Pick<WriteContext, 'app' | 'tx'>

/** Locks nothing if a single record is written without being held. */
export async function lockInOrder(
  context: LockContext,
  drafts: readonly Draft[],
  areHeld = false,
): Promise<void> {
  const isAlone = drafts.length === 1 && drafts.every((draft) => listNestedDrafts(draft).length === 0)
  if (!isAlone || areHeld) await lockForUpdate(context, drafts)
}

/** Locks the records that the drafts name until the commit. */
export async function lockForUpdate(context: LockContext, drafts: readonly Draft[]): Promise<void> {
  const { app, tx } = context
  const { dialect } = app.db
  if (dialect.lockForUpdate === '') return
  const lockSet = await collectChangedRecords(context, drafts)
  for (const model of [...lockSet.keys()].sort(compareByRank(app.catalog)))
    await store.lockRecords(tx, app.tables.of(model), [...(lockSet.get(model) ?? [])], dialect.lockForUpdate)
}

async function collectChangedRecords({ app, tx }: LockContext, drafts: readonly Draft[]): Promise<LockSet> {
  const lockSet: LockSet = new Map()
  for (const draft of drafts) collectDraftRecords(app, draft, lockSet)
  for (const [model, ids] of [...lockSet]) {
    for (const list of findOwnerLists(app, model)) {
      // A member that moves also changes the list that it leaves.
      for (const owner of await findOwnersOfAny(tx, app.db.dialect, list, [...ids]))
        addToLockSet(lockSet, list.model, owner)
    }
  }
  return lockSet
}

/** Locks records before their removal: first the owners of their lists, then the records themselves. */
export async function lockForRemove(
  { app, tx }: LockContext,
  model: Model,
  ids: readonly number[],
): Promise<void> {
  const { dialect } = app.db
  if (dialect.lockForRemoval === '') return
  const owners = await findListOwners(app, tx, model, ids)
  const own = owners.get(model) ?? new Set()
  owners.delete(model)
  for (const other of [...owners.keys()].sort(compareByRank(app.catalog)))
    await store.lockRecords(tx, app.tables.of(other), [...(owners.get(other) ?? [])], dialect.lockForUpdate)
  await store.lockRecords(tx, app.tables.of(model), [...own, ...ids], dialect.lockForRemoval)
}

export interface RecordIdentity {
  readonly model: Model
  readonly id: number
}

/** The records that a batch names. */
export interface BatchTargets {
  readonly drafts: readonly Draft[]
  readonly removed: readonly RecordIdentity[]
  /** Records that the batch asserts and does not change. */
  readonly asserted: readonly RecordIdentity[]
}

/** Ordered from weak to strong. A record with two reasons is locked once, with the stronger lock. */
const LOCK_STRENGTHS = ['lockForReference', 'lockForShare', 'lockForUpdate', 'lockForRemoval'] as const
type LockStrength = (typeof LOCK_STRENGTHS)[number]

/** Locks all records of a batch at its beginning, whatever the order of its requests, so that every batch locks in the same order. */
export async function lockBatch(context: LockContext, targets: BatchTargets): Promise<void> {
  const { app, tx } = context
  const { dialect } = app.db
  if (dialect.lockForUpdate === '') return
  const locks = await collectLocks(context, targets)
  const all = sortInLockOrder(
    app.catalog,
    [...locks].flatMap(([model, ids]) => [...ids].map(([id, reason]) => ({ model, id, reason }))),
  )
  for (let from = 0, to = 0; from < all.length; from = to) {
    const first = all[from]
    if (!first) return
    while (all[to]?.model === first.model && all[to]?.reason === first.reason) to++
    const ids = all.slice(from, to).map(({ id }) => id)
    await store.lockRecords(tx, app.tables.of(first.model), ids, dialect[first.reason])
  }
}

async function collectLocks(context: LockContext, { drafts, removed, asserted }: BatchTargets) {
  const { app, tx } = context
  const locks = new Map<Model, Map<number, LockStrength>>()
  const lock = (model: Model, ids: Iterable<number>, reason: LockStrength) => {
    const reasons = locks.get(model) ?? new Map<number, LockStrength>()
    locks.set(model, reasons)
    for (const id of ids) {
      const other = reasons.get(id)
      const isWeaker = other !== undefined && LOCK_STRENGTHS.indexOf(other) >= LOCK_STRENGTHS.indexOf(reason)
      // Other transactions cannot see a record that the batch creates.
      if (id > 0 && !isWeaker) reasons.set(id, reason)
    }
  }
  for (const { model, id } of asserted) lock(model, [id], 'lockForShare')
  for (const [model, ids] of await collectChangedRecords(context, drafts)) lock(model, ids, 'lockForUpdate')
  for (const draft of drafts)
    for (const { model, id } of collectReferences(app.catalog, draft)) lock(model, [id], 'lockForReference')
  const removedIds: LockSet = new Map()
  for (const { model, id } of removed) addToLockSet(removedIds, model, id)
  for (const [model, ids] of removedIds) {
    lock(model, ids, 'lockForRemoval')
    for (const [owner, owners] of await findListOwners(app, tx, model, [...ids]))
      lock(owner, owners, 'lockForUpdate')
  }
  return locks
}

function collectReferences(catalog: Catalog, draft: Draft): RecordIdentity[] {
  const { model, values, lists } = draft
  const named = [...model.fields.values()].flatMap(({ name, relation }) => {
    if (!relation) return []
    const value = values[name] ?? null
    const members = (lists.get(name) ?? []).flatMap((member) => (member.draft ? [] : [member.id]))
    const ids = value === null ? members : [getReferenceId(value), ...members]
    return ids.map((id) => ({ model: catalog.getTarget(relation), id }))
  })
  return [...named, ...listNestedDrafts(draft).flatMap((inner) => collectReferences(catalog, inner))]
}

/** Finds the owners of the lists that contain these records. */
async function findListOwners(
  app: App,
  tx: Transaction,
  model: Model,
  ids: readonly number[],
): Promise<LockSet> {
  const owners: LockSet = new Map()
  for (const list of [...findOwnerLists(app, model), ...app.catalog.linksTo(model)])
    for (const owner of await findOwnersOfAny(tx, app.db.dialect, list, ids))
      addToLockSet(owners, list.model, owner)
  return owners
}

/** Compares by owners before members, then by model name, then by id. */
export function sortInLockOrder<T extends RecordIdentity>(catalog: Catalog, records: readonly T[]): T[] {
  const compare = compareByRank(catalog)
  return [...records].sort((a, b) => compare(a.model, b.model) || a.id - b.id)
}

function compareByRank(catalog: Catalog): (a: Model, b: Model) => number {
  return (a, b) =>
    catalog.getOwnershipDepth(a) - catalog.getOwnershipDepth(b) ||
    (a.name < b.name ? -1 : Number(a.name > b.name))
}

function collectDraftRecords(app: App, draft: Draft, lockSet: LockSet): void {
  const { model, key, values } = draft
  if (key) addToLockSet(lockSet, model, key.id)
  for (const list of findOwnerLists(app, model)) {
    const owner = values[list.field.relation?.mappedBy ?? '']
    if (owner) addToLockSet(lockSet, list.model, getReferenceId(owner))
  }
  for (const inner of listNestedDrafts(draft)) collectDraftRecords(app, inner, lockSet)
}

function addToLockSet(lockSet: LockSet, model: Model, id: number): void {
  lockSet.set(model, (lockSet.get(model) ?? new Set<number>()).add(id))
}

/** Lists the owned lists that a record of this model can be a member of. */
function findOwnerLists(app: App, model: Model): ModelField[] {
  return [...model.fields.values()].flatMap((field) => app.catalog.findOwner(model, field) ?? [])
}

interface ReferenceScope {
  /** The reference to the owner of the list that the record is written for. The owner is locked already. */
  readonly ownerField?: string | undefined
  /** The id of a restored record, which may refer to itself. */
  readonly self?: number | undefined
  /** The values before hooks ran. Hooks may set references to records that the user may not see. */
  readonly given?: Values
}

/** Locks the referenced records until the end of the transaction, and reports those that do not exist or are not visible. */
export async function lockReferences(
  context: WriteContext,
  draft: Draft,
  values: Values,
  scope: ReferenceScope,
): Promise<void> {
  const { app, tx } = context
  await checkReferences(context, { draft, values, scope }, async (target, id, isOfHook) => {
    const existing = await lockReferenced(tx, app.tables.of(target), [id])
    return isOfHook ? existing.size > 0 : (await filterVisibleIds(context, target, [...existing])).size > 0
  })
}

/**
 * Reports references to records that do not exist or are not visible, before the hooks of the record work with them. Takes no lock: a hook may
 * lock the same records for its writes.
 */
export async function refuseMissingReferences(
  context: WriteContext,
  draft: Draft,
  values: Values,
  scope: ReferenceScope,
): Promise<void> {
  await checkReferences(context, { draft, values, scope }, async (model, id) =>
    isRecordVisible(context, { model, id }),
  )
}

interface CheckedReferences {
  readonly draft: Draft
  readonly values: Values
  readonly scope: ReferenceScope
}

async function checkReferences(
  { app, principal: { permissions } }: WriteContext,
  { draft, values, scope: { ownerField, self, given = values } }: CheckedReferences,
  exists: (target: Model, id: number, isOfHook: boolean) => Promise<boolean>,
): Promise<void> {
  const { model, path, related } = draft
  const errors = new FieldErrors()
  for (const [name, value] of Object.entries(values)) {
    const field = model.fields.get(name)
    // A related record that this transaction created needs no lock. An unchanged one was only read, so it does.
    const isCreatedHere = related.has(name) && !related.get(name)?.key
    const isKnown = isCreatedHere || name === ownerField
    if (value === null || isKnown || !field?.relation || !isReference(field)) continue
    const target = app.catalog.getTarget(field.relation)
    const id = getReferenceId(value)
    if (target === model && id === self) continue
    const isOfHook = !isSameValue(given[name] ?? null, value)
    if (await exists(target, id, isOfHook)) continue
    if (isOfHook && permissions && !permissions.isVisible(model, field)) errors.addHidden()
    else errors.add(path + name, `refers to ${target.name} ${id}, which does not exist`)
  }
  errors.refuseIfAny(model)
}

/** Lists the owners whose lists a record leaves or joins by these values. */
export function listOwners(catalog: Catalog, model: Model, states: readonly Values[]): RecordIdentity[] {
  return states.flatMap((values) =>
    Object.entries(values).flatMap(([name, value]) => {
      const field = model.fields.get(name)
      const list = value !== null && field && catalog.findOwner(model, field)
      return list ? [{ model: list.model, id: getReferenceId(value) }] : []
    }),
  )
}
