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
    if (seq <= this.#seq) this.#report('feed-order', `change ${seq} came after change ${this.#seq}`)
    this.#seq = Math.max(this.#seq, seq)
    if (this.#removed.has(id)) {
      this.#report('feed-order', `record ${id}: version ${version} came after its delete`)
      return
    }
    const before = this.#states.get(id)
    // A record of another writer, created before the run.
    if (!before && action !== 'create') return
    if (before && version <= before.version) {
      this.#report('feed-order', `record ${id}: version ${version} came after version ${before.version}`)
      return
    }
    if (version !== (before?.version ?? -1) + 1)
      this.#report(
        'feed-gap',
        `record ${id}: version ${version} came after ${before ? `version ${before.version}` : 'no other version'}`,
      )
    if (action === 'delete') {
      this.#states.delete(id)
      this.#removed.add(id)
      return
    }
    if (before && change.before && !hasSameTokens(before.tokens, change.before))
      this.#report(
        'feed-gap',
        `record ${id}: the "before" values of version ${version} are not those of version ${before.version}`,
      )
    this.#states.set(id, { version, tokens: change.after ?? before?.tokens ?? [] })
  }

  /** Returns true if the replay has reached every version in the table. */
  isComplete(table: ReadonlyMap<string, ObservedState>): boolean {
    return [...table].every(([id, { version }]) => (this.#states.get(id)?.version ?? -1) >= version)
  }

  /** `own` holds the records of this run; other writers may use the same model. */
  finish(table: ReadonlyMap<string, ObservedState>, own: ReadonlySet<string>): Violation[] {
    for (const [id, { version, tokens }] of table) {
      const replayed = this.#states.get(id)
      if (replayed?.version !== version || !hasSameTokens(replayed.tokens, tokens))
        this.#report(
          'feed-table',
          `record ${id} is at version ${version}; replayed from the feed: ${replayed ? `version ${replayed.version}` : 'none'}${replayed?.version === version ? ' with other tokens' : ''}`,
        )
    }
    for (const id of this.#states.keys())
      if (own.has(id) && !table.has(id))
        this.#report('feed-table', `record ${id} does not exist, but the feed has no delete of it`)
    return this.#violations
  }

  #report(rule: Violation['rule'], message: string): void {
    this.#violations.push({ rule, message })
  }
}

function hasSameTokens(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((token, index) => token === right[index])
}
