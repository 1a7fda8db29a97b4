// The models and fields that exports and imports contain. Fields that follow from other records, and secrets, are excluded.
import type { Catalog } from '../model/catalog/catalog.js'
import type { Field } from '../model/values/field.js'
import { getStorage } from '../model/values/field-types.js'
import { isOwnedList, type Model } from '../model/definition/model.js'
import { buildStep } from '../model/query/path.js'
import type { SelectionEntry, Selection } from '../model/query/selection.js'
import { isServiceModel, USER_SYSTEM_MODEL } from '../model/catalog/system-models.js'

/** Excludes models that the service writes itself, and those of access and webhooks. */
export function listTransferredModels(catalog: Catalog): readonly Model[] {
  return catalog.storedModels.filter((model) => !model.isReadOnly && !isServiceModel(model))
}

/** Lists the fields of a line after id and version, in the order of the model. */
export function listTransferFields(model: Model): readonly Field[] {
  return [...model.fields.values()].filter(isTransferred)
}

/**
 * Includes columns and stored many-to-many lists. Owned one-to-many lists and inverse relations follow from the references of their
 * members. For a file, a line has only the metadata; the content is stored beside the lines.
 */
function isTransferred(field: Field): boolean {
  return field.secret === undefined && (getStorage(field) !== 'none' || isOwnLink(field))
}

/** A many-to-many list that this model stores. */
export function isOwnLink({ type, relation }: Field): boolean {
  return type === 'many-to-many' && relation?.mappedBy === undefined
}

export function isFileField({ type }: Field): boolean {
  return type === 'binary'
}

/** Lines refer to users by name, because their ids differ between databases. */
export function isUserReference({ relation }: Field): boolean {
  return relation?.target === USER_SYSTEM_MODEL.name
}

/** Sorts by name, because the order by id differs between databases. */
export function listUsernames(members: unknown): string[] {
  return (members as readonly { readonly username: string }[]).map(({ username }) => username).sort()
}

/** Selects references and files as ids, users as user names, and many-to-many members as `{id}`. */
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

/** Sorts targets of relations before the models that refer to them, except for cycles. */
export function sortTargetsFirst(catalog: Catalog, models: readonly Model[]): Model[] {
  return sortTopologically(models, (model) =>
    listTransferFields(model).flatMap((field) => listTargets(catalog, field)),
  )
}

/**
 * Sorts models for writing: targets first, but members of owned lists before their owners, so that a reader of an owner sees its final
 * list. Owned lists take precedence if both are impossible.
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
