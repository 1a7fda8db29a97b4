// The fields of a record and of its related records that an answer contains, as a tree.
import { shortenForMessage } from '../values/did-you-mean.js'
import { VersoError } from '../../errors.js'
import type { Criteria, PathStep } from './criteria.js'
import type { Field } from '../values/field.js'
import { isReadByDefault, type Model } from '../definition/model.js'
import {
  findField,
  ID_FIELD,
  isOverList,
  MAX_SELECTED_FIELDS,
  parseFieldNames,
  resolvePath,
  buildStep,
  type Path,
  VERSION_FIELD,
} from './path.js'
import type { Visibility } from './visibility.js'
import { resolveListOrder, type SortKey } from './sort.js'
import { isObject } from '../values/value.js'

/** The key for the version of a related record. One with `version` can be sent back as an update, one with `$version` only as a link. */
export type VersionKey = 'version' | '$version'

export interface Selection {
  readonly model: Model
  readonly versionKeys: readonly VersionKey[]
  readonly entries: readonly SelectionEntry[]
}

export interface SelectionEntry {
  readonly key: string
  /** The to-one relations that lead to the field. */
  readonly steps: readonly PathStep[]
  readonly field: Field
  /** Omitted from the answer unless its value is true. */
  readonly onlyIfTrue?: boolean
  /** The records whose value the user may read. Other records omit the key. */
  readonly mask?: Criteria
  /** For a relation: the selection of the related records. */
  readonly related?: RelatedSelection
}

export interface RelatedSelection {
  readonly step: PathStep
  readonly selection: Selection
  /** The sort keys of a list. The id breaks ties. */
  readonly order?: readonly SortKey[]
}

const MAX_SELECTED_RELATIONS = 200
/** The answer lists at most this many errors. Parsing stops there, because suggestions take time. */
const MAX_SELECTION_ERRORS = 20
/** A database function with limited arguments builds the JSON of a related record. */
const MAX_RELATED_FIELDS = 64

/** Selects the fields of a single read. */
export function selectFullRecord(visibility: Visibility, model: Model): Selection {
  return selectFields(visibility, model, listDefaultFields(visibility, model))
}

/** Selects only the ids of list members. The names of the members may take more memory than the record itself. */
export function reduceMembersToIds(selection: Selection): Selection {
  if (!selection.entries.some(isListEntry)) return selection
  return {
    ...selection,
    entries: selection.entries.map((entry) => (isListEntry(entry) ? reduceToIds(entry) : entry)),
  }
}

function isListEntry({ related }: SelectionEntry): boolean {
  return related?.step.field.relation?.isList === true
}

/** Selects only the ids of the related records. */
export function reduceToIds({ related, ...entry }: SelectionEntry): SelectionEntry {
  if (!related) return entry
  const { step } = related
  return { ...entry, related: { step, selection: { model: step.target, versionKeys: [], entries: [] } } }
}

/** Selects the fields of a record in a search result. */
export function selectListFields(visibility: Visibility, model: Model): Selection {
  return selectFields(
    visibility,
    model,
    model.listFields.flatMap((name) => visibility.findReadable(model, name) ?? []),
  )
}

function listDefaultFields(visibility: Visibility, model: Model): Field[] {
  return [...model.fields.values()].filter(
    (field) => isReadByDefault(field) && visibility.findReadable(model, field.name),
  )
}

function selectFields(visibility: Visibility, model: Model, fields: readonly Field[]): Selection {
  const entries = fields.map((field) => buildEntry(visibility, { steps: [], model, field }, field.name))
  return { model, versionKeys: ['version'], entries }
}

function buildEntry(visibility: Visibility, { steps, model, field }: Path, key: string): SelectionEntry {
  if (!field.relation) return { key, steps, field, ...buildMask(visibility, model, field) }
  const step = buildStep(visibility, model, field)
  const selection = selectReference(visibility, step.target)
  return { key, steps, field, related: { step, selection, ...buildOrder(visibility, field) } }
}

function buildOrder(visibility: Visibility, field: Field): Pick<RelatedSelection, 'order'> {
  return field.relation?.orderBy ? { order: resolveListOrder(visibility, field) } : {}
}

function buildMask(visibility: Visibility, model: Model, field: Field): Pick<SelectionEntry, 'mask'> {
  const mask = visibility.mask(model, field)
  return mask ? { mask } : {}
}

/** Counts the relations that the database follows for each record. */
export function countRelations({ entries }: Selection): number {
  return entries.reduce(
    (sum, { steps, related }) => sum + steps.length + (related ? 1 + countRelations(related.selection) : 0),
    0,
  )
}

/** Selects `{id, $version, <name field>}`. */
export function selectReference(visibility: Visibility, model: Model): Selection {
  const name = model.nameField === undefined ? undefined : visibility.findReadable(model, model.nameField)
  const entries = name
    ? [{ key: name.name, steps: [], field: name, ...buildMask(visibility, model, name) }]
    : []
  return { model, versionKeys: ['$version'], entries }
}

/** Parses `fields` of a page. A dotted path becomes a flat key such as `"company.name"`. */
export function parsePageSelection(
  visibility: Visibility,
  model: Model,
  fields: unknown,
  errors: string[],
): Selection {
  const entries: SelectionEntry[] = []
  for (const name of new Set(parseFieldNames('fields', fields, errors))) {
    if (errors.length >= MAX_SELECTION_ERRORS) break
    const path = resolvePath(visibility, model, name)
    if (typeof path === 'string') errors.push(`fields: ${path}`)
    else if (isOverList(path))
      errors.push(
        `fields: "${name}" follows a list: search ${path.model.name}, or fetch the record with "related"`,
      )
    else if (name !== 'id' && name !== 'version') entries.push(buildEntry(visibility, path, name))
  }
  return checkRelationCount({ model, versionKeys: ['version'], entries }, errors)
}

function checkRelationCount(selection: Selection, errors: string[]): Selection {
  if (countRelations(selection) > MAX_SELECTED_RELATIONS)
    errors.push(`fields follow more than ${MAX_SELECTED_RELATIONS} relations`)
  return selection
}

export interface FieldSelection {
  readonly fields?: unknown
  readonly related?: unknown
}

/** Parses the selection of one record. A dotted path becomes a nested object; `related` selects fields of related records for an update. */
export function parseRecordSelection(
  visibility: Visibility,
  model: Model,
  { fields, related }: FieldSelection,
): Selection {
  const errors: string[] = []
  const names =
    fields === undefined || fields === null ? undefined : parseFieldNames('fields', fields, errors)
  const fieldsByRelation = parseRelated(related, errors)
  for (const name of fieldsByRelation.keys()) {
    const field = findField(visibility, model, name)
    if (field && !field.relation) errors.push(`related: ${model.name}.${name} is not a relation`)
  }
  const selected = names ?? listDefaultFields(visibility, model).map((field) => field.name)
  const selection = checkRelationCount(
    nestSelection(visibility, model, { names: selected, related: fieldsByRelation }, errors),
    errors,
  )
  if (errors.length > 0) throw new VersoError('bad-request', errors.slice(0, 10).join('; '))
  // Someone who edits a record should know that searches leave it out.
  const archived =
    names && !names.includes('archived') ? visibility.findReadable(model, 'archived') : undefined
  const hint: SelectionEntry[] = archived
    ? [
        {
          key: 'archived',
          steps: [],
          field: archived,
          onlyIfTrue: true,
          ...buildMask(visibility, model, archived),
        },
      ]
    : []
  return { model, versionKeys: ['version'], entries: [...selection.entries, ...hint] }
}

/** The fields that a request selects. */
interface SelectedNames {
  /** Fields and paths. */
  readonly names: readonly string[]
  /** Fields of related records, by relation. */
  readonly related: ReadonlyMap<string, readonly string[]>
}

function nestSelection(
  visibility: Visibility,
  model: Model,
  { names, related }: SelectedNames,
  errors: string[],
): Selection {
  const tails = new Map<string, string[]>()
  for (const name of names) {
    const [head = '', ...tail] = name.split('.')
    tails.set(head, [...(tails.get(head) ?? []), ...(tail.length > 0 ? [tail.join('.')] : [])])
  }
  const heads = new Set([...tails.keys(), ...related.keys()])
  const entries = [...heads].flatMap(
    (name) =>
      nestEntry(visibility, model, { name, tail: tails.get(name), related: related.get(name) }, errors) ?? [],
  )
  return { model, versionKeys: ['$version'], entries }
}

interface SelectedName {
  readonly name: string
  /** The rest of each path that begins with the name; undefined if only `related` has the name. */
  readonly tail: readonly string[] | undefined
  readonly related: readonly string[] | undefined
}

function nestEntry(
  visibility: Visibility,
  model: Model,
  { name, tail, related }: SelectedName,
  errors: string[],
): SelectionEntry | undefined {
  if (errors.length >= MAX_SELECTION_ERRORS) return undefined
  const field = findField(visibility, model, name)
  if (!field || (!field.relation && tail?.[0] !== undefined)) {
    // `resolvePath` returns the error message.
    const error = resolvePath(visibility, model, [name, ...(tail ?? []).slice(0, 1)].join('.'))
    if (typeof error === 'string') errors.push(`fields: ${error}`)
    return undefined
  }
  if (field === ID_FIELD || field === VERSION_FIELD) return undefined
  if (!field.relation) return { key: name, steps: [], field, ...buildMask(visibility, model, field) }
  const step = buildStep(visibility, model, field)
  const own = tail ? selectReference(visibility, step.target).entries.map((entry) => entry.key) : []
  const selection = nestSelection(
    visibility,
    step.target,
    { names: [...own, ...(tail ?? []), ...(related ?? [])], related: new Map() },
    errors,
  )
  if (selection.entries.length > MAX_RELATED_FIELDS)
    errors.push(`${name}: at most ${MAX_RELATED_FIELDS} fields of a related record can be selected`)
  const versionKeys: VersionKey[] = [
    ...(tail ? (['$version'] as const) : []),
    ...(related ? (['version'] as const) : []),
  ]
  const relatedRecord = { step, selection: { ...selection, versionKeys }, ...buildOrder(visibility, field) }
  return { key: name, steps: [], field, related: relatedRecord }
}

function parseRelated(related: unknown, errors: string[]): Map<string, readonly string[]> {
  const fieldsByRelation = new Map<string, readonly string[]>()
  if (related === undefined || related === null) return fieldsByRelation
  if (!isObject(related)) {
    errors.push('related must be an object of lists of field names')
    return fieldsByRelation
  }
  if (Object.keys(related).length > MAX_SELECTED_FIELDS) {
    errors.push(`related must name at most ${MAX_SELECTED_FIELDS} relations`)
    return fieldsByRelation
  }
  for (const [name, fields] of Object.entries(related)) {
    if (name.includes('.'))
      errors.push(`related: "${shortenForMessage(name)}" must be a field of the record itself`)
    else fieldsByRelation.set(name, parseFieldNames(`related.${shortenForMessage(name)}`, fields, errors))
  }
  return fieldsByRelation
}
