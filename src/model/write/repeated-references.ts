// Finds records that a request names with their versions more than once. A request may change each record in one place only.
import type { Model } from '../definition/model.js'
import type { Refs } from './refs.js'
import { isSameValue, type Values } from '../values/value.js'

/** The part of a draft that this check needs. */
interface NestedDraft {
  readonly model: Model
  readonly key: { readonly id: number } | undefined
  readonly values: Values
  readonly lists: ReadonlyMap<string, unknown>
  isDuplicate?: boolean
}

export class NamedRecordSet {
  /** The first occurrence of each record. A root record always counts as changed, so any other occurrence is a second change. */
  readonly #known = new Map<string, NestedDraft | 'root'>()

  /** `root` is the first record of the request. */
  constructor(
    private readonly refs: Refs | undefined,
    root: Pick<NestedDraft, 'model' | 'key'>,
  ) {
    this.addRoot(root.model, root.key)
  }

  /** Adds a top-level record. Returns an error message if the request names it already. */
  addRoot(model: Model, key: NestedDraft['key']): string | undefined {
    const identity = this.#formatIdentity(model, key)
    if (identity === undefined) return undefined
    const isKnown = this.#known.has(identity)
    this.#known.set(identity, 'root')
    return isKnown ? describeRepeatedChange(identity) : undefined
  }

  /**
   * Adds a related record. A form sends the same related record in every place that shows it, so equal values are no second change. The
   * transaction decides whether the values change anything. Occurrences with lists are an error, because a list is always replaced.
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

  /** Returns undefined for a pending record: a batch may change it several times, each time with the next version. */
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
  return `changes ${identity}, which this request already changes in another place`
}

/** The message for a record that occurs several times and changes in one of the places. */
export function describeAmbiguousChange(identity: string): string {
  return `changes ${identity}, which this request contains in another place, too: change it in one place and send only its id in the others`
}
