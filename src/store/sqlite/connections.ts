// The two connections of a process to its database file, and whether the file takes writes.
import { statSync } from 'node:fs'
import { WriteHealth, RESTART_REASON, type OnWriteHealthChange } from '../engine/database-condition.js'
import { canWriteDatabase, isImmutableFile } from './file-access.js'
import { openConnection, SqliteSession } from './connection.js'
import { isEngineError, retryWhileBusy, translateSqliteError, classifyUnwritable } from './errors.js'

const WRITABILITY_POLL_MS = 1_000

export class SqliteSessions {
  readonly writer: SqliteSession
  readonly reader: SqliteSession
  readonly writeHealth: WriteHealth
  readonly #isSameFile: () => boolean
  /** Whether the connections take the file as one that nobody changes. */
  #isImmutable: boolean
  readonly #wasWritable: boolean
  #timer: NodeJS.Timeout | undefined

  private constructor(
    private readonly file: string,
    [writer, reader, isFrozenNow]: ConnectionPair,
    onCondition: OnWriteHealthChange | undefined,
    private readonly onReopened: () => void,
  ) {
    this.#isSameFile = createFileIdentityCheck(file)
    this.writeHealth = new WriteHealth(onCondition)
    this.writer = new SqliteSession(writer, (error) => {
      const trouble = classifyUnwritable(error)
      if (trouble) this.writeHealth.report(trouble, error)
    })
    this.reader = new SqliteSession(reader, (error) => {
      this.reportDamage(error)
    })
    this.#isImmutable = isFrozenNow
    this.#wasWritable = canWriteDatabase(file)
    if (this.#wasWritable) return
    this.writeHealth.report('read-only')
    this.#timer = setInterval(() => {
      this.probe()
    }, WRITABILITY_POLL_MS)
    this.#timer.unref()
  }

  /** `onThawed` is called when a file that could not be written can be: whoever else has it open must open it again. */
  static async open(
    file: string,
    deadline: number,
    onCondition: OnWriteHealthChange | undefined,
    onReopened: () => void,
  ): Promise<SqliteSessions> {
    const connections = await retryWhileBusy(deadline, () => openConnectionPair(file))
    return new SqliteSessions(file, connections, onCondition, onReopened)
  }

  /** By whoever reads. Only the writer knows whether the file can be written, and a failed read is no failed write. */
  reportDamage(error: unknown): void {
    if (classifyUnwritable(error) === 'damaged') this.writeHealth.report('damaged', error)
  }

  /** To be called before each transaction. */
  requireHealthy(): void {
    // Somebody has moved or removed the file: a write would go nowhere.
    if (!this.#isSameFile())
      this.writeHealth.report('failed', new Error('the database file is not where it was'))
    if (!this.writeHealth.unwritable) return
    this.probe()
    this.writeHealth.requireHealthy()
  }

  /** Looks whether a file that could not be written can be written now. */
  probe(): void {
    if (this.writeHealth.unwritable?.kind !== 'read-only') return
    const isMutableAgain = this.#isImmutable && !isImmutableFile(this.file)
    if (isMutableAgain && this.#isSameFile()) this.#reopen()
    // The lock table of a WAL stays read-only until the last connection of the process has ended.
    else if (!this.#wasWritable && canWriteDatabase(this.file))
      this.writeHealth.report('read-only', undefined, RESTART_REASON)
  }

  close(): void {
    clearInterval(this.#timer)
    this.reader.close()
    try {
      this.writer.checkpoint()
    } catch (error) {
      // On a full, read-only or damaged file. The next start finds everything in the WAL.
      if (!isEngineError(translateSqliteError(error))) throw error
    } finally {
      this.writer.close()
    }
  }

  /** Nothing is in a transaction: those of the reader end in the turn of the event loop in which they begin. */
  #reopen(): void {
    if (this.writer.connection.isTransaction) return
    let connections: ConnectionPair
    try {
      connections = openConnectionPair(this.file)
    } catch (error) {
      this.reportDamage(translateSqliteError(error))
      return // The next look tries again.
    }
    const [writer, reader, isFrozenNow] = connections
    this.writer.replaceConnection(writer)
    this.reader.replaceConnection(reader)
    this.#isImmutable = isFrozenNow
    this.onReopened()
    if (!canWriteDatabase(this.file)) return
    clearInterval(this.#timer)
    this.writeHealth.clearReadOnly()
  }
}

type ConnectionPair = readonly [
  writer: ReturnType<typeof openConnection>,
  reader: ReturnType<typeof openConnection>,
  isFrozen: boolean,
]

function openConnectionPair(file: string): ConnectionPair {
  const isFrozenNow = isImmutableFile(file)
  const writer = openConnection(file, false)
  try {
    return [writer, openConnection(file, true), isFrozenNow]
  } catch (error) {
    writer.close()
    throw error
  }
}

/** Whether the file that was opened is still the one at its path. */
function createFileIdentityCheck(file: string): () => boolean {
  const { ino, dev } = statSync(file)
  return () => {
    const now = statSync(file, { throwIfNoEntry: false })
    return now?.ino === ino && now.dev === dev
  }
}
