// The records that a request names with their versions: each is changed in one place at most.
import type { Model } from '../definition/model.js'
import type { Refs } from './refs.js'
import { isSameValue, type Values } from '../values/value.js'

/** A record inside of another, as far as it matters here. */
interface NestedDraft {
  readonly model: Model
  readonly key: { readonly id: number } | undefined
  readonly values: Values
  readonly lists: ReadonlyMap<string, unknown>
  isDuplicate?: boolean
}

export class NamedRecordSet {
  /** Those that the request is about are changed always: whatever else is said of them is a second change. */
  readonly #known = new Map<string, NestedDraft | 'root'>()

  constructor(private readonly refs: Refs | undefined) {}

  /** What is wrong with a record that the request is about, or undefined. */
  addRoot(model: Model, key: NestedDraft['key']): string | undefined {
    const identity = this.#formatIdentity(model, key)
    if (identity === undefined) return undefined
    const isKnown = this.#known.has(identity)
    this.#known.set(identity, 'root')
    return isKnown ? describeRepeatedChange(identity) : undefined
  }

  /**
   * The same for one inside of it. A form sends the same neighbour wherever it shows it: as long as nothing of it changes, that is no second
   * change. Only the transaction knows whether something does, unless they contradict each other. Lists are replaced, so they are never sent twice.
   */
  addNested(draft: NestedDraft): string | undefined {
    const identity = this.#formatIdentity(draft.model, draft.key)
    const first = identity === undefined ? undefined : this.#known.get(identity)
    if (identity === undefined) return undefined
    if (first === undefined) this.#known.set(identity, draft)
    else if (first === 'root' || !areCompatible(first, draft)) return describeRepeatedChange(identity)
    else first.isDuplicate = draft.isDuplicate = true
    return undefined
  }

  /** What stands for one that is yet to be made may be changed again, under its next version. */
  #formatIdentity({ name }: Model, key: NestedDraft['key']): string | undefined {
    return !key || this.refs?.findPending(key.id) ? undefined : `${name} ${key.id}`
  }
}

function areCompatible(first: NestedDraft, second: NestedDraft): boolean {
  if (first.lists.size > 0 || second.lists.size > 0) return false
  return Object.entries(second.values).every(([name, value]) => {
    const known = first.values[name]
    return known === undefined || isSameValue(known, value)
  })
}

function describeRepeatedChange(identity: string): string {
  return `changes ${identity}, which is changed in this request already`
}

/** For a record that stands in several places and is changed in one of them. */
export function describeAmbiguousChange(identity: string): string {
  return `changes ${identity}, which this request names in another place too: change it in one place, and send no more than its id in the others`
}
