import type { CommitEvents } from './database.js'

/** Who wants to know of commits; each engine hears of them in its own way. */
export abstract class CommitNotifier implements CommitEvents {
  readonly #listeners = new Set<() => void>()

  listen(listener: () => void): () => void {
    if (this.#listeners.size === 0) this.startListening()
    // One of its own, so that the same function may listen twice.
    const own = () => {
      listener()
    }
    this.#listeners.add(own)
    return () => {
      if (this.#listeners.delete(own) && this.#listeners.size === 0) this.stopListening()
    }
  }

  /** After a commit of this process. */
  abstract publish(): void

  protected emit(): void {
    for (const listener of [...this.#listeners]) listener()
  }

  /** From now on commits of other processes count, too. */
  protected abstract startListening(): void
  protected abstract stopListening(): void
}
