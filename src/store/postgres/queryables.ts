// The reader, the query pool and the group transaction of PostgreSQL.
import { setImmediate } from 'node:timers/promises'
import type { BatchWork, Queryable, QueryPool, Row, SqlValue, Transaction } from '../engine/database.js'
import { Batcher } from '../engine/batcher.js'
import type { OpenTransaction } from '../engine/group-transaction.js'
import { FunctionQueryable } from '../engine/unshared.js'
import { sumWaiting, type WaitingCalls } from '../engine/measures.js'

/** More concurrent batches would only make each batch smaller. */
const MAX_CONCURRENT_READS = 2
/** Records can be large, so a batch is small. */
const MAX_BATCH_READS = 32

/** Each caller builds its answer from the rows: too many in one turn of the event loop would block it. */
const MAX_SHARERS_PER_TURN = 32

/** Runs equal statements once. A caller never joins a running statement, so it sees everything that was committed before its call. */
class SharingQueryable extends FunctionQueryable {
  protected readonly shared = new Batcher({
    maxInputs: Infinity,
    maxConcurrent: MAX_CONCURRENT_READS,
    // A retry for each caller would multiply the load of a statement that fails.
    rejectsAll: true,
  })

  override async allShared(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]> {
    const key = `${sql} ${JSON.stringify(params)}`
    const { rows, turn } = await this.shared.batch(key, undefined, async (inputs) => {
      const found = await this.all(sql, params)
      return inputs.map((_, index) => ({ rows: found, turn: Math.floor(index / MAX_SHARERS_PER_TURN) }))
    })
    for (let waited = 0; waited < turn; waited++) await setImmediate()
    return rows
  }
}

export class PostgresReader extends SharingQueryable {
  readonly #batcher = new Batcher({ maxInputs: MAX_BATCH_READS, maxConcurrent: MAX_CONCURRENT_READS })

  get waiting(): WaitingCalls {
    return sumWaiting([this.shared.waiting, this.#batcher.waiting])
  }

  override batch<I, O>(work: BatchWork<Queryable, I, O>, input: I): Promise<O> {
    return this.#batcher.run(work, this, input)
  }
}

export class PostgresQueryPool extends SharingQueryable implements QueryPool {
  constructor(
    all: Queryable['all'],
    readonly snapshot: QueryPool['snapshot'],
    readonly longSnapshot: QueryPool['longSnapshot'],
  ) {
    super(all)
  }
}

/** A transaction of a group. PostgreSQL aborts it after any error, so its members need not count their writes together. */
export class OpenPostgresTransaction implements OpenTransaction {
  readonly writeCount = 0
  readonly isActive = true

  constructor(
    readonly tx: Transaction,
    /** The limit of the connection, which a group lowers. */
    private readonly lockTimeoutMs: number,
  ) {}

  isEngineError(): boolean {
    return true
  }

  onMembersDone(): void {
    void this.tx.sendWithCommit(`set local lock_timeout = ${this.lockTimeoutMs}`, [])
  }
}
