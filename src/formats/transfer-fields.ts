// What of a record travels in a file: what it holds itself. The rest follows from other records, or must not leave.
import type { Catalog } from '../model/catalog/catalog.js'
import { getStorage, type Field } from '../model/values/field-types.js'
import { isOwnedList, type Model } from '../model/definition/model.js'
import { buildStep } from '../model/query/path.js'
import type { SelectionEntry, Selection } from '../model/query/selection.js'
import { isServiceModel, isReadOnly, USER_SYSTEM_MODEL } from '../model/catalog/system-models.js'

/** All that people write: what the service keeps itself is made anew wherever it runs, and who may do what stays where it is. */
export function listTransferredModels(catalog: Catalog): readonly Model[] {
  return catalog.storedModels.filter((model) => !isReadOnly(model) && !isServiceModel(model))
}

/** Id and version come first, then these, in the order of the model. */
export function listTransferFields(model: Model): readonly Field[] {
  return [...model.fields.values()].filter(isTransferred)
}

/**
 * Columns and links that the record itself holds. Owned one-to-many lists and views follow from the references of their members.
 * Secrets stay where they are. Of a file a line says what is known of it; its content lies beside the lines.
 */
function isTransferred(field: Field): boolean {
  return field.secret === undefined && (getStorage(field) !== 'none' || isOwnLink(field))
}

/** A many-to-many that this side holds. */
export function isOwnLink({ type, relation }: Field): boolean {
  return type === 'many-to-many' && relation?.mappedBy === undefined
}

export function isFileField({ type }: Field): boolean {
  return type === 'binary'
}

/** Ids of users differ from one database to another; their names do not. */
export function isUserReference({ relation }: Field): boolean {
  return relation?.target === USER_SYSTEM_MODEL.name
}

/** The members of a link to users by their names: their ids would come in another order elsewhere. */
export function listUsernames(members: unknown): string[] {
  return (members as readonly { readonly username: string }[]).map(({ username }) => username).sort()
}

/** References as their ids, and files too; users as their names, links as `{id}`. */
export function selectTransferFields(catalog: Catalog, model: Model): Selection {
  const entries = listTransferFields(model).map((field): SelectionEntry => {
    const { name: key } = field
    if (!field.relation) return { key, steps: [], field }
    const step = buildStep(catalog, model, field)
    const username = USER_SYSTEM_MODEL.fields.get('username')
    if (isUserReference(field) && username && !isOwnLink(field))
      return { key, steps: [step], field: username }
    if (!isOwnLink(field)) return { key, steps: [], field }
    const selection = {
      model: step.target,
      versionKeys: [],
      entries: isUserReference(field) ? buildNameEntry(username) : [],
    }
    return { key, steps: [], field, related: { step, selection } }
  })
  return { model, versionKeys: ['version'], entries }
}

function buildNameEntry(field: Field | undefined): SelectionEntry[] {
  return field ? [{ key: field.name, steps: [], field }] : []
}

/** Those that are referred to before those that refer, as far as they do not refer to each other. */
export function sortTargetsFirst(catalog: Catalog, models: readonly Model[]): Model[] {
  return sortTopologically(models, (model) =>
    listTransferFields(model).flatMap((field) => listTargets(catalog, field)),
  )
}

/**
 * The same for records that are written, but members of owned lists come before their owners: whoever reads an owner then sees its
 * list as it stays. Where both cannot be, owned lists win.
 */
export function sortMembersFirst(catalog: Catalog, models: readonly Model[]): Model[] {
  const members = (model: Model) =>
    [...model.fields.values()].filter(isOwnedList).flatMap((field) => listTargets(catalog, field))
  const targets = (model: Model) =>
    listTransferFields(model)
      .filter((field) => !catalog.findOwner(model, field))
      .flatMap((field) => listTargets(catalog, field))
  const ordered = sortTopologically(models, (model) => [...members(model), ...targets(model)])
  return sortTopologically(ordered, members)
}

function listTargets(catalog: Catalog, { relation }: Field): Model[] {
  return relation ? [catalog.getTarget(relation)] : []
}

function sortTopologically(models: readonly Model[], before: (model: Model) => readonly Model[]): Model[] {
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
