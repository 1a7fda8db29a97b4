// The reading and the writing connection of a process to its database file, and the write health of the file.
import { statSync } from 'node:fs'
import { WriteHealth, RESTART_REASON, type OnWriteHealthChange } from '../engine/write-health.js'
import { readErrorCode } from '../engine/file-errors.js'
import { BackgroundCheckpoint, type CheckpointWorker } from './disk/background-checkpoint.js'
import { DiskReserve } from './disk/disk-reserve.js'
import type { OpenMarker } from './disk/open-marker.js'
import type { RunningQuickCheck } from './disk/quick-check.js'
import { openConnection, SqliteSession } from './connection.js'
import { canWriteDatabase, isImmutableFile } from './disk/write-access.js'
import { classifyUnwritable, isEngineError, retryWhileBusy, translateSqliteError } from './errors.js'

/** How often a read-only file, the length of the WAL, and the room on the disk, are checked. */
const CHECK_INTERVAL_MS = 500

export interface SessionOptions {
  readonly deadline: number
  readonly diskReserveBytes: number | undefined
  readonly marker: OpenMarker
  readonly onWriteHealthChange: OnWriteHealthChange
  /** Called when an immutable file has become writable: other processes must then open it again, too. */
  readonly onReopened: () => void
  readonly createCheckpointWorker: () => CheckpointWorker
}

export class SqliteSessions {
  readonly writer: SqliteSession
  readonly reader: SqliteSession
  readonly writeHealth: WriteHealth
  /** After an unclean stop. */
  quickCheck: RunningQuickCheck | undefined
  readonly #isSameFile: () => boolean
  /** True if the connections were opened as immutable. */
  #isImmutable: boolean
  readonly #wasWritable: boolean
  readonly #timer: NodeJS.Timeout
  readonly #checkpoint: BackgroundCheckpoint
  #hasCommitted = false
  #checking: Promise<void> | undefined

  private constructor(
    private readonly file: string,
    [writer, reader, isImmutable]: ConnectionPair,
    private readonly reserve: DiskReserve,
    private readonly options: SessionOptions,
  ) {
    this.#isSameFile = createFileIdentityCheck(file)
    this.writeHealth = new WriteHealth(options.onWriteHealthChange)
    this.writer = new SqliteSession(writer, (error) => {
      const kind = classifyUnwritable(error)
      if (kind === 'full') this.#handleFullDisk(error)
      else if (kind) this.writeHealth.report(kind, error)
    })
    this.reader = new SqliteSession(reader, (error) => {
      this.reportDamage(error)
    })
    this.#checkpoint = new BackgroundCheckpoint(this, options.createCheckpointWorker)
    this.#isImmutable = isImmutable
    this.#wasWritable = canWriteDatabase(file)
    if (this.#wasWritable) options.marker.refresh()
    else this.writeHealth.report('read-only')
    this.#timer = setInterval(() => {
      this.probe()
      if (this.writeHealth.unwritable?.kind !== 'read-only') options.marker.refresh()
      this.#checkWal()
      this.#checking ??= this.#checkDisk()
        .catch((error: unknown) => {
          // The folder was removed, its disk failed, or the file is locked or damaged: the next write reports that.
          if (readErrorCode(error) === '' && !isEngineError(translateSqliteError(error))) throw error
        })
        .finally(() => {
          this.#checking = undefined
        })
    }, CHECK_INTERVAL_MS)
    this.#timer.unref()
  }

  static async open(file: string, options: SessionOptions): Promise<SqliteSessions> {
    const reserve = new DiskReserve(file, options.diskReserveBytes)
    const open = async () => {
      const pair = await retryWhileBusy(options.deadline, () => openConnectionPair(file))
      try {
        return new SqliteSessions(file, pair, reserve, options)
      } catch (error) {
        const [writer, reader] = pair
        reader.close()
        writer.close()
        throw error
      }
    }
    try {
      return await open()
    } catch (error) {
      // SQLite needs room for the index of the WAL, also to read.
      if (!reserve.isDiskFull() || !reserve.release()) throw error
      const sessions = await open()
      sessions.writeHealth.report('full', error)
      return sessions
    }
  }

  /** For errors of readers. A failed read says nothing about writes, unless the file is damaged. */
  reportDamage(error: unknown): void {
    if (classifyUnwritable(error) === 'damaged') this.writeHealth.report('damaged', error)
  }

  /** Must be called before each transaction. While the disk is full, only necessary transactions run, in the room of the reserve. */
  requireHealthy(isNecessary: boolean): void {
    // If the file was moved or removed, a write would be lost.
    if (!this.#isSameFile())
      this.writeHealth.report('failed', new Error('the database file was moved or removed'))
    if (!this.writeHealth.unwritable) return
    this.probe()
    this.writeHealth.requireHealthy(isNecessary || !this.reserve.isForNecessaryWrites)
  }

  /** Checks if a read-only file has become writable. */
  probe(): void {
    if (this.writeHealth.unwritable?.kind !== 'read-only') return
    const isMutableAgain = this.#isImmutable && !isImmutableFile(this.file)
    if (isMutableAgain && this.#isSameFile()) this.#reopen()
    // The shared memory of a WAL stays read-only until the process has closed its last connection, so only a restart helps.
    else if (!this.#wasWritable && canWriteDatabase(this.file))
      this.writeHealth.report('read-only', undefined, RESTART_REASON)
  }

  /** A number that changes with every commit of another connection; undefined if it cannot be read now. */
  readDataVersion(): number | undefined {
    try {
      const [row] = this.reader.connection.prepare('pragma data_version').all() as { data_version: number }[]
      return row?.data_version
    } catch {
      return undefined
    }
  }

  /** Must be called after a commit and before it is acknowledged. */
  noteCommit(): void {
    this.#hasCommitted = true
    if (!this.options.marker.hasWal) this.options.marker.refresh()
  }

  /** Waits for a check of the disk that is in progress. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    // If the check has not ended, the marker remains, so that the next start repeats it.
    const isChecked = this.quickCheck?.isEnded !== false
    await this.quickCheck?.stop()
    await this.#checking
    await this.#checkpoint.close()
    this.reader.close()
    try {
      this.#emptyWal()
    } catch (error) {
      // The disk is full, or the file is read-only or damaged. The next start reads the commits from the WAL.
      if (!isEngineError(translateSqliteError(error))) throw error
    } finally {
      this.writer.close()
      const { unwritable } = this.writeHealth
      this.options.marker.close(isChecked && unwritable?.kind !== 'damaged' && unwritable?.kind !== 'failed')
    }
  }

  #emptyWal(): void {
    const { marker } = this.options
    if (this.writeHealth.unwritable?.kind === 'read-only') return
    marker.expectEmptyWal()
    try {
      this.writer.checkpoint()
    } finally {
      marker.refresh()
    }
  }

  /** The reader has no open transaction here: its transactions are synchronous. */
  #reopen(): void {
    if (this.writer.connection.isTransaction) return
    let connections: ConnectionPair
    try {
      connections = openConnectionPair(this.file)
    } catch (error) {
      this.reportDamage(translateSqliteError(error))
      return // The next probe tries again.
    }
    const [writer, reader, isImmutable] = connections
    this.writer.replaceConnection(writer)
    this.reader.replaceConnection(reader)
    this.#isImmutable = isImmutable
    this.options.onReopened()
    if (canWriteDatabase(this.file)) this.writeHealth.clear('read-only')
  }

  #handleFullDisk(error: unknown): void {
    if (!this.reserve.isDiskFull()) return
    this.reserve.release()
    this.writeHealth.report('full', error)
  }

  /** Keeps the reserve. After a full disk, ends that state when there is room. */
  async #checkDisk(): Promise<void> {
    const { unwritable } = this.writeHealth
    if (unwritable && unwritable.kind !== 'full') return
    if (!unwritable && !this.reserve.isKept) return
    if (unwritable) this.#shrinkWal()
    const hasRoom = await this.reserve.keep(unwritable !== undefined, () => this.#countFreePageBytes())
    if (hasRoom) this.writeHealth.clear('full')
    else this.writeHealth.report('full')
  }

  /** A process that only reads never waits for a checkpoint. */
  #checkWal(): void {
    if (!this.#hasCommitted || this.writeHealth.unwritable) return
    this.#hasCommitted = false
    try {
      this.#checkpoint.check()
    } catch (error) {
      // The disk has failed, or the file is damaged: the next write reports that.
      if (!isEngineError(error)) throw error
    }
  }

  /** A large transaction that failed leaves a large WAL. */
  #shrinkWal(): void {
    if (this.writer.connection.isTransaction) return
    try {
      this.#emptyWal()
    } catch (error) {
      // The disk is still full, or another process has locked the file: the next check tries again.
      if (!isEngineError(translateSqliteError(error))) throw error
    }
  }

  #countFreePageBytes(): number {
    const [row] = this.reader.all(
      'select freelist_count * page_size as "bytes" from pragma_freelist_count, pragma_page_size',
    )
    return Number(row?.['bytes'])
  }
}

type ConnectionPair = readonly [
  writer: ReturnType<typeof openConnection>,
  reader: ReturnType<typeof openConnection>,
  isImmutable: boolean,
]

function openConnectionPair(file: string): ConnectionPair {
  const isImmutable = isImmutableFile(file)
  const writer = openConnection(file, false)
  try {
    return [writer, openConnection(file, true), isImmutable]
  } catch (error) {
    writer.close()
    throw error
  }
}

/** The check returns true while the path names the file that was opened. */
function createFileIdentityCheck(file: string): () => boolean {
  const { ino, dev } = statSync(file)
  return () => {
    const now = statSync(file, { throwIfNoEntry: false })
    return now?.ino === ino && now.dev === dev
  }
}
