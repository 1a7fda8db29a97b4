// The embedded engine: one writer that commits in groups, a reader beside it, searches in processes of their own.
import { statSync } from 'node:fs'
import path from 'node:path'
import { Refusal } from '../errors.js'
import type { Database, Plain, Queryable, Transaction, TransactionOptions } from './database.js'
import { makeFolder } from './folder.js'
import { keepPrivate } from './private-files.js'
import { SqliteCommits } from './sqlite-commits.js'
import { connect, Session, Unhurried } from './sqlite-connection.js'
import { SqliteContents } from './sqlite-contents.js'
import { sqliteDialect } from './sqlite-dialect.js'
import { isBusy, isDamage, isEngineTrouble, patiently, translate } from './sqlite-errors.js'
import { Grouped } from './sqlite-group.js'
import { SqliteSearcher } from './sqlite-searcher.js'

const MAX_GROUP = 256
const MAX_WAITING = 10_000
const PATIENCE_MS = 5_000
const LONG_PATIENCE_MS = 60_000
const STATEMENT_MS = 10_000

interface Member {
  readonly work: (tx: Transaction) => Promise<unknown>
  readonly plain: Plain | undefined
  readonly deadline: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

type Outcome = { readonly member: Member } & ({ readonly value: unknown } | { readonly error: unknown })

export interface SqliteOptions {
  /** How long a search may take, the wait for its turn included. */
  readonly statementTimeoutMs?: number
  /** Called once when the disk has failed: what the engine believes and what the disk holds may differ, only a restart settles it. */
  readonly onBroken?: (error: unknown) => void
  /** Called for each file that others could read or write until now. */
  readonly onNarrowed?: (file: string) => void
}

export async function openSqlite(file: string, options: SqliteOptions = {}): Promise<Database> {
  makeFolder(path.resolve(path.dirname(file)))
  keepPrivate(file, options.onNarrowed)
  const deadline = Date.now() + PATIENCE_MS
  const writer = await patiently(deadline, () => connect(file, false))
  try {
    const reader = await patiently(deadline, () => connect(file, true))
    return new Sqlite(file, new Session(writer), new Session(reader), options)
  } catch (error) {
    writer.close()
    throw error
  }
}

class Sqlite implements Database {
  readonly dialect = sqliteDialect
  readonly reader: Queryable
  readonly searcher: SqliteSearcher
  readonly contents: SqliteContents
  readonly commits: SqliteCommits
  readonly #waiting: Member[] = []
  #pumping: Promise<void> | undefined
  #isBroken = false
  #isClosed = false
  #closing: Promise<void> | undefined

  readonly #isInPlace: () => boolean
  readonly #unhurried: Unhurried

  constructor(
    file: string,
    private readonly writer: Session,
    private readonly readerSession: Session,
    private readonly options: SqliteOptions,
  ) {
    this.#isInPlace = watchPlace(file)
    this.#unhurried = new Unhurried(writer)
    this.reader = {
      all: async (sql, params) => {
        try {
          return readerSession.all(sql, params)
        } catch (error) {
          // Nearly always the first try does, and then nothing is spent on patience.
          if (!isBusy(error)) throw error
          return patiently(Date.now() + PATIENCE_MS, () => readerSession.all(sql, params))
        }
      },
      atOnce: (work) => patiently(Date.now() + PATIENCE_MS, () => readerSession.readAtOnce(work)),
      inOneMoment: (work) => {
        readerSession.inOneMoment(work)
      },
    }
    this.searcher = new SqliteSearcher(path.resolve(file), options.statementTimeoutMs ?? STATEMENT_MS)
    this.contents = new SqliteContents(`${path.resolve(file)}.files`, this)
    this.commits = new SqliteCommits(() => dataVersionOf(readerSession))
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    if (this.#isClosed) throw new Refusal('busy', 'The database is closed', { retryAfterS: 1 })
    if (this.#waiting.length >= MAX_WAITING)
      throw new Refusal('busy', 'Too many writes are waiting', { retryAfterS: 1 })
    return new Promise<T>((resolve, reject) => {
      const deadline = Date.now() + (options.isLong ? LONG_PATIENCE_MS : PATIENCE_MS)
      this.#waiting.push({
        work,
        plain: options.plain,
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
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    // It may still have something to write.
    await this.contents.close()
    this.commits.close()
    this.#isClosed = true
    await Promise.all([this.#pumping, this.searcher.close()])
    this.readerSession.close()
    try {
      this.writer.checkpoint()
    } catch (error) {
      // On a full disk, for one. The next start finds everything in the WAL.
      if (!isEngineTrouble(translate(error))) throw error
    } finally {
      this.writer.close()
    }
  }

  async #pump(): Promise<void> {
    // Wait for the rest of this turn of the event loop: what arrives together is committed together.
    await new Promise(setImmediate)
    while (this.#waiting.length > 0) await this.#commitTogether(this.#waiting.splice(0, MAX_GROUP))
    this.#pumping = undefined
  }

  /**
   * All members in one transaction; if that is lost, each in one of its own. Nobody is answered before COMMIT. Savepoints cost as much as
   * a write, and are needed only where a member fails after it has written: so the first attempt goes without.
   */
  async #commitTogether(group: readonly Member[]): Promise<void> {
    const outcomes = (await this.#attempt(group, false)) ?? (await this.#attempt(group, true))
    if (outcomes) outcomes.forEach(answer)
    else for (const member of group) answer(await this.#runAlone(member))
    this.commits.announce()
  }

  async #attempt(group: readonly Member[], hasSavepoints: boolean): Promise<Outcome[] | undefined> {
    const [only] = group
    if (group.length === 1 && only) return [await this.#runAlone(only)]
    try {
      await this.#begin(Math.min(...group.map((member) => member.deadline)))
    } catch {
      return undefined // Each will find out by itself.
    }
    const outcomes: Outcome[] = []
    const grouped = new Grouped(this.#unhurried)
    for (const member of group) {
      const outcome = await (hasSavepoints ? this.#runInSavepoint(member) : this.#runInGroup(member, grouped))
      // A full disk rolls back the whole transaction, not the savepoint: then nothing of the group is stored.
      if (!outcome || !this.writer.connection.isTransaction) {
        this.#abandon()
        return undefined
      }
      outcomes.push(outcome)
    }
    try {
      await grouped.end()
      this.writer.exec('commit')
      return outcomes
    } catch (error) {
      this.#abandon()
      this.#noticeDamage(error)
      return undefined
    }
  }

  /** Undefined if what it has written cannot stay, and cannot be told from what others have. */
  async #runInGroup(member: Member, grouped: Grouped): Promise<Outcome | undefined> {
    try {
      const tx = await grouped.begin(member.plain)
      const before = this.#unhurried.written
      const outcome = await run(member, tx)
      if (!('error' in outcome)) return outcome
      this.#noticeDamage(outcome.error)
      return isEngineTrouble(outcome.error) || this.#unhurried.written !== before ? undefined : outcome
    } catch (error) {
      this.#noticeDamage(error)
      return undefined
    }
  }

  async #runInSavepoint(member: Member): Promise<Outcome | undefined> {
    try {
      this.writer.exec('savepoint member')
      const outcome = await run(member, this.#unhurried)
      if ('error' in outcome) {
        this.#noticeDamage(outcome.error)
        if (isEngineTrouble(outcome.error)) return undefined
        this.writer.exec('rollback to member')
      }
      this.writer.exec('release member')
      return outcome
    } catch (error) {
      this.#noticeDamage(error)
      return undefined
    }
  }

  async #runAlone(member: Member): Promise<Outcome> {
    try {
      await this.#begin(member.deadline)
      const outcome = await run(member, this.#unhurried)
      if ('error' in outcome) {
        this.#abandon()
        this.#noticeDamage(outcome.error)
      } else this.writer.exec('commit')
      return outcome
    } catch (error) {
      this.#abandon()
      this.#noticeDamage(error)
      return { member, error: translate(error) }
    }
  }

  async #begin(deadline: number): Promise<void> {
    // Somebody has moved or removed the file: what is written now would go nowhere.
    if (!this.#isInPlace()) this.#breakDown(new Error('the database file is not where it was'))
    if (this.#isBroken) {
      const message =
        'The database file has failed or is gone, restart the service: read before you try again'
      throw new Refusal('busy', message, { retryAfterS: 5 })
    }
    await patiently(deadline, () => {
      this.writer.exec('begin immediate')
    })
    this.#unhurried.begin()
  }

  /** Never throws: whoever calls it has somebody to answer. */
  #abandon(): void {
    try {
      if (this.writer.connection.isTransaction) this.writer.connection.exec('rollback')
    } catch (error) {
      this.#breakDown(error)
    }
  }

  #noticeDamage(error: unknown): void {
    if (isDamage(error)) this.#breakDown(error)
  }

  #breakDown(error: unknown): void {
    if (this.#isBroken) return
    this.#isBroken = true
    this.options.onBroken?.(error)
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

function dataVersionOf(session: Session): number | undefined {
  try {
    const [row] = session.connection.prepare('pragma data_version').all() as { data_version: number }[]
    return row?.data_version
  } catch {
    return undefined
  }
}
