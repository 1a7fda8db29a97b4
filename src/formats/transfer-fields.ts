// What of a record travels in a file: what it holds itself. The rest follows from other records, or must not leave.
import type { Catalog } from '../model/catalog/catalog.js'
import { storageOf, type Field } from '../model/values/field-types.js'
import { isOwnedList, type Model } from '../model/definition/model.js'
import { stepOf } from '../model/query/path.js'
import type { Entry, Selection } from '../model/query/selection.js'
import { isAuth, isReadOnly, USER } from '../model/catalog/system-models.js'

/** All that people write: what the service keeps itself is made anew wherever it runs, and who may do what stays where it is. */
export function transferredModels(catalog: Catalog): readonly Model[] {
  return catalog.stored.filter((model) => !isReadOnly(model) && !isAuth(model))
}

/** Id and version come first, then these, in the order of the model. */
export function transferFields(model: Model): readonly Field[] {
  return [...model.fields.values()].filter(isTransferred)
}

/**
 * Columns and links that the record itself holds. Owned one-to-many lists and views follow from the references of their members.
 * Secrets stay where they are. Of a file a line says what is known of it; its content lies beside the lines.
 */
function isTransferred(field: Field): boolean {
  return field.secret === undefined && (storageOf(field) !== 'none' || isLink(field))
}

/** A many-to-many that this side holds. */
export function isLink({ type, relation }: Field): boolean {
  return type === 'many-to-many' && relation?.mappedBy === undefined
}

export function isFile({ type }: Field): boolean {
  return type === 'binary'
}

/** Ids of users differ from one database to another; their names do not. */
export function isUser({ relation }: Field): boolean {
  return relation?.target === USER.name
}

/** The members of a link to users by their names: their ids would come in another order elsewhere. */
export function usernamesIn(members: unknown): string[] {
  return (members as readonly { readonly username: string }[]).map(({ username }) => username).sort()
}

/** References as their ids, and files too; users as their names, links as `{id}`. */
export function transferSelection(catalog: Catalog, model: Model): Selection {
  const entries = transferFields(model).map((field): Entry => {
    const { name: key } = field
    if (!field.relation) return { key, steps: [], field }
    const step = stepOf(catalog, model, field)
    const username = USER.fields.get('username')
    if (isUser(field) && username && !isLink(field)) return { key, steps: [step], field: username }
    if (!isLink(field)) return { key, steps: [], field }
    const shown = { model: step.target, versionKeys: [], entries: isUser(field) ? nameEntry(username) : [] }
    return { key, steps: [], field, neighbour: { step, shown } }
  })
  return { model, versionKeys: ['version'], entries }
}

function nameEntry(field: Field | undefined): Entry[] {
  return field ? [{ key: field.name, steps: [], field }] : []
}

/** Those that are referred to before those that refer, as far as they do not refer to each other. */
export function targetsFirst(catalog: Catalog, models: readonly Model[]): Model[] {
  return inOrder(models, (model) => transferFields(model).flatMap((field) => targetOf(catalog, field)))
}

/**
 * The same for records that are written, but members of owned lists come before their owners: whoever reads an owner then sees its
 * list as it stays. Where both cannot be, owned lists win.
 */
export function membersFirst(catalog: Catalog, models: readonly Model[]): Model[] {
  const members = (model: Model) =>
    [...model.fields.values()].filter(isOwnedList).flatMap((field) => targetOf(catalog, field))
  const targets = (model: Model) =>
    transferFields(model)
      .filter((field) => !catalog.ownerOf(model, field))
      .flatMap((field) => targetOf(catalog, field))
  const ordered = inOrder(models, (model) => [...members(model), ...targets(model)])
  return inOrder(ordered, members)
}

function targetOf(catalog: Catalog, { relation }: Field): Model[] {
  return relation ? [catalog.target(relation)] : []
}

function inOrder(models: readonly Model[], before: (model: Model) => readonly Model[]): Model[] {
  const ordered = new Set<Model>()
  const entered = new Set<Model>()
  const enter = (model: Model) => {
    if (entered.has(model)) return
    entered.add(model)
    for (const other of before(model)) if (models.includes(other)) enter(other)
    ordered.add(model)
  }
  models.forEach(enter)
  return [...ordered]
}
