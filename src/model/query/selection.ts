// What an answer shows of a record and of its neighbours, as a tree.
import { VersoError } from '../../errors.js'
import type { Criteria, PathStep } from './criteria.js'
import type { Field } from '../values/field-types.js'
import { resolveListOrder } from './list-order.js'
import { isReadByDefault, type Model } from '../definition/model.js'
import {
  findField,
  ID_FIELD,
  isOverList,
  MAX_PATH_STEPS,
  resolvePath,
  buildStep,
  VERSION_FIELD,
} from './path.js'
import type { Visibility } from './visibility.js'
import type { SortKey } from './sort-key.js'
import { isObject } from '../values/value.js'

/** How a neighbour says its version: with `version` it can be sent back to be changed, with `$version` only referred to. */
export type VersionKey = 'version' | '$version'

export interface Selection {
  readonly model: Model
  readonly versionKeys: readonly VersionKey[]
  readonly entries: readonly SelectionEntry[]
}

export interface SelectionEntry {
  readonly key: string
  /** Over which neighbours, one each, the field is reached. */
  readonly steps: readonly PathStep[]
  readonly field: Field
  /** Left out unless it is true. */
  readonly onlyIfTrue?: boolean
  /** The records that show it; all others are without it. */
  readonly mask?: Criteria
  /** Where the field is a relation: what is shown of each neighbour. */
  readonly related?: RelatedSelection
}

export interface RelatedSelection {
  readonly step: PathStep
  readonly selection: Selection
  /** Of a list, before the id. */
  readonly order?: readonly SortKey[]
}

export const MAX_SELECTED_FIELDS = 500
const MAX_SELECTED_RELATIONS = 200
/** No more will be told, and looking for what was meant takes time. */
const MAX_SELECTION_ERRORS = 20
/** Neighbours are built by a function of the database, and those take no more arguments. */
const MAX_RELATED_FIELDS = 64

/** A record as it is read. */
export function selectFullRecord(visibility: Visibility, model: Model): Selection {
  return selectFields(visibility, model, listDefaultFields(visibility, model))
}

/** The selection with the ids of list members and nothing else of them. Member names may take more memory than any record. */
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

/** Of the related records the ids and nothing else. */
export function reduceToIds({ related, ...entry }: SelectionEntry): SelectionEntry {
  if (!related) return entry
  const { step } = related
  return { ...entry, related: { step, selection: { model: step.target, versionKeys: [], entries: [] } } }
}

/** A record as it is found. */
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
  const entries = fields.map((field) => buildEntry(visibility, model, field.name, [], field))
  return { model, versionKeys: ['version'], entries }
}

function buildEntry(
  visibility: Visibility,
  model: Model,
  key: string,
  steps: readonly PathStep[],
  field: Field,
): SelectionEntry {
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

/** Over how many relations it goes: each is looked up for every record. */
export function countRelations({ entries }: Selection): number {
  return entries.reduce(
    (sum, { steps, related }) => sum + steps.length + (related ? 1 + countRelations(related.selection) : 0),
    0,
  )
}

/** `{id, $version, <name field>}` */
export function selectReference(visibility: Visibility, model: Model): Selection {
  const name = model.nameField === undefined ? undefined : visibility.findReadable(model, model.nameField)
  const entries = name
    ? [{ key: name.name, steps: [], field: name, ...buildMask(visibility, model, name) }]
    : []
  return { model, versionKeys: ['$version'], entries }
}

/** For a page: a dotted path becomes a flat key, `"company.name"`. Undefined if nothing was named. */
export function parsePageSelection(
  visibility: Visibility,
  model: Model,
  fields: unknown,
  errors: string[],
): Selection | undefined {
  if (fields === undefined || fields === null) return undefined
  const entries: SelectionEntry[] = []
  for (const name of new Set(parseFieldNames('fields', fields, errors))) {
    if (errors.length >= MAX_SELECTION_ERRORS) break
    const path = resolvePath(visibility, model, name)
    if (typeof path === 'string') errors.push(`fields: ${path}`)
    else if (isOverList(path))
      errors.push(`fields: "${name}" goes over a list: search ${path.model.name}, or fetch with "related"`)
    else if (name !== 'id' && name !== 'version')
      entries.push(buildEntry(visibility, path.model, name, path.steps, path.field))
  }
  return checkRelationCount({ model, versionKeys: ['version'], entries }, errors)
}

function checkRelationCount(selection: Selection, errors: string[]): Selection {
  if (countRelations(selection) > MAX_SELECTED_RELATIONS)
    errors.push(`fields go over more than ${MAX_SELECTED_RELATIONS} relations`)
  return selection
}

export interface FieldSelection {
  readonly fields?: unknown
  readonly related?: unknown
}

/** For one record: a dotted path becomes an object inside, and `related` says what is shown of a neighbour, ready to be sent back. */
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
    if (field && !field.relation) errors.push(`related: ${model.name}.${name} is no relation`)
  }
  const shown = names ?? listDefaultFields(visibility, model).map((field) => field.name)
  const selection = checkRelationCount(
    nestSelection(visibility, model, shown, fieldsByRelation, errors),
    errors,
  )
  if (errors.length > 0) throw new VersoError('bad-request', errors.slice(0, 10).join('; '))
  // Whoever edits a record should know that nobody sees it in a list.
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

function nestSelection(
  visibility: Visibility,
  model: Model,
  names: readonly string[],
  related: ReadonlyMap<string, readonly string[]>,
  errors: string[],
): Selection {
  const tails = new Map<string, string[]>()
  for (const name of names) {
    const [head = '', ...tail] = name.split('.')
    tails.set(head, [...(tails.get(head) ?? []), ...(tail.length > 0 ? [tail.join('.')] : [])])
  }
  const heads = new Set([...tails.keys(), ...related.keys()])
  const entries = [...heads].flatMap(
    (head) => nestEntry(visibility, model, head, tails.get(head), related.get(head), errors) ?? [],
  )
  return { model, versionKeys: ['$version'], entries }
}

/** `tail` is what follows the name in paths, undefined if only `related` names it. */
function nestEntry(
  visibility: Visibility,
  model: Model,
  name: string,
  tail: readonly string[] | undefined,
  related: readonly string[] | undefined,
  errors: string[],
): SelectionEntry | undefined {
  if (errors.length >= MAX_SELECTION_ERRORS) return undefined
  const field = findField(visibility, model, name)
  if (!field || (!field.relation && tail?.[0] !== undefined)) {
    // The path knows how to say what is wrong.
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
    [...own, ...(tail ?? []), ...(related ?? [])],
    new Map(),
    errors,
  )
  if (selection.entries.length > MAX_RELATED_FIELDS)
    errors.push(`${name}: at most ${MAX_RELATED_FIELDS} fields of a neighbour can be shown`)
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
      errors.push(`related: "${name.slice(0, 100)}" must be a field of the record itself`)
    else fieldsByRelation.set(name, parseFieldNames(`related.${name.slice(0, 100)}`, fields, errors))
  }
  return fieldsByRelation
}

/** A list of field names, each of a bearable length. */
export function parseFieldNames(what: string, input: unknown, errors: string[]): string[] {
  if (!Array.isArray(input) || !input.every((name) => typeof name === 'string')) {
    errors.push(`${what} must be a list of field names`)
    return []
  }
  if (input.length > MAX_SELECTED_FIELDS) {
    errors.push(`${what} must name at most ${MAX_SELECTED_FIELDS} fields`)
    return []
  }
  const long = input.find((name) => name.split('.').length > MAX_PATH_STEPS + 1)
  if (long === undefined) return input
  errors.push(`${what}: "${long.slice(0, 100)}" has more than ${MAX_PATH_STEPS} steps`)
  return []
}
