// The fields of a model that a list can show, and those that it shows.
import type { FieldInfo, FieldKind, ModelInfo } from '../service/model-info.js'

/** The other side of a relation may have any number of members, and a file is no text. */
const UNLISTED_KINDS: readonly FieldKind[] = ['inverse', 'file']
const UNSORTED_KINDS: readonly FieldKind[] = ['inverse', 'file', 'owned-list', 'links', 'json']
const DEFAULT_COLUMNS = 4

/** The service answers with these whatever the fields are. */
const ALWAYS_READ: readonly string[] = ['id', 'version']

export function listPossibleColumns({ fields }: ModelInfo): readonly FieldInfo[] {
  return fields.filter(
    ({ kind, isSecret, isWriteOnly }) => !UNLISTED_KINDS.includes(kind) && !isSecret && !isWriteOnly,
  )
}

/** The list fields of the model. Without any, its name and the first of the other fields. */
export function listDefaultColumns(model: ModelInfo): readonly FieldInfo[] {
  const possible = listPossibleColumns(model)
  const listed = model.listFields.flatMap((name) => possible.find((field) => field.name === name) ?? [])
  if (listed.length > 0) return listed
  const named = possible.filter(({ isName }) => isName)
  const others = possible.filter(({ isName, isSystem }) => !isName && !isSystem)
  const columns = [...named, ...others].slice(0, DEFAULT_COLUMNS)
  return columns.length > 0 ? columns : possible.slice(0, DEFAULT_COLUMNS)
}

/** Chooses the columns that a text such as `name,email` names, in the order of the model. Other names are left out. */
export function chooseColumns(model: ModelInfo, names: string | null): readonly FieldInfo[] {
  const wanted = new Set(names?.split(','))
  const chosen = listPossibleColumns(model).filter(({ name }) => wanted.has(name))
  return chosen.length > 0 ? chosen : listDefaultColumns(model)
}

export function listReadFields(columns: readonly FieldInfo[]): readonly string[] {
  const names = columns.map(({ name }) => name).filter((name) => !ALWAYS_READ.includes(name))
  // An empty list would mean the list fields of the model.
  return names.length > 0 ? names : ['id']
}

/** The sort key of a column; undefined if the service cannot sort by it. A reference is sorted by the name of the related record. */
export function findSortKey({ name, kind, targetName }: FieldInfo): string | undefined {
  if (UNSORTED_KINDS.includes(kind)) return undefined
  return kind === 'reference' && targetName === undefined ? `${name}.id` : name
}
