// Queryables and transactions with changed statements.
import type { Queryable, QueryPool, Reader, Transaction } from '../src/store/engine/database.js'
import { FunctionQueryable, UnsharedTransaction } from '../src/store/engine/unshared.js'

type Statements = Pick<Transaction, 'all' | 'run' | 'insert'>

/** Runs each statement alone by a function. */
export function unshared({ all }: Pick<Queryable, 'all'>): Reader {
  return new FunctionQueryable(all)
}

/** A transaction that shares nothing with other members of its group. */
export function unsharedTransaction(statements: Statements): Transaction {
  return new FunctionTransaction(statements)
}

class FunctionTransaction extends UnsharedTransaction {
  readonly statementCount = 0
  readonly all: Transaction['all']
  readonly run: Transaction['run']
  readonly insert: Transaction['insert']

  constructor({ all, run, insert }: Statements) {
    super()
    this.all = all
    this.run = run
    this.insert = insert
  }
}

/** A query pool whose statements and snapshots are functions. */
export function queryPoolOf(all: Queryable['all'], snapshot: QueryPool['snapshot']): QueryPool {
  return Object.assign(new FunctionQueryable(all), { snapshot, longSnapshot: snapshot })
}

/** A reader with other statements. What it shares with others runs them, too. */
export function changedReader(reader: Reader, all: Reader['all']): Reader {
  const changed: Reader = {
    all,
    allShared: all,
    batch: (work, input) =>
      reader.batch(
        {
          key: work.key,
          runOne: (_, one) => work.runOne(changed, one),
          runMany: (_, inputs) => work.runMany(changed, inputs),
        },
        input,
      ),
    readInSnapshot: (work, otherwise) => reader.readInSnapshot(work, otherwise),
    withSnapshot: (work) => {
      reader.withSnapshot(work)
    },
  }
  return changed
}

/** A transaction with other statements. What it shares with other members of its group runs them, too. */
export function changedTransaction(tx: Transaction, change: Partial<Statements>): Transaction {
  const changed: Transaction = {
    get statementCount() {
      return tx.statementCount
    },
    all: change.all ?? ((sql, params) => tx.all(sql, params)),
    allShared: change.all ?? ((sql, params) => tx.allShared(sql, params)),
    run: change.run ?? ((sql, params) => tx.run(sql, params)),
    insert: change.insert ?? ((sql, params) => tx.insert(sql, params)),
    batch: (work, input) =>
      tx.batch(
        {
          key: work.key,
          runOne: (_, one) => work.runOne(changed, one),
          runMany: (_, inputs) => work.runMany(changed, inputs),
        },
        input,
      ),
    batchWrite: (work, input) =>
      tx.batchWrite(
        {
          key: work.key,
          runOne: (_, one) => work.runOne(changed, one),
          runMany: (_, inputs) => work.runMany(changed, inputs),
        },
        input,
      ),
    readInSnapshot: (work, otherwise) => tx.readInSnapshot(work, otherwise),
    sendWithCommit: (sql, params) => tx.sendWithCommit(sql, params),
    memoize: (key, load) => tx.memoize(key, load),
    beforeCommit: (key, input, run) => tx.beforeCommit(key, input, run),
    requireExclusive: () => {
      tx.requireExclusive()
    },
  }
  return changed
}
