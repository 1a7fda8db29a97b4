// The records that a request names with their versions: each is changed in one place at most.
import type { Model } from '../definition/model.js'
import type { Refs } from './refs.js'
import { sameValue, type Values } from '../values/value.js'

/** A record inside of another, as far as it matters here. */
interface Inside {
  readonly model: Model
  readonly key: { readonly id: number } | undefined
  readonly values: Values
  readonly lists: ReadonlyMap<string, unknown>
  isRepeated?: boolean
}

export class NamedRecords {
  /** Those that the request is about are changed always: whatever else is said of them is a second change. */
  readonly #known = new Map<string, Inside | 'root'>()

  constructor(private readonly refs: Refs | undefined) {}

  /** What is wrong with a record that the request is about, or undefined. */
  addRoot(model: Model, key: Inside['key']): string | undefined {
    const identity = this.#identityOf(model, key)
    if (identity === undefined) return undefined
    const isKnown = this.#known.has(identity)
    this.#known.set(identity, 'root')
    return isKnown ? changedAlready(identity) : undefined
  }

  /**
   * The same for one inside of it. A form sends the same neighbour wherever it shows it: as long as nothing of it changes, that is no second
   * change. Only the transaction knows whether something does, unless they contradict each other. Lists are replaced, so they are never sent twice.
   */
  addInside(draft: Inside): string | undefined {
    const identity = this.#identityOf(draft.model, draft.key)
    const first = identity === undefined ? undefined : this.#known.get(identity)
    if (identity === undefined) return undefined
    if (first === undefined) this.#known.set(identity, draft)
    else if (first === 'root' || !mayBothStand(first, draft)) return changedAlready(identity)
    else first.isRepeated = draft.isRepeated = true
    return undefined
  }

  /** What stands for one that is yet to be made may be changed again, under its next version. */
  #identityOf({ name }: Model, key: Inside['key']): string | undefined {
    return !key || this.refs?.madeAs(key.id) ? undefined : `${name} ${key.id}`
  }
}

function mayBothStand(one: Inside, other: Inside): boolean {
  if (one.lists.size > 0 || other.lists.size > 0) return false
  return Object.entries(other.values).every(([name, value]) => {
    const first = one.values[name]
    return first === undefined || sameValue(first, value)
  })
}

function changedAlready(identity: string): string {
  return `changes ${identity}, which is changed in this request already`
}

/** For a record that stands in several places and is changed in one of them. */
export function changedAmongOthers(identity: string): string {
  return `changes ${identity}, which this request names in another place too: change it in one place, and send no more than its id in the others`
}
