// Writes that lock the same records in different order would wait for each other until the database ends one of them. So what a
// nested save names is locked before, in one order. What it does not name, members that are dropped for one, is locked when it is
// met: there the database may still have to choose, and the work is done again.
import type { Catalog, ModelField } from '../../model/catalog/catalog.js'
import { listNestedDrafts, type Draft } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import { getReferenceId } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import { findOwnersOfAny } from '../../store/records/list-members.js'
import * as store from '../../store/records/records.js'
import type { App } from '../context/app.js'
import type { Work } from '../context/context.js'

type LockSet = Map<Model, Set<number>>

type Locking = Pick<Work, 'app' | 'tx'>

/** Where one record alone is written there is no order to keep, unless it is held while it is looked at. */
export async function lockInOrder(
  locking: Locking,
  drafts: readonly Draft[],
  areHeld = false,
): Promise<void> {
  const isAlone = drafts.length === 1 && drafts.every((draft) => listNestedDrafts(draft).length === 0)
  if (!isAlone || areHeld) await lockToChange(locking, drafts)
}

/** From here on nobody else changes what these drafts name. */
export async function lockToChange(locking: Locking, drafts: readonly Draft[]): Promise<void> {
  const { app, tx } = locking
  const { dialect } = app.db
  if (dialect.lockForUpdate === '') return
  const wanted = await changedBy(locking, drafts)
  for (const model of [...wanted.keys()].sort(byRank(app.catalog)))
    await store.lockRecords(tx, app.tables.of(model), [...(wanted.get(model) ?? [])], dialect.lockForUpdate)
}

async function changedBy({ app, tx }: Locking, drafts: readonly Draft[]): Promise<LockSet> {
  const wanted: LockSet = new Map()
  for (const draft of drafts) collect(app, draft, wanted)
  for (const [model, ids] of [...wanted]) {
    for (const list of listsOf(app, model)) {
      // Where they are now: a member that moves changes the list that it leaves, too.
      for (const owner of await findOwnersOfAny(tx, app.db.dialect, list, [...ids]))
        want(wanted, list.model, owner)
    }
  }
  return wanted
}

/** Records that are about to go: first those whose lists they are in, which change with it, then they themselves. */
export async function lockToRemove(
  { app, tx }: Locking,
  model: Model,
  ids: readonly number[],
): Promise<void> {
  const { dialect } = app.db
  if (dialect.lockForRemoval === '') return
  const owners = await ownersOfThese(app, tx, model, ids)
  const own = owners.get(model) ?? new Set()
  owners.delete(model)
  for (const other of [...owners.keys()].sort(byRank(app.catalog)))
    await store.lockRecords(tx, app.tables.of(other), [...(owners.get(other) ?? [])], dialect.lockForUpdate)
  await store.lockRecords(tx, app.tables.of(model), [...own, ...ids], dialect.lockForRemoval)
}

export interface Identity {
  readonly model: Model
  readonly id: number
}

/** What a batch names. */
export interface Named {
  readonly drafts: readonly Draft[]
  readonly removed: readonly Identity[]
  /** Nobody else may change these, though we do not either. */
  readonly asserted: readonly Identity[]
}

/** Weakest first: what is named for two reasons is locked once, for the stronger one. */
const REASONS = ['lockForReference', 'lockForShare', 'lockForUpdate', 'lockForRemoval'] as const
type Reason = (typeof REASONS)[number]

/** All that a batch names is locked in one go, each as it needs to be: whatever the order of its requests, others have the same. */
export async function lockNamed(locking: Locking, named: Named): Promise<void> {
  const { app, tx } = locking
  const { dialect } = app.db
  if (dialect.lockForUpdate === '') return
  const locks = await locksFor(locking, named)
  const all = inLockOrder(
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

async function locksFor(locking: Locking, { drafts, removed, asserted }: Named) {
  const { app, tx } = locking
  const locks = new Map<Model, Map<number, Reason>>()
  const lock = (model: Model, ids: Iterable<number>, reason: Reason) => {
    const reasons = locks.get(model) ?? new Map<number, Reason>()
    locks.set(model, reasons)
    for (const id of ids) {
      const other = reasons.get(id)
      const isWeaker = other !== undefined && REASONS.indexOf(other) >= REASONS.indexOf(reason)
      // What is yet to be made is known to nobody else.
      if (id > 0 && !isWeaker) reasons.set(id, reason)
    }
  }
  for (const { model, id } of asserted) lock(model, [id], 'lockForShare')
  for (const [model, ids] of await changedBy(locking, drafts)) lock(model, ids, 'lockForUpdate')
  for (const draft of drafts)
    for (const { model, id } of referredTo(app.catalog, draft)) lock(model, [id], 'lockForReference')
  const going: LockSet = new Map()
  for (const { model, id } of removed) want(going, model, id)
  for (const [model, ids] of going) {
    lock(model, ids, 'lockForRemoval')
    for (const [owner, owners] of await ownersOfThese(app, tx, model, [...ids]))
      lock(owner, owners, 'lockForUpdate')
  }
  return locks
}

function referredTo(catalog: Catalog, draft: Draft): Identity[] {
  const { model, values, lists } = draft
  const named = [...model.fields.values()].flatMap(({ name, relation }) => {
    if (!relation) return []
    const value = values[name] ?? null
    const members = (lists.get(name) ?? []).flatMap((member) => (member.draft ? [] : [member.id]))
    const ids = value === null ? members : [getReferenceId(value), ...members]
    return ids.map((id) => ({ model: catalog.getTarget(relation), id }))
  })
  return [...named, ...listNestedDrafts(draft).flatMap((inner) => referredTo(catalog, inner))]
}

/** Those whose lists have them. */
async function ownersOfThese(
  app: App,
  tx: Transaction,
  model: Model,
  ids: readonly number[],
): Promise<LockSet> {
  const owners: LockSet = new Map()
  for (const list of [...listsOf(app, model), ...app.catalog.linksTo(model)])
    for (const owner of await findOwnersOfAny(tx, app.db.dialect, list, ids)) want(owners, list.model, owner)
  return owners
}

/** Owners before members, then by the name of the model, then by id. */
export function inLockOrder<T extends Identity>(catalog: Catalog, records: readonly T[]): T[] {
  const compare = byRank(catalog)
  return [...records].sort((a, b) => compare(a.model, b.model) || a.id - b.id)
}

function byRank(catalog: Catalog): (a: Model, b: Model) => number {
  return (a, b) =>
    catalog.getOwnershipDepth(a) - catalog.getOwnershipDepth(b) ||
    (a.name < b.name ? -1 : Number(a.name > b.name))
}

function collect(app: App, draft: Draft, wanted: LockSet): void {
  const { model, key, values } = draft
  if (key) want(wanted, model, key.id)
  for (const list of listsOf(app, model)) {
    const owner = values[list.field.relation?.mappedBy ?? '']
    if (owner) want(wanted, list.model, getReferenceId(owner))
  }
  for (const inner of listNestedDrafts(draft)) collect(app, inner, wanted)
}

function want(wanted: LockSet, model: Model, id: number): void {
  wanted.set(model, (wanted.get(model) ?? new Set<number>()).add(id))
}

/** The owned lists that a record of this model may be a member of, by one of its references. */
function listsOf(app: App, model: Model): ModelField[] {
  return [...model.fields.values()].flatMap((field) => app.catalog.findOwner(model, field) ?? [])
}
