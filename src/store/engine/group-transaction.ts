// The transaction that the members of a group commit share. Members run concurrently, or one after the other.
import type {
  BatchWork,
  BeforeCommitHandler,
  Queryable,
  Row,
  SqlValue,
  Transaction,
  TransactionOptions,
  WriteBatchWork,
} from './database.js'
import { Batcher } from './batcher.js'
import { UnsharedTransaction } from './unshared.js'

/**
 * `concurrent`: all members run at the same time and share statements; only for groupable writes. `in-order`: one after the other. `savepoints`:
 * one after the other, each in a savepoint, so that the writes of a failed member are undone. A savepoint costs as much as a write.
 */
export type GroupMode = 'concurrent' | 'in-order' | 'savepoints'

export type TransactionWork<T = unknown> = (tx: Transaction) => Promise<T>

export interface GroupMember {
  readonly work: TransactionWork
  readonly options: TransactionOptions
  readonly queuedAtMs: number
}

/** An open transaction of an engine. */
export interface OpenTransaction {
  readonly tx: Transaction
  /** The number of statements that may have written something. Failed statements have written nothing. */
  readonly writeCount: number
  /** False if the engine has rolled back the transaction, as after a full disk. */
  readonly isActive: boolean
  /** True if the engine caused the error, not the work. Then nothing of the group is stored. */
  isEngineError(error: unknown): boolean
  /** Called before the `beforeCommit` handlers run. */
  onMembersDone(): void
}

/** The outcome of one member. With `run-alone` it has written nothing, and runs again in a transaction of its own. */
export type GroupOutcome = { readonly value: unknown } | { readonly error: unknown } | 'run-alone'

const SAVEPOINT = 'member'

export class GroupTransaction {
  readonly #memo = new Map<string, Promise<unknown>>()
  readonly #handlers = new Map<
    string,
    { readonly run: BeforeCommitHandler<unknown>; readonly inputs: unknown[] }
  >()
  readonly #writtenRecords = new Set<string>()
  readonly #sharedMember: MemberTransaction
  #batcher: Batcher | undefined
  /** The error of a statement, after which the transaction is aborted; or of a member that had written already. */
  #failure: { readonly error: unknown } | undefined

  constructor(
    private readonly open: OpenTransaction,
    private readonly mode: GroupMode,
    private readonly maxMembers: number,
  ) {
    this.#sharedMember = new MemberTransaction(this, open.tx)
  }

  /** For members that run concurrently. */
  get batcher(): Batcher {
    return (this.#batcher ??= new Batcher({
      maxInputs: this.maxMembers,
      // `nextTick` runs after microtasks: all members that continued after one statement have added their next input by then.
      schedule: (flush) => process.nextTick(flush),
      rejectsAll: true,
    }))
  }

  /** Runs all members. Rejects if nothing of the group may be stored. */
  async run(members: readonly GroupMember[]): Promise<readonly GroupOutcome[]> {
    const outcomes =
      this.mode === 'concurrent'
        ? await Promise.all(members.map((member) => this.#runConcurrently(member)))
        : await this.#runInOrder(members)
    if (this.#failure) throw this.#failure.error
    this.open.onMembersDone()
    await this.#runHandlers()
    return outcomes
  }

  memoize<T>(key: string, load: () => Promise<T>): Promise<T> {
    const value = this.#memo.get(key) ?? load()
    this.#memo.set(key, value)
    return value as Promise<T>
  }

  beforeCommit<I>(key: string, input: I, run: BeforeCommitHandler<I>): void {
    const handler = this.#handlers.get(key) ?? { run: run as BeforeCommitHandler<unknown>, inputs: [] }
    this.#handlers.set(key, handler)
    handler.inputs.push(input)
  }

  /** Fails the group with the error of a statement. */
  async recordFailure<T>(statement: Promise<T>): Promise<T> {
    try {
      return await statement
    } catch (error) {
      this.#failure ??= { error }
      throw error
    }
  }

  /** A member that wrote nothing runs again alone, where it sees only committed data and the complete Log. There it fails for good. */
  async #runConcurrently({ work }: GroupMember): Promise<GroupOutcome> {
    const tx = new ConcurrentMemberTransaction(this, this.open.tx)
    try {
      return { value: await work(tx) }
    } catch (error) {
      if (tx.hasWritten) this.#failure ??= { error }
      return 'run-alone'
    }
  }

  async #runInOrder(members: readonly GroupMember[]): Promise<GroupOutcome[]> {
    const outcomes: GroupOutcome[] = []
    for (const member of members) {
      const outcome = await (this.mode === 'savepoints'
        ? this.#runInSavepoint(member)
        : this.#runNext(member))
      if (!this.open.isActive) throw new Error('the engine has rolled back the transaction')
      outcomes.push(outcome)
    }
    return outcomes
  }

  /** A member that may read records of other members runs after the handlers of those members. */
  async #runNext(member: GroupMember): Promise<GroupOutcome> {
    const { groupable } = member.options
    const record = groupable?.record
    if (!groupable || (record !== undefined && this.#writtenRecords.has(record))) await this.#runHandlers()
    if (record !== undefined) this.#writtenRecords.add(record)
    const before = this.open.writeCount
    const outcome = await attempt(member, groupable ? this.#sharedMember : this.open.tx)
    // The writes of a failed member cannot be separated from those of other members.
    if ('error' in outcome && (this.open.isEngineError(outcome.error) || this.open.writeCount !== before))
      throw outcome.error
    return outcome
  }

  async #runInSavepoint(member: GroupMember): Promise<GroupOutcome> {
    const { tx } = this.open
    await tx.run(`savepoint ${SAVEPOINT}`)
    const outcome = await attempt(member, tx)
    if ('error' in outcome) {
      if (this.open.isEngineError(outcome.error)) throw outcome.error
      await tx.run(`rollback to ${SAVEPOINT}`)
    }
    await tx.run(`release ${SAVEPOINT}`)
    return outcome
  }

  /** Runs and removes the handlers, and clears the memoized values. */
  async #runHandlers(): Promise<void> {
    const handlers = [...this.#handlers.values()]
    this.#handlers.clear()
    this.#memo.clear()
    for (const { run, inputs } of handlers) await run(this.open.tx, inputs)
  }
}

async function attempt({ work }: GroupMember, tx: Transaction): Promise<Exclude<GroupOutcome, 'run-alone'>> {
  try {
    return { value: await work(tx) }
  } catch (error) {
    return { error }
  }
}

/** The transaction as groupable members see it. It shares their memoized values and `beforeCommit` handlers. */
class MemberTransaction extends UnsharedTransaction {
  constructor(
    protected readonly group: GroupTransaction,
    protected readonly tx: Transaction,
  ) {
    super()
  }

  get statementCount(): number {
    return this.tx.statementCount
  }

  all(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    return this.tx.all(sql, params)
  }

  run(sql: string, params?: readonly SqlValue[]): Promise<number> {
    return this.tx.run(sql, params)
  }

  insert(sql: string, params?: readonly SqlValue[]): Promise<number> {
    return this.tx.insert(sql, params)
  }

  override memoize<T>(key: string, load: () => Promise<T>): Promise<T> {
    return this.group.memoize(key, load)
  }

  override beforeCommit<I>(key: string, input: I, run: BeforeCommitHandler<I>): Promise<void> {
    this.group.beforeCommit(key, input, run)
    return Promise.resolve()
  }
}

/** Thrown to end a member that cannot share the transaction. */
class ExclusiveRequiredError extends Error {}

/** The transaction as one of several concurrent members sees it. */
class ConcurrentMemberTransaction extends MemberTransaction {
  hasWritten = false

  override all(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    return this.group.recordFailure(this.tx.all(sql, params))
  }

  override run(sql: string, params?: readonly SqlValue[]): Promise<number> {
    return this.#recordWrite(this.tx.run(sql, params))
  }

  override insert(sql: string, params?: readonly SqlValue[]): Promise<number> {
    return this.#recordWrite(this.tx.insert(sql, params))
  }

  override batch<I, O>(work: BatchWork<Queryable, I, O>, input: I): Promise<O> {
    return this.group.batcher.run(work, this, input)
  }

  override async batchWrite<I, O>(work: WriteBatchWork<I, O>, input: I): Promise<O> {
    const output = await this.group.batcher.batch(work.key, input, (inputs) => work.runMany(this, inputs))
    if (output === undefined) return this.requireExclusive()
    this.hasWritten = true
    return output
  }

  override memoize<T>(key: string, load: () => Promise<T>): Promise<T> {
    return super.memoize(key, () => this.group.recordFailure(load()))
  }

  override requireExclusive(): never {
    throw new ExclusiveRequiredError('requires its own transaction')
  }

  async #recordWrite(changed: Promise<number>): Promise<number> {
    const count = await this.group.recordFailure(changed)
    if (count > 0) this.hasWritten = true
    return count
  }
}
