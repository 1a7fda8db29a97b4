// The embedded engine: one writer that commits in groups, a reader beside it.
import { chmodSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync } from '@photostructure/sqlite'
import { Refusal } from '../errors.js'
import {
  UniqueViolation,
  type Database,
  type Queryable,
  type Row,
  type SqlValue,
  type Transaction,
} from './database.js'
import { sqliteDialect } from './sqlite-dialect.js'

type Connection = InstanceType<typeof DatabaseSync>
type Statement = ReturnType<Connection['prepare']>

const MAX_GROUP = 256
const MAX_WAITING = 10_000
const MAX_STATEMENTS = 500
const PATIENCE_MS = 5_000
const RETRY_MS = [1, 2, 5, 10, 20, 50] as const

const SQLITE_BUSY = 5
const SQLITE_IOERR = 10
const SQLITE_FULL = 13
const SQLITE_CONSTRAINT_UNIQUE = 2067
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555
const SQLITE_IOERR_SHMSIZE = 4874

interface Member {
  readonly work: (tx: Transaction) => Promise<unknown>
  readonly deadline: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

type Outcome = { readonly member: Member } & ({ readonly value: unknown } | { readonly error: unknown })

export interface SqliteOptions {
  /** Called once when the disk has failed: what the engine believes and what the disk holds may differ, only a restart settles it. */
  readonly onBroken?: (error: unknown) => void
}

export async function openSqlite(file: string, options: SqliteOptions = {}): Promise<Database> {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  const deadline = Date.now() + PATIENCE_MS
  const writer = await patiently(deadline, () => connect(file, false))
  try {
    chmodSync(file, 0o600)
    const reader = await patiently(deadline, () => connect(file, true))
    return new Sqlite(new Session(writer), new Session(reader), options)
  } catch (error) {
    writer.close()
    throw error
  }
}

function connect(file: string, readOnly: boolean): Connection {
  // No busy time-out: SQLite would wait by holding the event loop. See `patiently`.
  const connection = new DatabaseSync(file, { readOnly, timeout: 0 })
  try {
    if (!readOnly) connection.exec('pragma journal_mode = wal')
    // An existing database in WAL mode is opened with less; then a power cut loses what was acknowledged.
    connection.exec('pragma synchronous = full')
    connection.exec('pragma foreign_keys = on')
    connection.exec('pragma temp_store = memory')
    assertPragma(connection, 'synchronous', 2)
    assertPragma(connection, 'journal_mode', 'wal')
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

function assertPragma(connection: Connection, name: string, expected: SqlValue): void {
  const [row] = connection.prepare(`pragma ${name}`).all() as Record<string, SqlValue>[]
  const actual = row?.[name]
  if (actual !== expected)
    throw new Error(`SQLite would not set ${name} to ${expected}: it is ${String(actual)}`)
}

/** A connection with its prepared statements, the most recently used ones. */
class Session implements Transaction {
  readonly #statements = new Map<string, Statement>()

  constructor(readonly connection: Connection) {}

  async all(sql: string, params: readonly SqlValue[] = []): Promise<Row[]> {
    try {
      // Only for reading: on a statement that writes, `.all()` hides the error's code and `.get()` hides the error.
      return this.#prepare(sql).all(...params) as Row[]
    } catch (error) {
      throw translate(error)
    }
  }

  async run(sql: string, params: readonly SqlValue[] = []): Promise<number> {
    try {
      return this.#prepare(sql).run(...params).changes
    } catch (error) {
      throw translate(error)
    }
  }

  async insert(sql: string, params: readonly SqlValue[] = []): Promise<number> {
    try {
      return Number(this.#prepare(sql).run(...params).lastInsertRowid)
    } catch (error) {
      throw translate(error)
    }
  }

  exec(sql: string): void {
    this.#prepare(sql).run()
  }

  close(): void {
    this.#statements.clear()
    this.connection.close()
  }

  #prepare(sql: string): Statement {
    const cached = this.#statements.get(sql)
    if (cached) {
      this.#statements.delete(sql)
      this.#statements.set(sql, cached)
      return cached
    }
    const statement = this.connection.prepare(sql)
    this.#statements.set(sql, statement)
    const [oldest] = this.#statements.keys()
    if (this.#statements.size > MAX_STATEMENTS && oldest !== undefined) this.#statements.delete(oldest)
    return statement
  }
}

class Sqlite implements Database {
  readonly dialect = sqliteDialect
  readonly reader: Queryable
  readonly #waiting: Member[] = []
  #pumping: Promise<void> | undefined
  #isBroken = false

  constructor(
    private readonly writer: Session,
    private readonly readerSession: Session,
    private readonly options: SqliteOptions,
  ) {
    this.reader = {
      all: (sql, params) => patiently(Date.now() + PATIENCE_MS, () => readerSession.all(sql, params)),
    }
  }

  async transaction<T>(
    work: (tx: Transaction) => Promise<T>,
    { patienceMs = PATIENCE_MS }: { readonly patienceMs?: number } = {},
  ): Promise<T> {
    if (this.#waiting.length >= MAX_WAITING)
      throw new Refusal('busy', 'Too many writes are waiting', { retryAfterS: 1 })
    return new Promise<T>((resolve, reject) => {
      const deadline = Date.now() + patienceMs
      this.#waiting.push({
        work,
        deadline,
        resolve: (value) => {
          resolve(value as T)
        },
        reject,
      })
      this.#pumping ??= this.#pump()
    })
  }

  async close(): Promise<void> {
    await this.#pumping
    this.readerSession.close()
    this.writer.close()
  }

  async #pump(): Promise<void> {
    // Wait for the rest of this turn of the event loop: what arrives together is committed together.
    await new Promise(setImmediate)
    while (this.#waiting.length > 0) await this.#commitTogether(this.#waiting.splice(0, MAX_GROUP))
    this.#pumping = undefined
  }

  /** All members in one transaction; if that is lost, each in one of its own. Nobody is answered before COMMIT. */
  async #commitTogether(group: readonly Member[]): Promise<void> {
    const outcomes = await this.#attempt(group)
    if (outcomes) outcomes.forEach(answer)
    else for (const member of group) answer(await this.#runAlone(member))
  }

  async #attempt(group: readonly Member[]): Promise<Outcome[] | undefined> {
    const [only] = group
    if (group.length === 1 && only) return [await this.#runAlone(only)]
    try {
      await this.#begin(Math.min(...group.map((member) => member.deadline)))
    } catch {
      return undefined // Each will find out by itself.
    }
    const outcomes: Outcome[] = []
    for (const member of group) {
      const outcome = await this.#runInSavepoint(member)
      // A full disk rolls back the whole transaction, not the savepoint: then nothing of the group is stored.
      if (!outcome || !this.writer.connection.isTransaction) {
        this.#abandon()
        return undefined
      }
      outcomes.push(outcome)
    }
    try {
      this.writer.exec('commit')
      return outcomes
    } catch {
      this.#abandon()
      return undefined
    }
  }

  async #runInSavepoint(member: Member): Promise<Outcome | undefined> {
    try {
      this.writer.exec('savepoint member')
      const outcome = await run(member, this.writer)
      if ('error' in outcome) {
        if (isEngineTrouble(outcome.error)) return undefined
        this.writer.exec('rollback to member')
      }
      this.writer.exec('release member')
      return outcome
    } catch {
      return undefined
    }
  }

  async #runAlone(member: Member): Promise<Outcome> {
    try {
      await this.#begin(member.deadline)
      const outcome = await run(member, this.writer)
      if ('error' in outcome) this.#abandon()
      else this.writer.exec('commit')
      if ('error' in outcome) this.#noticeDamage(outcome.error)
      return outcome
    } catch (error) {
      this.#abandon()
      this.#noticeDamage(error)
      return { member, error: translate(error) }
    }
  }

  async #begin(deadline: number): Promise<void> {
    if (this.#isBroken)
      throw new Refusal('busy', 'The disk has failed: the service must be restarted', { retryAfterS: 5 })
    await patiently(deadline, () => {
      this.writer.exec('begin immediate')
    })
  }

  #abandon(): void {
    if (this.writer.connection.isTransaction) this.writer.connection.exec('rollback')
  }

  #noticeDamage(error: unknown): void {
    const code = codeOf(error instanceof Refusal ? error.cause : error)
    if (
      code === undefined ||
      (code & 0xff) !== SQLITE_IOERR ||
      code === SQLITE_IOERR_SHMSIZE ||
      this.#isBroken
    )
      return
    this.#isBroken = true
    this.options.onBroken?.(error)
  }
}

async function run(member: Member, tx: Transaction): Promise<Outcome> {
  try {
    return { member, value: await member.work(tx) }
  } catch (error) {
    return { member, error: translate(error) }
  }
}

function answer(outcome: Outcome): void {
  if ('error' in outcome) outcome.member.reject(outcome.error)
  else outcome.member.resolve(outcome.value)
}

/** Tries until another process has let go of the file; between the tries the event loop is free. */
async function patiently<T>(deadline: number, attempt: () => T | Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      const code = codeOf(error instanceof Refusal ? error.cause : error)
      const isBusy = code !== undefined && (code & 0xff) === SQLITE_BUSY
      if (!isBusy || Date.now() >= deadline) throw translate(error)
      await sleep(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)])
    }
  }
}

/** Full, busy or failing: not the member's own fault, so the whole group is done again. */
function isEngineTrouble(error: unknown): boolean {
  return error instanceof Refusal && codeOf(error.cause) !== undefined
}

// Reading statements raise errors without a code.
const CODE_BY_MESSAGE: readonly (readonly [string, number])[] = [
  ['database or disk is full', SQLITE_FULL],
  ['database is locked', SQLITE_BUSY],
  ['disk I/O error', SQLITE_IOERR],
]

function codeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'ERR_SQLITE_ERROR') return undefined
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode
  return CODE_BY_MESSAGE.find(([message]) => error.message.includes(message))?.[1]
}

/** SQLite's words → ours. What is none of these stays as it is: a defect, to be logged. */
function translate(error: unknown): unknown {
  const code = codeOf(error)
  if (code === undefined || !(error instanceof Error)) return error
  if (code === SQLITE_CONSTRAINT_UNIQUE || code === SQLITE_CONSTRAINT_PRIMARYKEY)
    return uniqueViolation(error)
  if (code === SQLITE_FULL || code === SQLITE_IOERR_SHMSIZE) {
    return new Refusal('storage-full', 'The disk is full: nothing was written', {
      retryAfterS: 10,
      cause: error,
    })
  }
  if ((code & 0xff) === SQLITE_BUSY) {
    return new Refusal('busy', 'Another process is writing: nothing was written', {
      retryAfterS: 1,
      cause: error,
    })
  }
  if ((code & 0xff) === SQLITE_IOERR) {
    return new Refusal('busy', 'The disk has failed: read before you try again', {
      retryAfterS: 5,
      cause: error,
    })
  }
  return error
}

/** `UNIQUE constraint failed: crm.Company.code, crm.Company.country` */
function uniqueViolation(error: Error): UniqueViolation {
  const columns = error.message.replace(/^.*failed: /, '').split(', ')
  const names = columns.map((column) => column.slice(column.lastIndexOf('.') + 1))
  return new UniqueViolation(undefined, names, { cause: error })
}
