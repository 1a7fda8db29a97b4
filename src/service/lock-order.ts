// Writes that lock the same records in different order would wait for each other until the database ends one of them. So what a
// nested save names is locked before, in one order. What it does not name, members that are dropped for one, is locked when it is
// met: there the database may still have to choose, and the work is done again.
import type { Catalog, FieldOf } from '../model/catalog.js'
import { draftsIn, type Draft } from '../model/draft.js'
import type { Model } from '../model/model.js'
import { idOf } from '../model/value.js'
import { ownersOfAny } from '../store/members.js'
import * as store from '../store/records.js'
import type { App } from './app.js'
import type { Work } from './work.js'

type LockSet = Map<Model, Set<number>>

type Locking = Pick<Work, 'app' | 'tx'>

/** Where one record alone is written there is no order to keep, unless it is held while it is looked at. */
export async function lockInOrder(
  locking: Locking,
  drafts: readonly Draft[],
  areHeld = false,
): Promise<void> {
  const isAlone = drafts.length === 1 && drafts.every((draft) => draftsIn(draft).length === 0)
  if (!isAlone || areHeld) await lockToChange(locking, drafts)
}

/** From here on nobody else changes what these drafts name. */
export async function lockToChange({ app, tx }: Locking, drafts: readonly Draft[]): Promise<void> {
  const { dialect } = app.db
  if (dialect.lockRows === '') return
  const wanted: LockSet = new Map()
  for (const draft of drafts) collect(app, draft, wanted)
  for (const [model, ids] of [...wanted]) {
    for (const list of listsOf(app, model)) {
      // Where they are now: a member that moves changes the list that it leaves, too.
      for (const owner of await ownersOfAny(tx, dialect, list, [...ids])) want(wanted, list.model, owner)
    }
  }
  for (const model of [...wanted.keys()].sort(byRank(app.catalog)))
    await store.lockAll(tx, app.tables.of(model), [...(wanted.get(model) ?? [])], dialect.lockRows)
}

/** Records that are about to go: first those whose lists they are in, which change with it, then they themselves. */
export async function lockToRemove(
  { app, tx }: Locking,
  model: Model,
  ids: readonly number[],
): Promise<void> {
  const { dialect } = app.db
  if (dialect.lockToRemove === '') return
  const owners: LockSet = new Map()
  for (const list of [...listsOf(app, model), ...app.catalog.linksTo(model)])
    for (const owner of await ownersOfAny(tx, dialect, list, ids)) want(owners, list.model, owner)
  const own = owners.get(model) ?? new Set()
  owners.delete(model)
  for (const other of [...owners.keys()].sort(byRank(app.catalog)))
    await store.lockAll(tx, app.tables.of(other), [...(owners.get(other) ?? [])], dialect.lockRows)
  await store.lockAll(tx, app.tables.of(model), [...own, ...ids], dialect.lockToRemove)
}

export interface Identity {
  readonly model: Model
  readonly id: number
}

/** Owners before members, then by the name of the model, then by id. */
export function inLockOrder(catalog: Catalog, records: readonly Identity[]): Identity[] {
  const compare = byRank(catalog)
  return [...records].sort((a, b) => compare(a.model, b.model) || a.id - b.id)
}

function byRank(catalog: Catalog): (a: Model, b: Model) => number {
  return (a, b) => catalog.rankOf(a) - catalog.rankOf(b) || (a.name < b.name ? -1 : Number(a.name > b.name))
}

function collect(app: App, draft: Draft, wanted: LockSet): void {
  const { model, key, values } = draft
  if (key) want(wanted, model, key.id)
  for (const list of listsOf(app, model)) {
    const owner = values[list.field.relation?.mappedBy ?? '']
    if (owner) want(wanted, list.model, idOf(owner))
  }
  for (const inner of draftsIn(draft)) collect(app, inner, wanted)
}

function want(wanted: LockSet, model: Model, id: number): void {
  wanted.set(model, (wanted.get(model) ?? new Set<number>()).add(id))
}

/** The owned lists that a record of this model may be a member of, by one of its references. */
function listsOf(app: App, model: Model): FieldOf[] {
  return [...model.fields.values()].flatMap((field) => app.catalog.ownerOf(model, field) ?? [])
}
