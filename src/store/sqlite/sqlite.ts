// The embedded engine: one writer that commits in groups, a reader beside it, searches in processes of their own.
import path from 'node:path'
import { Refusal } from '../../errors.js'
import type { OnCondition, Unwritable } from '../engine/database-condition.js'
import type {
  Database,
  Gauges,
  Plain,
  Queryable,
  Transaction,
  TransactionOptions,
} from '../engine/database.js'
import { makeFolder } from './blob-folder.js'
import { keepPrivate } from '../engine/private-files.js'
import { SqliteCommits } from './commits.js'
import { Unhurried, type Session } from './connection.js'
import { SqliteContents } from './blobs.js'
import { sqliteDialect } from './dialect.js'
import { isBusy, isEngineTrouble, patiently, translate } from './errors.js'
import { Grouped } from './grouped-transaction.js'
import { SqliteSearcher } from './query-pool.js'
import { SqliteSessions } from './connections.js'

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
  /** Called when writes begin to be refused, and when they are taken again. */
  readonly onCondition?: OnCondition
  /** Called for each file that others could read or write until now. */
  readonly onNarrowed?: (file: string) => void
}

export async function openSqlite(file: string, options: SqliteOptions = {}): Promise<Database> {
  makeFolder(path.resolve(path.dirname(file)))
  keepPrivate(file, options.onNarrowed)
  const onCondition: OnCondition = (unwritable, error) => {
    options.onCondition?.(unwritable, error)
    if (unwritable?.trouble === 'failed') options.onBroken?.(error)
  }
  const sessions = await SqliteSessions.open(file, Date.now() + PATIENCE_MS, onCondition, () => {
    searcher.restart()
  })
  const searcher = new SqliteSearcher(
    path.resolve(file),
    options.statementTimeoutMs ?? STATEMENT_MS,
    (error) => {
      sessions.noticeDamage(error)
    },
  )
  return new Sqlite(file, sessions, searcher)
}

class Sqlite implements Database {
  readonly dialect = sqliteDialect
  readonly reader: Queryable
  readonly contents: SqliteContents
  readonly commits: SqliteCommits
  readonly #waiting: Member[] = []
  #pumping: Promise<void> | undefined
  #isClosed = false
  #closing: Promise<void> | undefined

  private readonly writer: Session
  readonly #unhurried: Unhurried

  constructor(
    file: string,
    private readonly sessions: SqliteSessions,
    readonly searcher: SqliteSearcher,
  ) {
    const { reader: readerSession } = sessions
    this.writer = sessions.writer
    this.#unhurried = new Unhurried(this.writer)
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

  async writability(): Promise<Unwritable | undefined> {
    this.sessions.probe()
    return Promise.resolve(this.sessions.condition.unwritable)
  }

  gauges(): Gauges {
    return {
      ...this.searcher.gauges(),
      writesPending: this.#waiting.length,
      uploadsPending: this.contents.pending(),
    }
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
    this.sessions.close()
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
      this.#commit()
      return outcomes
    } catch {
      // The session has told what it was.
      this.#abandon()
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
      return isEngineTrouble(outcome.error) || this.#unhurried.written !== before ? undefined : outcome
    } catch {
      return undefined // The session has told what it was.
    }
  }

  async #runInSavepoint(member: Member): Promise<Outcome | undefined> {
    try {
      this.writer.exec('savepoint member')
      const outcome = await run(member, this.#unhurried)
      if ('error' in outcome) {
        if (isEngineTrouble(outcome.error)) return undefined
        this.writer.exec('rollback to member')
      }
      this.writer.exec('release member')
      return outcome
    } catch {
      return undefined // The session has told what it was.
    }
  }

  async #runAlone(member: Member): Promise<Outcome> {
    try {
      await this.#begin(member.deadline)
      const outcome = await run(member, this.#unhurried)
      if ('error' in outcome) this.#abandon()
      else this.#commit()
      return outcome
    } catch (error) {
      this.#abandon()
      return { member, error: translate(error) }
    }
  }

  async #begin(deadline: number): Promise<void> {
    this.sessions.requireSound()
    await patiently(deadline, () => {
      this.writer.exec('begin immediate')
    })
    this.#unhurried.begin()
  }

  #commit(): void {
    this.writer.exec('commit')
    const { condition } = this.sessions
    if (condition.unwritable && this.#unhurried.hasWritten) condition.clearReadOnly()
  }

  /** Never throws: whoever calls it has somebody to answer. */
  #abandon(): void {
    try {
      if (this.writer.connection.isTransaction) this.writer.connection.exec('rollback')
    } catch (error) {
      this.sessions.condition.note('failed', error)
    }
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
