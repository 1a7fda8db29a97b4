// Queryables and transactions that share nothing with others: every work runs at once.
import type {
  BatchWork,
  BeforeCommitHandler,
  Queryable,
  Reader,
  Row,
  SqlValue,
  SynchronousRead,
  Transaction,
  WriteBatchWork,
} from './database.js'

export abstract class UnsharedQueryable implements Reader {
  abstract all(sql: string, params?: readonly SqlValue[]): Promise<Row[]>

  allShared(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.all(sql, params)
  }

  batch<I, O>(work: BatchWork<Queryable, I, O>, input: I): Promise<O> {
    return work.runOne(this, input)
  }

  readInSnapshot<T>(_: (all: SynchronousRead) => T, otherwise: () => Promise<T>): Promise<T> {
    return otherwise()
  }

  withSnapshot(work: () => void): void {
    work()
  }
}

/** Runs each statement by a function. */
export class FunctionQueryable extends UnsharedQueryable {
  constructor(readonly all: Queryable['all']) {
    super()
  }
}

export abstract class UnsharedTransaction extends UnsharedQueryable implements Transaction {
  abstract readonly statementCount: number
  abstract run(sql: string, params?: readonly SqlValue[]): Promise<number>
  abstract insert(sql: string, params?: readonly SqlValue[]): Promise<number>

  batchWrite<I, O>(work: WriteBatchWork<I, O>, input: I): Promise<O> {
    return work.runOne(this, input)
  }

  async sendWithCommit(sql: string, params: readonly SqlValue[]): Promise<void> {
    await this.run(sql, params)
  }

  memoize<T>(_: string, load: () => Promise<T>): Promise<T> {
    return load()
  }

  beforeCommit<I>(_: string, input: I, run: BeforeCommitHandler<I>): Promise<void> {
    return run(this, [input])
  }

  requireExclusive(): void {
    // No other work shares this transaction.
  }
}
