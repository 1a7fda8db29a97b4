import type { CommitEvents } from './database.js'

/** Listeners for commits. Each engine detects commits of other processes in its own way. */
export abstract class CommitNotifier implements CommitEvents {
  readonly #listeners = new Set<() => void>()

  listen(listener: () => void): () => void {
    if (this.#listeners.size === 0) this.startListening()
    // A new closure for each call, so that the same function can be added twice.
    const entry = () => {
      listener()
    }
    this.#listeners.add(entry)
    return () => {
      if (this.#listeners.delete(entry) && this.#listeners.size === 0) this.stopListening()
    }
  }

  /** Must be called after each commit of this process. */
  publish(): void {
    this.emit()
  }

  protected emit(): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener()
      } catch (error) {
        // The commit is done: a defect of a listener must not make its write fail.
        process.emitWarning(error instanceof Error ? error : String(error))
      }
    }
  }

  /** Starts to watch for commits of other processes. */
  protected abstract startListening(): void
  protected abstract stopListening(): void
}
