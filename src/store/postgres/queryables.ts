// The reader, the query pool and the group transaction of PostgreSQL.
import type { BatchWork, Queryable, QueryPool, Row, SqlValue, Transaction } from '../engine/database.js'
import { Batcher } from '../engine/batcher.js'
import type { OpenTransaction } from '../engine/group-transaction.js'
import { FunctionQueryable } from '../engine/unshared.js'

/** More concurrent batches would only make each batch smaller. */
const MAX_CONCURRENT_READS = 2
/** Records can be large, so a batch is small. */
const MAX_BATCH_READS = 32

/** Runs equal statements once. A caller never joins a running statement, so it sees everything that was committed before its call. */
class SharingQueryable extends FunctionQueryable {
  readonly #shared = new Batcher({
    maxInputs: Infinity,
    maxConcurrent: MAX_CONCURRENT_READS,
    // A statement that failed would fail again.
    rejectsAll: true,
  })

  override allShared(sql: string, params: readonly SqlValue[]): Promise<Row[]> {
    return this.#shared.batch(`${sql} ${JSON.stringify(params)}`, undefined, async (inputs) => {
      const rows = await this.all(sql, params)
      return inputs.map(() => rows)
    })
  }
}

export class PostgresReader extends SharingQueryable {
  readonly #batcher = new Batcher({ maxInputs: MAX_BATCH_READS, maxConcurrent: MAX_CONCURRENT_READS })

  override batch<I, O>(work: BatchWork<Queryable, I, O>, input: I): Promise<O> {
    return this.#batcher.run(work, this, input)
  }
}

export class PostgresQueryPool extends SharingQueryable implements QueryPool {
  constructor(
    all: Queryable['all'],
    readonly snapshot: QueryPool['snapshot'],
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
