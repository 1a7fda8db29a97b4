// Nodes of the service in this process, on one database. A mutant can replace each node's database, and a transaction can stop between two
// statements until another one has ended or waits for a lock.
import type { Database, Queryable, Transaction } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import type { WireRecord } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import {
  PASSWORD,
  preparedLocation,
  startService,
  USERNAME,
  type Engine,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { exchange, type Session } from './load-client.js'
import { unsharedTransaction } from '../queryables.js'

export type Mutant = (db: Database) => Database

export interface Node {
  readonly service: Service
  readonly client: HttpClient
  readonly halt: Halt
}

export interface Nodes {
  readonly engine: Engine
  /** Two different nodes, or the same one twice. */
  readonly first: Node
  readonly second: Node
  /** For looking at the stored rows. */
  readonly db: Database
}

export interface NodesOptions {
  readonly mutant?: Mutant | undefined
  /** Two nodes on PostgreSQL and one on SQLite by default. */
  readonly areTwo?: boolean
}

const OPTIONS = { poolSize: 20, statementTimeoutMs: 10_000 }

/** Runs `work` on two nodes, or on one that is first and second. */
export async function onNodes<T>(
  engine: Engine,
  { mutant, areTwo = engine === 'postgres' }: NodesOptions,
  work: (nodes: Nodes) => Promise<T>,
): Promise<T> {
  const location = await preparedLocation(engine)
  const first = await startNode(engine, location, mutant)
  const second = areTwo ? await startNode(engine, location, mutant) : first
  const db = await openDatabase(location.url, { ...OPTIONS, poolSize: 2 })
  try {
    return await work({ engine, first, second, db })
  } finally {
    await db.close()
    await Promise.all([...new Set([first, second])].map(({ service }) => service.close()))
    location.remove()
  }
}

async function startNode(
  engine: Engine,
  location: DatabaseLocation,
  mutant: Mutant = (db) => db,
): Promise<Node> {
  const halt = new Halt()
  const database = halt.on(mutant(await openDatabase(location.url, OPTIONS)))
  const service = await startService(engine, { location, database })
  return { service, client: await HttpClient.login(service.url, USERNAME, PASSWORD), halt }
}

/** Stops a transaction until it is told to continue. */
export class Halt {
  #pattern: RegExp | undefined
  #reach: () => void = () => undefined
  #told = Promise.resolve()

  /** The next transaction that runs such a statement stops after it, and resolves `reached`. */
  after(pattern: RegExp): { readonly reached: Promise<void>; readonly goOn: () => void } {
    this.#pattern = pattern
    let goOn: () => void = () => undefined
    this.#told = new Promise((resolve) => (goOn = resolve))
    const reached = new Promise<void>((resolve) => (this.#reach = resolve))
    return { reached, goOn: () => goOn() }
  }

  on(db: Database): Database {
    return {
      dialect: db.dialect,
      reader: db.reader,
      queryPool: db.queryPool,
      blobs: db.blobs,
      commits: db.commits,
      writability: () => db.writability(),
      gauges: () => db.gauges(),
      measure: () => db.measure(),
      transaction: (work, options) => db.transaction((tx) => work(this.#stopping(tx)), options),
      close: () => db.close(),
    }
  }

  #stopping(tx: Transaction): Transaction {
    const past = async <T>(sql: string, result: Promise<T>): Promise<T> => {
      const value = await result
      if (!this.#pattern?.test(sql)) return value
      this.#pattern = undefined
      this.#reach()
      await this.#told
      return value
    }
    return unsharedTransaction({
      all: (sql, params) => past(sql, tx.all(sql, params)),
      run: (sql, params) => past(sql, tx.run(sql, params)),
      insert: (sql, params) => past(sql, tx.insert(sql, params)),
    })
  }
}

/** Stops `one` after the statement, runs `other` until it ends or waits for a lock, then continues `one`. */
export async function interleave<A, B>(
  { engine, first, db }: Nodes,
  pattern: RegExp,
  one: () => Promise<A>,
  other: () => Promise<B>,
): Promise<[A, B]> {
  const { reached, goOn } = first.halt.after(pattern)
  const slow = one()
  await Promise.race([reached, slow.then(() => failed(`nothing came past ${String(pattern)}`))])
  const quick = other()
  // On SQLite every write waits for the one before it, so there is no lock wait to see.
  if (engine === 'postgres') await untilHeldUp(db.reader, quick)
  goOn()
  return Promise.all([slow, quick])
}

function failed(message: string): never {
  throw new Error(message)
}

/** Waits until the work has ended or waits for a lock. */
async function untilHeldUp(db: Queryable, work: Promise<unknown>): Promise<void> {
  let isOver = false
  const end = () => (isOver = true)
  work.then(end, end)
  const sql = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  const isOverNow = () => isOver
  while (!isOverNow() && (await db.all(sql)).length === 0) continue
}

export interface Sent {
  readonly status: number
  /** The error kind. */
  readonly kind: string | undefined
  /** The written record. */
  readonly record: WireRecord | undefined
}

export async function send(session: Session, method: string, path: string, data?: unknown): Promise<Sent> {
  const body = data === undefined ? undefined : { data }
  const { status, body: answer } = await exchange(session, method, `/ws/rest/${path}`, body)
  if (status !== 200)
    return { status, kind: (answer.data as { readonly kind: string }).kind, record: undefined }
  const [record] = answer.data as readonly WireRecord[]
  return { status, kind: undefined, record }
}

/** `409 conflict`; `200` alone. */
export function inWords({ status, kind }: Sent): string {
  return kind === undefined ? String(status) : `${status} ${kind}`
}
