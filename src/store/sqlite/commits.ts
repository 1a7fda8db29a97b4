import { CommitListeners } from '../engine/commit-listeners.js'

const LOOK_EVERY_MS = 100

/** Commits to one file: those of this process are told at once, those of others are looked for. */
export class SqliteCommits extends CommitListeners {
  #timer: NodeJS.Timeout | undefined
  #seen: number | undefined

  constructor(
    /** A number that is another one after every commit of another connection; undefined if it cannot be told just now. */
    private readonly dataVersion: () => number | undefined,
  ) {
    super()
  }

  announce(): void {
    this.tell()
  }

  protected startHearing(): void {
    this.#seen = this.dataVersion()
    this.#timer = setInterval(() => {
      const now = this.dataVersion()
      if (now !== undefined && now === this.#seen) return
      this.#seen = now
      this.tell()
    }, LOOK_EVERY_MS)
    this.#timer.unref()
  }

  protected stopHearing(): void {
    clearInterval(this.#timer)
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
