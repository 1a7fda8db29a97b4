// Records that are yet to be made, by the names that a batch gives them.
import { Fault } from '../values/field-types.js'
import type { Model } from '../definition/model.js'
import { isObject } from '../values/value.js'

const REF = /^[A-Za-z0-9_.-]{1,64}$/

export function isRefName(name: unknown): name is string {
  return typeof name === 'string' && REF.test(name)
}

/** Whether something is called by a ref, `{ "$ref": "a" }`, and not by its id. */
export function isRef(input: unknown): input is { readonly $ref: unknown } {
  return isObject(input) && Object.hasOwn(input, '$ref')
}

/** What an earlier request makes. */
export interface Made {
  readonly ref: string
  readonly model: Model
}

/** Until they have ids, each of them stands in Drafts under a number below 0, which no client can send. */
export class Refs {
  readonly #standIns = new Map<string, number>()
  readonly #made = new Map<number, Made>()

  get areNone(): boolean {
    return this.#made.size === 0
  }

  add(ref: string, model: Model): void {
    const standIn = -1 - this.#made.size
    this.#standIns.set(ref, standIn)
    this.#made.set(standIn, { ref, model })
  }

  /** Of one that was added. */
  standInOf(ref: string): number {
    const standIn = this.#standIns.get(ref)
    if (standIn === undefined) throw new Error(`"${ref}" is no ref`)
    return standIn
  }

  /** Undefined for an id of a record that is there. */
  madeAs(id: number): Made | undefined {
    return this.#made.get(id)
  }

  /** Undefined if nothing is called by a ref there. */
  standInFor(input: unknown, target: Model): number | Fault | undefined {
    const called = isObject(input) && isRef(input['id']) ? input['id'] : input
    if (!isRef(called)) return undefined
    const { $ref: ref } = called
    const isBare = [called, input].every((each) => Object.keys(each as object).length === 1)
    if (!isRefName(ref) || !isBare) return new Fault('must be such as { "$ref": "a" }, and hold nothing else')
    const standIn = this.#standIns.get(ref)
    const made = standIn === undefined ? undefined : this.#made.get(standIn)
    if (!made) return new Fault(`names "${ref}", which is no ref of an earlier request`)
    if (made.model === target) return standIn
    return new Fault(`names "${ref}", which is a ${made.model.name} and no ${target.name}`)
  }
}
