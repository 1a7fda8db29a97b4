// The two connections of a process to its database file, and whether the file takes writes.
import { statSync } from 'node:fs'
import { Condition, RESTART, type OnCondition } from '../engine/database-condition.js'
import { canWrite, isFrozen } from './file-access.js'
import { connect, Session } from './connection.js'
import { isEngineTrouble, patiently, translate, troubleOf } from './errors.js'

const LOOK_EVERY_MS = 1_000

export class SqliteSessions {
  readonly writer: Session
  readonly reader: Session
  readonly condition: Condition
  readonly #isInPlace: () => boolean
  /** Whether the connections take the file as one that nobody changes. */
  #isFrozen: boolean
  readonly #wasWritable: boolean
  #timer: NodeJS.Timeout | undefined

  private constructor(
    private readonly file: string,
    [writer, reader, isFrozenNow]: Connections,
    onCondition: OnCondition | undefined,
    private readonly onThawed: () => void,
  ) {
    this.#isInPlace = watchPlace(file)
    this.condition = new Condition(onCondition)
    this.writer = new Session(writer, (error) => {
      const trouble = troubleOf(error)
      if (trouble) this.condition.note(trouble, error)
    })
    this.reader = new Session(reader, (error) => {
      this.noticeDamage(error)
    })
    this.#isFrozen = isFrozenNow
    this.#wasWritable = canWrite(file)
    if (this.#wasWritable) return
    this.condition.note('read-only')
    this.#timer = setInterval(() => {
      this.probe()
    }, LOOK_EVERY_MS)
    this.#timer.unref()
  }

  /** `onThawed` is called when a file that could not be written can be: whoever else has it open must open it again. */
  static async open(
    file: string,
    deadline: number,
    onCondition: OnCondition | undefined,
    onThawed: () => void,
  ): Promise<SqliteSessions> {
    const connections = await patiently(deadline, () => connectTwice(file))
    return new SqliteSessions(file, connections, onCondition, onThawed)
  }

  /** By whoever reads. Only the writer knows whether the file can be written, and a failed read is no failed write. */
  noticeDamage(error: unknown): void {
    if (troubleOf(error) === 'damaged') this.condition.note('damaged', error)
  }

  /** To be called before each transaction. */
  requireSound(): void {
    // Somebody has moved or removed the file: a write would go nowhere.
    if (!this.#isInPlace()) this.condition.note('failed', new Error('the database file is not where it was'))
    if (!this.condition.unwritable) return
    this.probe()
    this.condition.requireSound()
  }

  /** Looks whether a file that could not be written can be written now. */
  probe(): void {
    if (this.condition.unwritable?.trouble !== 'read-only') return
    const isThawed = this.#isFrozen && !isFrozen(this.file)
    if (isThawed && this.#isInPlace()) this.#reopen()
    // The lock table of a WAL stays read-only until the last connection of the process has ended.
    else if (!this.#wasWritable && canWrite(this.file)) this.condition.note('read-only', undefined, RESTART)
  }

  close(): void {
    clearInterval(this.#timer)
    this.reader.close()
    try {
      this.writer.checkpoint()
    } catch (error) {
      // On a full, read-only or damaged file. The next start finds everything in the WAL.
      if (!isEngineTrouble(translate(error))) throw error
    } finally {
      this.writer.close()
    }
  }

  /** Nothing is in a transaction: those of the reader end in the turn of the event loop in which they begin. */
  #reopen(): void {
    if (this.writer.connection.isTransaction) return
    let connections: Connections
    try {
      connections = connectTwice(this.file)
    } catch (error) {
      this.noticeDamage(translate(error))
      return // The next look tries again.
    }
    const [writer, reader, isFrozenNow] = connections
    this.writer.replace(writer)
    this.reader.replace(reader)
    this.#isFrozen = isFrozenNow
    this.onThawed()
    if (!canWrite(this.file)) return
    clearInterval(this.#timer)
    this.condition.clearReadOnly()
  }
}

type Connections = readonly [
  writer: ReturnType<typeof connect>,
  reader: ReturnType<typeof connect>,
  isFrozen: boolean,
]

function connectTwice(file: string): Connections {
  const isFrozenNow = isFrozen(file)
  const writer = connect(file, false)
  try {
    return [writer, connect(file, true), isFrozenNow]
  } catch (error) {
    writer.close()
    throw error
  }
}

/** Whether the file that was opened is still the one at its path. */
function watchPlace(file: string): () => boolean {
  const { ino, dev } = statSync(file)
  return () => {
    const now = statSync(file, { throwIfNoEntry: false })
    return now?.ino === ino && now.dev === dev
  }
}
