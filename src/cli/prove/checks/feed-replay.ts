// Replays the changes of the feed and compares the result with the final table.
import type { FeedChange, ObservedState } from '../adapters/adapter.js'
import type { Violation } from './violation.js'

export class FeedReplay {
  /** Number of changes replayed. */
  count = 0
  readonly #violations: Violation[] = []
  readonly #states = new Map<string, ObservedState>()
  readonly #removed = new Set<string>()
  #seq = -Infinity

  add(change: FeedChange): void {
    this.count++
    const { seq, id, version, action } = change
    if (seq <= this.#seq) this.#report('feed-order', `change ${seq} came behind change ${this.#seq}`)
    this.#seq = Math.max(this.#seq, seq)
    if (this.#removed.has(id)) {
      this.#report('feed-order', `record ${id}: version ${version} came behind its delete`)
      return
    }
    const before = this.#states.get(id)
    // A record of another writer, created before the run.
    if (!before && action !== 'create') return
    if (before && version <= before.version) {
      this.#report('feed-order', `record ${id}: version ${version} came behind version ${before.version}`)
      return
    }
    if (version !== (before?.version ?? -1) + 1)
      this.#report('feed-gap', `record ${id}: version ${version} came behind ${before?.version ?? 'nothing'}`)
    if (action === 'delete') {
      this.#states.delete(id)
      this.#removed.add(id)
      return
    }
    if (before && change.before && !hasSameTokens(before.tokens, change.before))
      this.#report('feed-gap', `record ${id}: version ${version} was made from something else`)
    this.#states.set(id, { version, tokens: change.after ?? before?.tokens ?? [] })
  }

  /** Returns true if the replay has reached every version in the table. */
  isComplete(table: ReadonlyMap<string, ObservedState>): boolean {
    return [...table].every(([id, { version }]) => (this.#states.get(id)?.version ?? -1) >= version)
  }

  /** `own` holds the records of this run; other writers may use the same model. */
  finish(table: ReadonlyMap<string, ObservedState>, own: ReadonlySet<string>): Violation[] {
    for (const [id, { version, tokens }] of table) {
      const folded = this.#states.get(id)
      if (folded?.version !== version || !hasSameTokens(folded.tokens, tokens))
        this.#report(
          'feed-table',
          `record ${id} is at version ${version}, folded from the feed at ${folded?.version ?? 'none'}`,
        )
    }
    for (const id of this.#states.keys())
      if (own.has(id) && !table.has(id))
        this.#report('feed-table', `record ${id} is gone, and the feed does not say so`)
    return this.#violations
  }

  #report(rule: Violation['rule'], message: string): void {
    this.#violations.push({ rule, message })
  }
}

function hasSameTokens(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((token, index) => token === right[index])
}
