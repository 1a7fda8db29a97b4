// Parses client data into a Draft. Reports all errors at once.
import { VersoError } from '../../errors.js'
import { FieldErrors } from '../definition/field-errors.js'
import { isWritable, type Model } from '../definition/model.js'
import { getDefaultValue } from '../definition/record-values.js'
import type { Visibility } from '../query/visibility.js'
import { didYouMean } from '../values/did-you-mean.js'
import { FieldError, type Field } from '../values/field.js'
import { parseValue } from '../values/field-types.js'
import { isObject, type JsonObject } from '../values/value.js'
import {
  addReferenceCopy,
  InvalidDraftError,
  MAX_DRAFT_DEPTH,
  MAX_DRAFT_KEYS,
  MAX_DRAFT_LIST_ITEMS,
  MAX_DRAFT_PASSWORDS,
  MAX_DRAFT_RECORDS,
  MAX_OWNED_LIST_MEMBERS,
  type Draft,
  type DraftMember,
  type DraftParent,
  type DraftPosition,
  type MutableDraft,
  type RecordInput,
  type ReferenceCopy,
  type VersionedInput,
  type VersionedId,
} from './draft.js'
import { readInverseClaim } from './inverse-input.js'
import type { Refs } from './refs.js'
import { RECORD_KEYS, RELATED_RECORD_KEYS, validateRelatedInput } from './related-input.js'
import { NamedRecordSet } from './repeated-references.js'

/** Parses the input of a create. The values contain all fields: sent values, defaults and nulls. */
export function readCreateDraft(visibility: Visibility, model: Model, data: unknown, now: string): Draft {
  return new DraftReader(visibility, now).readOne(model, { data, key: undefined })
}

/** Parses several records of one model and reports the errors of all at once, with paths such as `records[1].email`. */
export function readSaveDrafts(
  visibility: Visibility,
  model: Model,
  records: readonly RecordInput[],
  now: string,
): Draft[] {
  return new DraftReader(visibility, now).readMany(model, records)
}

/** Parses records of several models one by one. Their paths distinguish them in errors. */
export interface BatchDraftReader {
  read(model: Model, input: RecordInput, path: string): Draft
  /** Throws if there are errors, and lists those of all records. */
  finish(): void
}

export function createDraftReader(visibility: Visibility, refs: Refs, now: string): BatchDraftReader {
  return new DraftReader(visibility, now, refs)
}

/** Parses the input of an update. The values contain only the fields that were sent. */
export function readUpdateDraft(
  visibility: Visibility,
  model: Model,
  input: VersionedInput,
  now: string,
): Draft {
  return new DraftReader(visibility, now).readOne(model, input)
}

type ObjectInput = RecordInput & { readonly data: JsonObject }

class DraftReader implements BatchDraftReader {
  /** Undefined while there is no error. */
  #errors: FieldErrors | undefined
  readonly #invalidModels = new Set<Model>()
  readonly #drafts: Draft[] = []
  /** Undefined while the request names one record. */
  #namedRecords: NamedRecordSet | undefined
  #root: Pick<Draft, 'model' | 'key'> | undefined
  #records = 0
  #items = 0
  #passwords = 0

  constructor(
    readonly visibility: Visibility,
    readonly now: string,
    /** Names for records that earlier requests of a batch create. */
    readonly refs?: Refs,
  ) {}

  readOne(model: Model, input: RecordInput): Draft {
    const draft = this.read(model, input, '')
    this.finish()
    return draft
  }

  readMany(model: Model, records: readonly RecordInput[]): Draft[] {
    const drafts = records.map((sent, index) => this.read(model, sent, `records[${index}].`))
    this.finish()
    return drafts
  }

  read(model: Model, { data, key }: RecordInput, path: string): Draft {
    const what = path === '' ? '"data"' : path.replace(/\.$/, '')
    if (!isObject(data)) throw new VersoError('bad-request', `${what} must be an object of fields`)
    const before = this.#errors?.count ?? 0
    const draft = this.#read(model, { data, key }, { path, depth: 1, parent: undefined })
    if ((this.#errors?.count ?? 0) > before) this.#invalidModels.add(model)
    this.#drafts.push(draft)
    return draft
  }

  finish(): void {
    if (this.#errors) throw new InvalidDraftError(this.#errors, this.#drafts, this.#invalidModels)
  }

  #read(model: Model, { data, key }: ObjectInput, { path, depth, parent }: DraftPosition): Draft {
    this.#count(model, key, path, depth)
    const draft: MutableDraft = {
      model,
      key,
      path,
      values: {},
      related: new Map<string, Draft>(),
      lists: new Map<string, DraftMember[]>(),
      copies: new Map<string, ReferenceCopy[]>(),
    }
    const keys = depth === 1 ? RECORD_KEYS : RELATED_RECORD_KEYS
    const entries = Object.entries(data)
    if (entries.length > MAX_DRAFT_KEYS)
      throw createLimitError(`"data" can have at most ${MAX_DRAFT_KEYS} keys`)
    for (const [name, input] of entries) {
      if (keys.has(name) || input === undefined) continue
      const field = this.#findField(model, name)
      if (!field) this.#addError(path + name, this.#describeUnknownField(model, name))
      else if (name === parent?.reference) this.#checkParent(path + name, input, parent)
      else this.#readField(draft, field, input, depth)
    }
    if (key) this.#checkRequired(draft)
    else this.#complete(draft, parent?.reference)
    if (depth > 1) this.#addPathError(path, this.#namedRecords?.addNested(draft))
    return draft
  }

  #count(model: Model, key: VersionedId | undefined, path: string, depth: number): void {
    this.#records++
    if (depth > MAX_DRAFT_DEPTH)
      throw createLimitError(`Records can be nested at most ${MAX_DRAFT_DEPTH} levels deep`)
    refuseAboveLimit(this.#records, MAX_DRAFT_RECORDS, 'records')
    if (!this.#root) {
      this.#root = { model, key }
      return
    }
    this.#namedRecords ??= new NamedRecordSet(this.refs, this.#root)
    if (depth === 1) this.#addPathError(path, this.#namedRecords.addRoot(model, key))
  }

  #addError(name: string, message: string): void {
    ;(this.#errors ??= new FieldErrors()).add(name, message)
  }

  #addPathError(path: string, error: string | undefined): void {
    if (error !== undefined) this.#addError(path.replace(/\.$/, ''), error)
  }

  #readField(draft: MutableDraft, field: Field, input: unknown, depth: number): void {
    const name = draft.path + field.name
    const kind = draft.model.inputs.get(field.name)
    if (kind === 'inverse') this.#addPathError(name, readInverseClaim(this.visibility, draft, field, input))
    else if (kind === undefined) return
    // Null for a file is how a client sends back a record, and is ignored.
    else if (kind === 'file' && input === null) return
    else if (kind === 'list') draft.lists.set(field.name, this.#readList(draft, field, input, depth))
    else if (input === null) draft.values[field.name] = null
    else if (kind === 'reference') this.#readReference(draft, field, input, depth)
    else {
      if (field.secret === 'password') refuseAboveLimit(++this.#passwords, MAX_DRAFT_PASSWORDS, 'passwords')
      const value = parseValue(field, input)
      if (value instanceof FieldError) this.#addError(name, value.message)
      else draft.values[field.name] = value
    }
  }

  #readReference(draft: MutableDraft, field: Field, input: unknown, depth: number): void {
    const member = this.#readRelated(field, input, {
      path: draft.path + field.name,
      depth,
      parent: undefined,
    })
    if (!member) return
    addReferenceCopy(draft, field, input, draft.path + field.name)
    const id = member.draft ? member.draft.key?.id : member.id
    if (member.draft) draft.related.set(field.name, member.draft)
    if (id !== undefined) draft.values[field.name] = { id }
  }

  #readList(draft: MutableDraft, field: Field, input: unknown, depth: number): DraftMember[] {
    const name = draft.path + field.name
    if (!Array.isArray(input)) {
      this.#addError(name, 'must be a list (an empty list removes all members)')
      return []
    }
    if (input.length > MAX_OWNED_LIST_MEMBERS) {
      this.#addError(name, `must have at most ${MAX_OWNED_LIST_MEMBERS} members`)
      return []
    }
    this.#items += input.length
    refuseAboveLimit(this.#items, MAX_DRAFT_LIST_ITEMS, 'members of lists')
    const parent = { reference: field.relation?.mappedBy, id: draft.key?.id }
    const members = new Map<number | Draft, DraftMember>()
    for (const [index, item] of input.entries()) {
      const member = this.#readRelated(field, item, { path: `${name}[${index}]`, depth, parent })
      if (!member) continue
      addReferenceCopy(draft, field, item, `${name}[${index}]`)
      const identity = member.draft ? (member.draft.key?.id ?? member.draft) : member.id
      if (members.has(identity)) this.#addError(`${name}[${index}]`, 'is in the list twice')
      members.set(identity, member)
    }
    return [...members.values()]
  }

  /** `{id}` links a record, `{id, version, …}` also updates it, and an object without an id creates one. */
  #readRelated(
    { relation }: Field,
    input: unknown,
    { path: name, depth, parent }: DraftPosition,
  ): DraftMember | undefined {
    if (!relation) return undefined
    const target = this.visibility.getTarget(relation)
    const temporaryId = this.refs?.resolveRef(input, target)
    if (temporaryId instanceof FieldError) this.#addError(name, temporaryId.message)
    if (temporaryId !== undefined) return temporaryId instanceof FieldError ? undefined : { id: temporaryId }
    if (!isObject(input)) {
      const example = parent ? 'an object' : 'null or an object'
      this.#addError(
        name,
        `must be ${example}: { "id": 1 } refers to a record, and an object without an id creates one`,
      )
      return undefined
    }
    const { id = null, version = null } = input
    const canBeNested = !target.isReadOnly && !target.isReferenceOnly
    const error = validateRelatedInput(this.visibility, input, target, canBeNested)
    if (error !== undefined) this.#addError(name, error)
    if (error !== undefined || (id !== null && version === null)) {
      return typeof id === 'number' && error === undefined ? { id } : undefined
    }
    const key = id === null ? undefined : { id: id as number, version: version as number }
    return { draft: this.#read(target, { data: input, key }, { path: `${name}.`, depth: depth + 1, parent }) }
  }

  #checkParent(name: string, input: unknown, { id }: DraftParent): void {
    if (input === null || (isObject(input) && input['id'] === id && id !== undefined)) return
    this.#addError(name, 'is set by the list that contains this record: omit it')
  }

  /** Fills in the defaults of a new record. */
  #complete({ model, values, related, path }: MutableDraft, parentReference: string | undefined): void {
    for (const field of model.fields.values()) {
      const kind = model.inputs.get(field.name)
      if (kind !== 'value' && kind !== 'reference') continue
      if (related.has(field.name) || field.name === parentReference) continue
      values[field.name] ??= Object.hasOwn(values, field.name) ? null : getDefaultValue(field, this.now)
      if (values[field.name] !== null || !field.required) continue
      if (!this.visibility.isVisible(model, field))
        throw new VersoError(
          'forbidden',
          `You may not create a ${model.name}: it has required fields that you may not write; nothing was changed`,
        )
      this.#addError(path + field.name, 'is required')
    }
  }

  #checkRequired({ model, values, path }: MutableDraft): void {
    for (const [name, value] of Object.entries(values)) {
      if (value === null && model.fields.get(name)?.required) this.#addError(path + name, 'is required')
    }
  }

  #findField(model: Model, name: string): Field | undefined {
    const field = model.fields.get(name)
    return field && this.visibility.isVisible(model, field) ? field : undefined
  }

  #describeUnknownField(model: Model, name: string): string {
    const fields = [...model.fields.values()].filter((field) => isWritable(field))
    const known = fields.filter((field) => this.visibility.isVisible(model, field)).map((field) => field.name)
    return `is not a field of ${model.name}${this.#errors?.isFull ? '' : didYouMean(name, known)}`
  }
}

function refuseAboveLimit(count: number, limit: number, what: string): void {
  if (count > limit) throw createLimitError(`At most ${limit} ${what} can be written in one request`)
}

function createLimitError(message: string): VersoError {
  return new VersoError('bad-request', `${message}; nothing was changed`)
}
