// Names that a batch gives to records that it is going to create.
import { FieldError } from '../values/field.js'
import type { Model } from '../definition/model.js'
import { getReferenceId, isObject, type Values } from '../values/value.js'
import { mapDrafts, type Draft, type DraftMember } from './draft.js'

const REF_PATTERN = /^[A-Za-z0-9_.-]{1,64}$/

export function isRefName(name: unknown): name is string {
  return typeof name === 'string' && REF_PATTERN.test(name)
}

/** True for a reference by name such as `{ "$ref": "a" }`. */
export function isRef(input: unknown): input is { readonly $ref: unknown } {
  return isObject(input) && Object.hasOwn(input, '$ref')
}

/** A record that an earlier request of the batch creates. */
export interface PendingRecord {
  readonly ref: string
  readonly model: Model
}

/** Drafts contain a negative temporary id for each pending record. Clients cannot send such an id. */
export class Refs {
  readonly #temporaryIds = new Map<string, number>()
  readonly #pendingRecords = new Map<number, PendingRecord>()

  get isEmpty(): boolean {
    return this.#pendingRecords.size === 0
  }

  add(ref: string, model: Model): void {
    const temporaryId = -1 - this.#pendingRecords.size
    this.#temporaryIds.set(ref, temporaryId)
    this.#pendingRecords.set(temporaryId, { ref, model })
  }

  /** Throws for a ref that was not added. */
  getTemporaryId(ref: string): number {
    const temporaryId = this.#temporaryIds.get(ref)
    if (temporaryId === undefined) throw new Error(`unknown ref "${ref}"`)
    return temporaryId
  }

  /** Returns undefined for the id of a stored record. */
  findPending(id: number): PendingRecord | undefined {
    return this.#pendingRecords.get(id)
  }

  /** Returns the temporary id of a reference by name, or undefined if the input is none. */
  resolveRef(input: unknown, target: Model): number | FieldError | undefined {
    const reference = isObject(input) && isRef(input['id']) ? input['id'] : input
    if (!isRef(reference)) return undefined
    const { $ref: ref } = reference
    const isOnlyRef = [reference, input].every((each) => Object.keys(each as object).length === 1)
    if (!isRefName(ref) || !isOnlyRef)
      return new FieldError('must be a reference such as { "$ref": "a" }, without other keys')
    const temporaryId = this.#temporaryIds.get(ref)
    const pending = temporaryId === undefined ? undefined : this.#pendingRecords.get(temporaryId)
    if (!pending) return new FieldError(`refers to "${ref}", which is not the ref of an earlier request`)
    if (pending.model === target) return temporaryId
    return new FieldError(`refers to "${ref}", which is a ${pending.model.name}, not a ${target.name}`)
  }
}

/** Replaces the temporary ids with the ids of the records that the batch has created. */
export function replaceRefsWithIds(draft: Draft, refs: Refs, ids: ReadonlyMap<string, number>): Draft {
  return replaceRefs(draft, refs, ({ ref }) => {
    const id = ids.get(ref)
    if (id === undefined) throw new Error(`"${ref}" must be created before it is referred to`)
    return { id }
  })
}

/** Replaces the temporary ids with `{ $ref }` as the client sent it, for validation before the batch creates anything. */
export function replaceRefsWithDrafts(draft: Draft, refs: Refs): Draft {
  const nothing = { key: undefined, related: new Map(), lists: new Map(), copies: new Map(), path: '' }
  return replaceRefs(draft, refs, ({ ref, model }) => ({
    draft: { ...nothing, model, values: { $ref: ref } },
  }))
}

function replaceRefs(draft: Draft, refs: Refs, createMember: (pending: PendingRecord) => DraftMember): Draft {
  if (refs.isEmpty) return draft
  const replace = (member: DraftMember): DraftMember => {
    const pending = member.draft ? undefined : refs.findPending(member.id)
    return pending ? createMember(pending) : member
  }
  return mapDrafts(draft, (each) => {
    const own = each.key && replace({ id: each.key.id })
    const key = each.key && own && !own.draft ? { id: own.id, version: each.key.version } : each.key
    const lists = [...each.lists].map(([name, members]) => [name, members.map(replace)] as const)
    return { ...each, key, values: replaceReferences(each, replace), lists: new Map(lists) }
  })
}

function replaceReferences({ model, values }: Draft, replace: (member: DraftMember) => DraftMember): Values {
  const replaced: Values = { ...values }
  for (const [name, value] of Object.entries(values)) {
    if (value === null || !model.fields.get(name)?.relation) continue
    const member = replace({ id: getReferenceId(value) })
    replaced[name] = member.draft ? member.draft.values : { id: member.id }
  }
  return replaced
}
