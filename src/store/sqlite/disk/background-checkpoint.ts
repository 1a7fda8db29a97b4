// SQLite copies the WAL into the database file during a commit, and that commit waits. While another process reads one snapshot for long, as a
// backup does, SQLite cannot copy the commits after it. The first commit after the snapshot would then copy all of them, and every write
// would wait. A worker process copies a long WAL instead.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable, Row } from '../../engine/database.js'

/** A commit copies the WAL if it has more frames than this: the default of SQLite. */
const FRAMES_PER_COMMIT = 1_000
/** A commit copies this many in a few milliseconds. */
const MAX_FRAMES_PER_COMMIT = 4_000
const RETRY_MS = 100

/** The connections of this process. The one that writes may be replaced by another one. */
export interface CheckpointedSessions {
  readonly writer: { readonly connection: { exec(sql: string): void } }
  readonly reader: { all(sql: string): Row[] }
}

export interface CheckpointWorker extends Queryable {
  close(): Promise<void>
}

export class BackgroundCheckpoint {
  #running: Promise<void> | undefined
  #worker: CheckpointWorker | undefined
  readonly #closing = new AbortController()

  constructor(
    private readonly sessions: CheckpointedSessions,
    /** The worker needs a connection that may write. */
    private readonly createWorker: () => CheckpointWorker,
  ) {}

  /** Must be called periodically while the process commits. */
  check(): void {
    if (this.#running || this.#closing.signal.aborted) return
    const [row] = this.sessions.reader.all('pragma wal_checkpoint(noop)')
    if (readProgress(row).left <= MAX_FRAMES_PER_COMMIT) return
    this.#running = this.#copy().finally(() => {
      this.#running = undefined
    })
  }

  /** Resolves when commits copy the WAL again. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#worker?.close()
    await this.#running
  }

  async #copy(): Promise<void> {
    this.#setFramesPerCommit(0)
    const worker = this.createWorker()
    this.#worker = worker
    try {
      await copyUntilShort(worker, this.#closing.signal)
    } catch {
      // The database closes, the worker was killed, or the disk has failed: the next commit copies, or reports the error.
    } finally {
      this.#worker = undefined
      await worker.close()
      this.#setFramesPerCommit(FRAMES_PER_COMMIT)
    }
  }

  /** 0: commits copy nothing. */
  #setFramesPerCommit(frames: number): void {
    this.sessions.writer.connection.exec(`pragma wal_autocheckpoint = ${frames}`)
  }
}

async function copyUntilShort(worker: Queryable, signal: AbortSignal): Promise<void> {
  let before: Progress | undefined
  for (;;) {
    const [row] = await worker.all('pragma wal_checkpoint(passive)')
    const now = readProgress(row)
    if (now.left <= FRAMES_PER_COMMIT) return
    const isBlocked = before === undefined || now.copied === before.copied || now.isBusy
    // Writers are faster than the copy. Commits that copy slow them down.
    if (!isBlocked && before !== undefined && now.left > before.left / 2) return
    before = now
    if (isBlocked) await sleep(RETRY_MS, undefined, { ref: false, signal })
  }
}

interface Progress {
  readonly isBusy: boolean
  readonly copied: number
  /** The number of frames that are not in the database file yet. */
  readonly left: number
}

/** If another process copies at this time, SQLite returns no numbers. */
function readProgress(row: Row | undefined): Progress {
  const [busy, log, copied] = [row?.['busy'], row?.['log'], row?.['checkpointed']].map(Number)
  const isBusy = busy !== 0 || (log ?? 0) < 0
  return { isBusy, copied: copied ?? 0, left: isBusy ? Infinity : (log ?? 0) - (copied ?? 0) }
}
