import { CommitNotifier } from '../engine/commit-listeners.js'

const COMMIT_POLL_MS = 100

/** Commits to one file: those of this process are told at once, those of others are looked for. */
export class SqliteCommitNotifier extends CommitNotifier {
  #timer: NodeJS.Timeout | undefined
  #lastVersion: number | undefined

  constructor(
    /** A number that is another one after every commit of another connection; undefined if it cannot be told just now. */
    private readonly dataVersion: () => number | undefined,
  ) {
    super()
  }

  publish(): void {
    this.emit()
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
