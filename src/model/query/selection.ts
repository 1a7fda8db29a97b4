// What an answer shows of a record and of its neighbours, as a tree.
import { Refusal } from '../../errors.js'
import type { Criteria, Step } from './criteria.js'
import type { Field } from '../values/field-types.js'
import { listOrder } from './list-order.js'
import { isShown, type Model } from '../definition/model.js'
import { fieldOf, ID, isOverList, MAX_STEPS, pathOf, stepOf, VERSION } from './path.js'
import type { Sight } from './visibility.js'
import type { SortKey } from './sort-key.js'
import { isObject } from '../values/value.js'

/** How a neighbour says its version: with `version` it can be sent back to be changed, with `$version` only referred to. */
export type VersionKey = 'version' | '$version'

export interface Selection {
  readonly model: Model
  readonly versionKeys: readonly VersionKey[]
  readonly entries: readonly Entry[]
}

export interface Entry {
  readonly key: string
  /** Over which neighbours, one each, the field is reached. */
  readonly steps: readonly Step[]
  readonly field: Field
  /** Left out unless it is true. */
  readonly onlyIfTrue?: boolean
  /** The records that show it; all others are without it. */
  readonly mask?: Criteria
  /** Where the field is a relation: what is shown of each neighbour. */
  readonly neighbour?: Neighbour
}

export interface Neighbour {
  readonly step: Step
  readonly shown: Selection
  /** Of a list, before the id. */
  readonly order?: readonly SortKey[]
}

export const MAX_FIELDS = 500
const MAX_RELATIONS = 200
/** No more will be told, and looking for what was meant takes time. */
const MAX_FAULTS = 20
/** Neighbours are built by a function of the database, and those take no more arguments. */
const MAX_NEIGHBOUR_FIELDS = 64

/** A record as it is read. */
export function fullSelection(sight: Sight, model: Model): Selection {
  return select(sight, model, shownFields(sight, model))
}

/** The selection with the ids of list members and nothing else of them. Member names may take more memory than any record. */
export function withMemberIds(selection: Selection): Selection {
  if (!selection.entries.some(isList)) return selection
  return { ...selection, entries: selection.entries.map((entry) => (isList(entry) ? withIds(entry) : entry)) }
}

function isList({ neighbour }: Entry): boolean {
  return neighbour?.step.field.relation?.isList === true
}

/** Of the related records the ids and nothing else. */
export function withIds({ neighbour, ...entry }: Entry): Entry {
  if (!neighbour) return entry
  const { step } = neighbour
  return { ...entry, neighbour: { step, shown: { model: step.target, versionKeys: [], entries: [] } } }
}

/** A record as it is found. */
export function listSelection(sight: Sight, model: Model): Selection {
  return select(
    sight,
    model,
    model.listFields.flatMap((name) => sight.readable(model, name) ?? []),
  )
}

function shownFields(sight: Sight, model: Model): Field[] {
  return [...model.fields.values()].filter((field) => isShown(field) && sight.readable(model, field.name))
}

function select(sight: Sight, model: Model, fields: readonly Field[]): Selection {
  const entries = fields.map((field) => entryOf(sight, model, field.name, [], field))
  return { model, versionKeys: ['version'], entries }
}

function entryOf(sight: Sight, model: Model, key: string, steps: readonly Step[], field: Field): Entry {
  if (!field.relation) return { key, steps, field, ...maskOf(sight, model, field) }
  const step = stepOf(sight, model, field)
  const shown = compact(sight, step.target)
  return { key, steps, field, neighbour: { step, shown, ...orderOf(sight, field) } }
}

function orderOf(sight: Sight, field: Field): Pick<Neighbour, 'order'> {
  return field.relation?.orderBy ? { order: listOrder(sight, field) } : {}
}

function maskOf(sight: Sight, model: Model, field: Field): Pick<Entry, 'mask'> {
  const mask = sight.mask(model, field)
  return mask ? { mask } : {}
}

/** Over how many relations it goes: each is looked up for every record. */
export function countRelations({ entries }: Selection): number {
  return entries.reduce(
    (sum, { steps, neighbour }) => sum + steps.length + (neighbour ? 1 + countRelations(neighbour.shown) : 0),
    0,
  )
}

/** `{id, $version, <name field>}` */
export function compact(sight: Sight, model: Model): Selection {
  const name = model.nameField === undefined ? undefined : sight.readable(model, model.nameField)
  const entries = name ? [{ key: name.name, steps: [], field: name, ...maskOf(sight, model, name) }] : []
  return { model, versionKeys: ['$version'], entries }
}

/** For a page: a dotted path becomes a flat key, `"company.name"`. Undefined if nothing was named. */
export function selectionForPage(
  sight: Sight,
  model: Model,
  fields: unknown,
  faults: string[],
): Selection | undefined {
  if (fields === undefined || fields === null) return undefined
  const entries: Entry[] = []
  for (const name of new Set(namesFrom('fields', fields, faults))) {
    if (faults.length >= MAX_FAULTS) break
    const path = pathOf(sight, model, name)
    if (typeof path === 'string') faults.push(`fields: ${path}`)
    else if (isOverList(path))
      faults.push(`fields: "${name}" goes over a list: search ${path.model.name}, or fetch with "related"`)
    else if (name !== 'id' && name !== 'version')
      entries.push(entryOf(sight, path.model, name, path.steps, path.field))
  }
  return bounded({ model, versionKeys: ['version'], entries }, faults)
}

function bounded(selection: Selection, faults: string[]): Selection {
  if (countRelations(selection) > MAX_RELATIONS)
    faults.push(`fields go over more than ${MAX_RELATIONS} relations`)
  return selection
}

export interface Wanted {
  readonly fields?: unknown
  readonly related?: unknown
}

/** For one record: a dotted path becomes an object inside, and `related` says what is shown of a neighbour, ready to be sent back. */
export function selectionForRecord(sight: Sight, model: Model, { fields, related }: Wanted): Selection {
  const faults: string[] = []
  const names = fields === undefined || fields === null ? undefined : namesFrom('fields', fields, faults)
  const neighbours = relatedFrom(related, faults)
  for (const name of neighbours.keys()) {
    const field = fieldOf(sight, model, name)
    if (field && !field.relation) faults.push(`related: ${model.name}.${name} is no relation`)
  }
  const shown = names ?? shownFields(sight, model).map((field) => field.name)
  const selection = bounded(nest(sight, model, shown, neighbours, faults), faults)
  if (faults.length > 0) throw new Refusal('bad-request', faults.slice(0, 10).join('; '))
  // Whoever edits a record should know that nobody sees it in a list.
  const archived = names && !names.includes('archived') ? sight.readable(model, 'archived') : undefined
  const hint: Entry[] = archived
    ? [{ key: 'archived', steps: [], field: archived, onlyIfTrue: true, ...maskOf(sight, model, archived) }]
    : []
  return { model, versionKeys: ['version'], entries: [...selection.entries, ...hint] }
}

function nest(
  sight: Sight,
  model: Model,
  names: readonly string[],
  related: ReadonlyMap<string, readonly string[]>,
  faults: string[],
): Selection {
  const tails = new Map<string, string[]>()
  for (const name of names) {
    const [head = '', ...tail] = name.split('.')
    tails.set(head, [...(tails.get(head) ?? []), ...(tail.length > 0 ? [tail.join('.')] : [])])
  }
  const heads = new Set([...tails.keys(), ...related.keys()])
  const entries = [...heads].flatMap(
    (head) => nestOne(sight, model, head, tails.get(head), related.get(head), faults) ?? [],
  )
  return { model, versionKeys: ['$version'], entries }
}

/** `tail` is what follows the name in paths, undefined if only `related` names it. */
function nestOne(
  sight: Sight,
  model: Model,
  name: string,
  tail: readonly string[] | undefined,
  related: readonly string[] | undefined,
  faults: string[],
): Entry | undefined {
  if (faults.length >= MAX_FAULTS) return undefined
  const field = fieldOf(sight, model, name)
  if (!field || (!field.relation && tail?.[0] !== undefined)) {
    // The path knows how to say what is wrong.
    const fault = pathOf(sight, model, [name, ...(tail ?? []).slice(0, 1)].join('.'))
    if (typeof fault === 'string') faults.push(`fields: ${fault}`)
    return undefined
  }
  if (field === ID || field === VERSION) return undefined
  if (!field.relation) return { key: name, steps: [], field, ...maskOf(sight, model, field) }
  const step = stepOf(sight, model, field)
  const own = tail ? compact(sight, step.target).entries.map((entry) => entry.key) : []
  const shown = nest(sight, step.target, [...own, ...(tail ?? []), ...(related ?? [])], new Map(), faults)
  if (shown.entries.length > MAX_NEIGHBOUR_FIELDS)
    faults.push(`${name}: at most ${MAX_NEIGHBOUR_FIELDS} fields of a neighbour can be shown`)
  const versionKeys: VersionKey[] = [
    ...(tail ? (['$version'] as const) : []),
    ...(related ? (['version'] as const) : []),
  ]
  const neighbour = { step, shown: { ...shown, versionKeys }, ...orderOf(sight, field) }
  return { key: name, steps: [], field, neighbour }
}

function relatedFrom(related: unknown, faults: string[]): Map<string, readonly string[]> {
  const neighbours = new Map<string, readonly string[]>()
  if (related === undefined || related === null) return neighbours
  if (!isObject(related)) {
    faults.push('related must be an object of lists of field names')
    return neighbours
  }
  if (Object.keys(related).length > MAX_FIELDS) {
    faults.push(`related must name at most ${MAX_FIELDS} relations`)
    return neighbours
  }
  for (const [name, fields] of Object.entries(related)) {
    if (name.includes('.'))
      faults.push(`related: "${name.slice(0, 100)}" must be a field of the record itself`)
    else neighbours.set(name, namesFrom(`related.${name.slice(0, 100)}`, fields, faults))
  }
  return neighbours
}

/** A list of field names, each of a bearable length. */
export function namesFrom(what: string, input: unknown, faults: string[]): string[] {
  if (!Array.isArray(input) || !input.every((name) => typeof name === 'string')) {
    faults.push(`${what} must be a list of field names`)
    return []
  }
  if (input.length > MAX_FIELDS) {
    faults.push(`${what} must name at most ${MAX_FIELDS} fields`)
    return []
  }
  const long = input.find((name) => name.split('.').length > MAX_STEPS + 1)
  if (long === undefined) return input
  faults.push(`${what}: "${long.slice(0, 100)}" has more than ${MAX_STEPS} steps`)
  return []
}
