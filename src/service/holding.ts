// Saves that touch the same records in different order would wait for each other until the database ends one of them. So all that
// a Draft is going to change is locked before, in one order everywhere: owners before members, then by id.
import type { FieldOf } from '../model/catalog.js'
import type { Draft } from '../model/draft.js'
import type { Model } from '../model/model.js'
import { ownersOfAny } from '../store/members.js'
import * as store from '../store/records.js'
import type { App } from './app.js'
import type { Work } from './work.js'

type Wanted = Map<Model, Set<number>>

/** Where one record alone is written there is no order to keep. */
export async function holdInOrder({ app, tx }: Pick<Work, 'app' | 'tx'>, draft: Draft): Promise<void> {
  const { dialect } = app.db
  if (dialect.lockRows === '' || draftsIn(draft).length === 0) return
  const wanted: Wanted = new Map()
  collect(app, draft, wanted)
  for (const [model, ids] of [...wanted]) {
    for (const list of listsOf(app, model)) {
      // Where they are now: a member that moves changes the list that it leaves, too.
      for (const owner of await ownersOfAny(tx, dialect, list, [...ids])) want(wanted, list.model, owner)
    }
  }
  const order = [...wanted.keys()].sort(
    (a, b) => depthOf(app, a) - depthOf(app, b) || (a.name < b.name ? -1 : 1),
  )
  for (const model of order) await store.lockAll(tx, app.tables.of(model), [...(wanted.get(model) ?? [])])
}

function collect(app: App, draft: Draft, wanted: Wanted): void {
  const { model, key, values } = draft
  if (key) want(wanted, model, key.id)
  for (const list of listsOf(app, model)) {
    const owner = values[list.field.relation?.mappedBy ?? '']
    if (owner) want(wanted, list.model, (owner as { readonly id: number }).id)
  }
  for (const inner of draftsIn(draft)) collect(app, inner, wanted)
}

function draftsIn({ neighbours, lists }: Draft): Draft[] {
  const members = [...lists.values()].flat().flatMap((member) => member.draft ?? [])
  return [...neighbours.values(), ...members]
}

function want(wanted: Wanted, model: Model, id: number): void {
  wanted.set(model, (wanted.get(model) ?? new Set<number>()).add(id))
}

/** The owned lists that a record of this model may be a member of, by one of its references. */
function listsOf(app: App, model: Model): FieldOf[] {
  return [...model.fields.values()].flatMap((field) => app.catalog.ownerOf(model, field) ?? [])
}

/** How many owners stand above a record of this model; models may own each other. */
function depthOf(app: App, model: Model, below: readonly Model[] = []): number {
  if (below.includes(model)) return 0
  const owners = listsOf(app, model).filter((list) => list.model !== model)
  return Math.max(0, ...owners.map((list) => 1 + depthOf(app, list.model, [...below, model])))
}
