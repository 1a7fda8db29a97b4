import { CommitNotifier } from '../engine/commit-notifier.js'

const COMMIT_POLL_MS = 100

/** Signals commits to one database file: those of this process at once, those of other processes by polling. */
export class SqliteCommitNotifier extends CommitNotifier {
  #timer: NodeJS.Timeout | undefined
  #lastVersion: number | undefined

  constructor(
    /** A number that changes with every commit of another connection; undefined if it cannot be read now. */
    private readonly dataVersion: () => number | undefined,
  ) {
    super()
  }

  protected startListening(): void {
    this.#lastVersion = this.dataVersion()
    this.#timer = setInterval(() => {
      const now = this.dataVersion()
      if (now !== undefined && now === this.#lastVersion) return
      this.#lastVersion = now
      this.emit()
    }, COMMIT_POLL_MS)
    this.#timer.unref()
  }

  protected stopListening(): void {
    clearInterval(this.#timer)
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
