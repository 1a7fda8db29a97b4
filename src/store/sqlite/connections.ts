// The reading and the writing connection of a process to its database file, and the write health of the file.
import { statSync } from 'node:fs'
import { WriteHealth, RESTART_REASON, type OnWriteHealthChange } from '../engine/write-health.js'
import { canWriteDatabase, isImmutableFile, openConnection, SqliteSession } from './connection.js'
import { isEngineError, retryWhileBusy, translateSqliteError, classifyUnwritable } from './errors.js'

const WRITABILITY_POLL_MS = 1_000

export class SqliteSessions {
  readonly writer: SqliteSession
  readonly reader: SqliteSession
  readonly writeHealth: WriteHealth
  readonly #isSameFile: () => boolean
  /** True if the connections were opened as immutable. */
  #isImmutable: boolean
  readonly #wasWritable: boolean
  #timer: NodeJS.Timeout | undefined

  private constructor(
    private readonly file: string,
    [writer, reader, isImmutable]: ConnectionPair,
    onWriteHealthChange: OnWriteHealthChange | undefined,
    private readonly onReopened: () => void,
  ) {
    this.#isSameFile = createFileIdentityCheck(file)
    this.writeHealth = new WriteHealth(onWriteHealthChange)
    this.writer = new SqliteSession(writer, (error) => {
      const kind = classifyUnwritable(error)
      if (kind) this.writeHealth.report(kind, error)
    })
    this.reader = new SqliteSession(reader, (error) => {
      this.reportDamage(error)
    })
    this.#isImmutable = isImmutable
    this.#wasWritable = canWriteDatabase(file)
    if (this.#wasWritable) return
    this.writeHealth.report('read-only')
    this.#timer = setInterval(() => {
      this.probe()
    }, WRITABILITY_POLL_MS)
    this.#timer.unref()
  }

  /** Calls `onReopened` when an immutable file has become writable: other processes must then open it again, too. */
  static async open(
    file: string,
    deadline: number,
    onWriteHealthChange: OnWriteHealthChange | undefined,
    onReopened: () => void,
  ): Promise<SqliteSessions> {
    const connections = await retryWhileBusy(deadline, () => openConnectionPair(file))
    return new SqliteSessions(file, connections, onWriteHealthChange, onReopened)
  }

  /** For errors of readers. A failed read says nothing about writes, unless the file is damaged. */
  reportDamage(error: unknown): void {
    if (classifyUnwritable(error) === 'damaged') this.writeHealth.report('damaged', error)
  }

  /** Must be called before each transaction. */
  requireHealthy(): void {
    // If the file was moved or removed, a write would be lost.
    if (!this.#isSameFile())
      this.writeHealth.report('failed', new Error('the database file was moved or removed'))
    if (!this.writeHealth.unwritable) return
    this.probe()
    this.writeHealth.requireHealthy()
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

  close(): void {
    clearInterval(this.#timer)
    this.reader.close()
    try {
      this.writer.checkpoint()
    } catch (error) {
      // The disk is full, or the file is read-only or damaged. The next start reads the commits from the WAL.
      if (!isEngineError(translateSqliteError(error))) throw error
    } finally {
      this.writer.close()
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
    this.onReopened()
    if (!canWriteDatabase(this.file)) return
    clearInterval(this.#timer)
    this.writeHealth.clearReadOnly()
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
