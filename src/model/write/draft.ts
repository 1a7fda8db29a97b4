// Client data → Drafts: a record and, inside of it, the neighbours that are to be written with it. Or one Refusal that lists every fault.
import { Refusal } from '../../errors.js'
import { Faults } from '../definition/field-errors.js'
import { Fault, parseValue, type Field } from '../values/field-types.js'
import { isOwnedList, isView, isWritable, type Model } from '../definition/model.js'
import { didYouMean } from '../values/did-you-mean.js'
import type { Refs } from './refs.js'
import type { Sight } from '../query/visibility.js'
import { isWrittenInside } from '../catalog/system-models.js'
import { isObject, type Values } from '../values/value.js'
import { claimInverse, type ClaimedMember } from './inverse-input.js'
import { KEYS, NEIGHBOUR_KEYS, neighbourFault } from './related-input.js'
import { NamedRecords } from './repeated-references.js'
import { defaultOf } from '../definition/record-values.js'

/** What a client sent for one record. */
export interface Draft {
  readonly model: Model
  /** The record that is to be changed, and the version that the change was made from; undefined for a new one. */
  readonly key: Key | undefined
  /** What its own fields are to hold. A neighbour that is yet to be made is not among them. */
  readonly values: Values
  /** The neighbours of its references that are to be written first. */
  readonly neighbours: ReadonlyMap<string, Draft>
  /** The owned lists that were sent. */
  readonly lists: ReadonlyMap<string, readonly Member[]>
  /** Neighbours that came along as they were read, by field. */
  readonly copies: ReadonlyMap<string, readonly Copy[]>
  /** What inverse relations are believed to hold, by existing clients: compared in the transaction, never written. */
  readonly inverses?: ReadonlyMap<string, readonly ClaimedMember[]>
  /** Whether the request names this record with its version in another place, too: then none of them changes it. */
  readonly isRepeated?: boolean
  /** The json fields whose values change what is there, instead of taking its place. */
  readonly patched?: ReadonlySet<string>
  /** Where it stands in the request, in front of the names of its fields: `addresses[0].` */
  readonly place: string
}

export interface Key {
  readonly id: number
  readonly version: number
}

/** A neighbour as an answer showed it: it refers, and changes nothing. */
export interface Copy {
  readonly id: number
  readonly version: number
  readonly data: Readonly<Record<string, unknown>>
  readonly place: string
}

/** A member of an owned list: a record by its id alone, or one that is to be written. */
export type Member = { readonly id: number; readonly draft?: never } | { readonly draft: Draft }

/** The id of a stored member; undefined for one that is still to be created. */
export function memberId(member: Member): number | undefined {
  return member.draft ? member.draft.key?.id : member.id
}

/** Whether anything is written with it. */
export function holdsDrafts({ neighbours, lists }: Draft): boolean {
  return neighbours.size > 0 || lists.size > 0
}

/** The records inside of it that are written with it. */
export function draftsIn({ neighbours, lists }: Draft): Draft[] {
  const members = [...lists.values()].flat().flatMap((member) => member.draft ?? [])
  return [...neighbours.values(), ...members]
}

/** How many records an owned list holds. */
export const MAX_MEMBERS = 1_000
/** How deep they stand inside of each other, and how many there are in a request. */
export const MAX_DEPTH = 8
export const MAX_RECORDS = 1_000
/** In all the lists of a request together. */
const MAX_ITEMS = 10_000
/** Each takes a core as long as a login does. */
const MAX_PASSWORDS = 16
/** More than any model has fields: whoever sends more wants to keep the service busy. */
const MAX_KEYS = 2_000

/** Everything a new record holds: what was sent, defaults, nulls. */
export function draftToCreate(sight: Sight, model: Model, data: unknown, now: string): Draft {
  return new DraftReader(sight, now).root(model, data, undefined)
}

/** What a client sent for one of several records; the key of one that is there already. */
export interface Sent {
  readonly data: unknown
  readonly key: Key | undefined
}

/** Several records of one model, and the faults of all of them at once: `records[1].email`. */
export function draftsToSave(sight: Sight, model: Model, records: readonly Sent[], now: string): Draft[] {
  return new DraftReader(sight, now).roots(model, records)
}

/** Records of several models, one after the other; their places say which is which. */
export interface Drafting {
  read(model: Model, sent: Sent, place: string): Draft
  /** Refuses if any of them has a fault, and names those of all. */
  finish(): void
}

export function draftsOf(sight: Sight, refs: Refs, now: string): Drafting {
  return new DraftReader(sight, now, refs)
}

/** Only what was sent. */
export function draftToUpdate(sight: Sight, model: Model, data: unknown, key: Key, now: string): Draft {
  return new DraftReader(sight, now).root(model, data, key)
}

/** The list that a record stands in, which decides one of its references. */
interface Parent {
  readonly reference: string | undefined
  readonly id: number | undefined
}

class DraftReader implements Drafting {
  readonly #faults = new Faults()
  readonly #faulty = new Set<Model>()
  readonly #named: NamedRecords
  #records = 0
  #items = 0
  #passwords = 0

  constructor(
    readonly sight: Sight,
    readonly now: string,
    /** What neighbours may be called by besides their ids. */
    readonly refs?: Refs,
  ) {
    this.#named = new NamedRecords(refs)
  }

  root(model: Model, data: unknown, key: Key | undefined): Draft {
    const draft = this.read(model, { data, key }, '')
    this.finish()
    return draft
  }

  roots(model: Model, records: readonly Sent[]): Draft[] {
    const drafts = records.map((sent, index) => this.read(model, sent, `records[${index}].`))
    this.finish()
    return drafts
  }

  read(model: Model, { data, key }: Sent, place: string): Draft {
    const what = place === '' ? '"data"' : place.replace(/\.$/, '')
    if (!isObject(data)) throw new Refusal('bad-request', `${what} must be an object of fields`)
    const before = this.#faults.count
    const draft = this.#read(model, data, key, place, 1, undefined)
    if (this.#faults.count > before) this.#faulty.add(model)
    return draft
  }

  finish(): void {
    const [model, ...others] = this.#faulty
    this.#faults.refuseIfAny(others.length === 0 ? model : undefined)
  }

  #read(
    model: Model,
    data: Readonly<Record<string, unknown>>,
    key: Key | undefined,
    place: string,
    depth: number,
    parent: Parent | undefined,
  ): Draft {
    this.#count(model, key, place, depth)
    const draft: MutableDraft = {
      model,
      key,
      place,
      values: {},
      neighbours: new Map<string, Draft>(),
      lists: new Map<string, Member[]>(),
      copies: new Map<string, Copy[]>(),
    }
    const keys = depth === 1 ? KEYS : NEIGHBOUR_KEYS
    const entries = Object.entries(data)
    if (entries.length > MAX_KEYS) throw new Refusal('bad-request', `"data" has more than ${MAX_KEYS} keys`)
    for (const [name, input] of entries) {
      if (keys.has(name) || input === undefined) continue
      const field = this.#known(model, name)
      if (!field) this.#faults.add(place + name, this.#unknown(model, name))
      else if (name === parent?.reference) this.#checkParent(place + name, input, parent)
      else this.#readField(draft, field, input, depth)
    }
    if (key) this.#refuseCleared(draft)
    else this.#complete(draft, parent?.reference)
    if (depth > 1) this.#addFault(place, this.#named.addInside(draft))
    return draft
  }

  #count(model: Model, key: Key | undefined, place: string, depth: number): void {
    this.#records++
    if (depth > MAX_DEPTH)
      throw new Refusal('bad-request', `Records can be nested ${MAX_DEPTH} levels deep, not deeper`)
    refuseIfMore(this.#records, MAX_RECORDS, 'records')
    if (depth === 1) this.#addFault(place, this.#named.addRoot(model, key))
  }

  #addFault(place: string, fault: string | undefined): void {
    if (fault !== undefined) this.#faults.add(place.replace(/\.$/, ''), fault)
  }

  #readField(draft: MutableDraft, field: Field, input: unknown, depth: number): void {
    const name = draft.place + field.name
    const { relation } = field
    if (relation && isView(field)) this.#addFault(name, claimInverse(this.sight, draft, field, input))
    else if (!isWritable(field)) return
    // Content comes and goes by calls of its own: sent as null, as it would be read, a binary field means nothing.
    else if (field.type === 'binary' && input === null) return
    else if (isOwnedList(field)) draft.lists.set(field.name, this.#readList(draft, field, input, depth))
    else if (input === null) draft.values[field.name] = null
    else if (relation) this.#readReference(draft, field, input, depth)
    else {
      if (field.secret === 'password') refuseIfMore(++this.#passwords, MAX_PASSWORDS, 'passwords')
      const value = parseValue(field, input)
      if (value instanceof Fault) this.#faults.add(name, value.message)
      else draft.values[field.name] = value
    }
  }

  #readReference(draft: MutableDraft, field: Field, input: unknown, depth: number): void {
    const member = this.#readNeighbour(draft.place + field.name, field, input, depth, undefined)
    if (!member) return
    keepCopy(draft, field, input, draft.place + field.name)
    const id = member.draft ? member.draft.key?.id : member.id
    if (member.draft) draft.neighbours.set(field.name, member.draft)
    if (id !== undefined) draft.values[field.name] = { id }
  }

  #readList(draft: MutableDraft, field: Field, input: unknown, depth: number): Member[] {
    const name = draft.place + field.name
    if (!Array.isArray(input)) {
      this.#faults.add(name, 'must be a list; an empty one removes all members')
      return []
    }
    if (input.length > MAX_MEMBERS) {
      this.#faults.add(name, `must have at most ${MAX_MEMBERS} members`)
      return []
    }
    this.#items += input.length
    refuseIfMore(this.#items, MAX_ITEMS, 'members of lists')
    const parent = { reference: field.relation?.mappedBy, id: draft.key?.id }
    const members = new Map<number | Draft, Member>()
    for (const [index, item] of input.entries()) {
      const member = this.#readNeighbour(`${name}[${index}]`, field, item, depth, parent)
      if (!member) continue
      keepCopy(draft, field, item, `${name}[${index}]`)
      const identity = member.draft ? (member.draft.key?.id ?? member.draft) : member.id
      if (members.has(identity)) this.#faults.add(`${name}[${index}]`, 'is in the list twice')
      members.set(identity, member)
    }
    return [...members.values()]
  }

  /** `{id}` refers, `{id, version, …}` changes, an object without id makes a new record. */
  #readNeighbour(
    name: string,
    { relation }: Field,
    input: unknown,
    depth: number,
    parent: Parent | undefined,
  ): Member | undefined {
    if (!relation) return undefined
    const target = this.sight.target(relation)
    const standIn = this.refs?.standInFor(input, target)
    if (standIn instanceof Fault) this.#faults.add(name, standIn.message)
    if (standIn !== undefined) return standIn instanceof Fault ? undefined : { id: standIn }
    if (!isObject(input)) {
      const example = parent ? 'an object' : 'null or an object'
      this.#faults.add(
        name,
        `must be ${example}: { "id": 1 } refers to a record, without id it makes a new one`,
      )
      return undefined
    }
    const { id = null, version = null } = input
    const fault = neighbourFault(this.sight, input, target, isWrittenInside(target))
    if (fault !== undefined) this.#faults.add(name, fault)
    if (fault !== undefined || (id !== null && version === null)) {
      return typeof id === 'number' && fault === undefined ? { id } : undefined
    }
    const key = id === null ? undefined : { id: id as number, version: version as number }
    return { draft: this.#read(target, input, key, `${name}.`, depth + 1, parent) }
  }

  #checkParent(name: string, input: unknown, { id }: Parent): void {
    if (input === null || (isObject(input) && input['id'] === id && id !== undefined)) return
    this.#faults.add(name, 'is decided by the list that it stands in: leave it out')
  }

  /** Of a new record: what was not sent is the default. */
  #complete({ model, values, neighbours, place }: MutableDraft, decided: string | undefined): void {
    for (const field of model.fields.values()) {
      if (!isWritable(field) || field.type === 'binary' || field.relation?.isList) continue
      if (neighbours.has(field.name) || field.name === decided) continue
      values[field.name] ??= Object.hasOwn(values, field.name) ? null : defaultOf(field, this.now)
      if (values[field.name] !== null || !field.required) continue
      if (!this.sight.knows(model, field))
        throw new Refusal('forbidden', `You may not make a ${model.name}: it needs more than you may write`)
      this.#faults.add(place + field.name, 'is required')
    }
  }

  #refuseCleared({ model, values, place }: MutableDraft): void {
    for (const [name, value] of Object.entries(values)) {
      if (value === null && model.fields.get(name)?.required) this.#faults.add(place + name, 'is required')
    }
  }

  #known(model: Model, name: string): Field | undefined {
    const field = model.fields.get(name)
    return field && this.sight.knows(model, field) ? field : undefined
  }

  #unknown(model: Model, name: string): string {
    const fields = [...model.fields.values()].filter((field) => isWritable(field))
    const known = fields.filter((field) => this.sight.knows(model, field)).map((field) => field.name)
    return `is no field of ${model.name}${this.#faults.areMany ? '' : didYouMean(name, known)}`
  }
}

function refuseIfMore(count: number, most: number, what: string): void {
  if (count > most) throw new Refusal('bad-request', `At most ${most} ${what} can be written at once`)
}

function keepCopy(draft: MutableDraft, { name }: Field, input: unknown, place: string): void {
  if (!isObject(input) || typeof input['$version'] !== 'number' || typeof input['id'] !== 'number') return
  // With its version it is no copy, but a change of its own.
  if ((input['version'] ?? null) !== null) return
  const copy = { id: input['id'], version: input['$version'], data: input, place }
  const copies = draft.copies.get(name)
  if (copies) copies.push(copy)
  else draft.copies.set(name, [copy])
}

interface MutableDraft extends Draft {
  inverses?: ReadonlyMap<string, readonly ClaimedMember[]>
  isRepeated?: boolean
  readonly neighbours: Map<string, Draft>
  readonly lists: Map<string, readonly Member[]>
  readonly copies: Map<string, Copy[]>
}
