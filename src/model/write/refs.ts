// Records that are yet to be made, by the names that a batch gives them.
import { FieldError } from '../values/field-types.js'
import type { Model } from '../definition/model.js'
import { isObject } from '../values/value.js'

const REF_PATTERN = /^[A-Za-z0-9_.-]{1,64}$/

export function isRefName(name: unknown): name is string {
  return typeof name === 'string' && REF_PATTERN.test(name)
}

/** Whether something is called by a ref, `{ "$ref": "a" }`, and not by its id. */
export function isRef(input: unknown): input is { readonly $ref: unknown } {
  return isObject(input) && Object.hasOwn(input, '$ref')
}

/** What an earlier request makes. */
export interface PendingRecord {
  readonly ref: string
  readonly model: Model
}

/** Until they have ids, each of them stands in Drafts under a number below 0, which no client can send. */
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

  /** Of one that was added. */
  getTemporaryId(ref: string): number {
    const temporaryId = this.#temporaryIds.get(ref)
    if (temporaryId === undefined) throw new Error(`"${ref}" is no ref`)
    return temporaryId
  }

  /** Undefined for an id of a record that is there. */
  findPending(id: number): PendingRecord | undefined {
    return this.#pendingRecords.get(id)
  }

  /** Undefined if nothing is called by a ref there. */
  resolveRef(input: unknown, target: Model): number | FieldError | undefined {
    const reference = isObject(input) && isRef(input['id']) ? input['id'] : input
    if (!isRef(reference)) return undefined
    const { $ref: ref } = reference
    const isBare = [reference, input].every((each) => Object.keys(each as object).length === 1)
    if (!isRefName(ref) || !isBare)
      return new FieldError('must be such as { "$ref": "a" }, and hold nothing else')
    const temporaryId = this.#temporaryIds.get(ref)
    const pending = temporaryId === undefined ? undefined : this.#pendingRecords.get(temporaryId)
    if (!pending) return new FieldError(`names "${ref}", which is no ref of an earlier request`)
    if (pending.model === target) return temporaryId
    return new FieldError(`names "${ref}", which is a ${pending.model.name} and no ${target.name}`)
  }
}
