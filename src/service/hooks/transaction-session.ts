// The calls of records that one hook, or one transaction of a program, makes.
import { VersoError, type ErrorKind } from '../../errors.js'
import type { WriteContext } from '../context/context.js'
import type { HookActivity, ScopeOwner } from '../context/hook-scope.js'

/** Errors of reads after which the transaction cannot go on. */
const FATAL_READ_KINDS: readonly ErrorKind[] = ['busy', 'storage-full']

/** A call of records. */
interface SessionCall {
  /** True if the call can wait for a lock that another transaction holds. */
  readonly locks: boolean
  /** True if the owner may catch this error and go on. */
  readonly isHarmless: (error: unknown) => boolean
}

const READ: SessionCall = { locks: false, isHarmless: isHarmlessRead }
const LOCK: SessionCall = { locks: true, isHarmless: isHarmlessRead }
/** A write that failed may have written a part, so its error refuses the whole transaction, also if the owner catches it. */
const WRITE: SessionCall = { locks: true, isHarmless: () => false }

export class TransactionSession implements HookActivity {
  usedMs = 0
  #started = 0
  #pending = 0
  #isLocking = false
  #isOpen = true
  #hasReturnedEarly = false
  readonly #errors = new Set<unknown>()
  #failure: { readonly error: unknown } | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(
    readonly owner: ScopeOwner,
    private readonly context: Pick<WriteContext, 'tx' | 'app'>,
  ) {}

  get steps(): number {
    return this.#started + this.context.tx.statementCount
  }

  get isCalling(): boolean {
    return this.#pending > 0
  }

  get mayWaitForLock(): boolean {
    return this.#isLocking && this.context.app.db.dialect.waitsForRowLocks
  }

  /** True after the owner has returned, or was refused. */
  get hasEnded(): boolean {
    return !this.#isOpen
  }

  read<T>(call: () => Promise<T>): Promise<T> {
    return this.#run(call, READ)
  }

  lock<T>(call: () => Promise<T>): Promise<T> {
    return this.#run(call, LOCK)
  }

  write<T>(call: () => Promise<T>): Promise<T> {
    return this.#run(call, WRITE)
  }

  /** Runs calls one after the other: concurrent writes of one transaction would see each other half done. */
  async #run<T>(call: () => Promise<T>, kind: SessionCall): Promise<T> {
    this.#requireUsable()
    this.#started++
    this.#pending++
    const running = this.#last.then(() => this.#runNow(call, kind))
    this.#last = running.catch(() => undefined)
    return running
  }

  async #runNow<T>(call: () => Promise<T>, { locks, isHarmless }: SessionCall): Promise<T> {
    try {
      // The transaction may have ended, or an earlier call may have failed, while this one waited for its turn.
      this.#requireUsable()
      this.#isLocking = locks
      return await call()
    } catch (error) {
      this.#errors.add(error)
      if (!isHarmless(error)) this.#failure ??= { error }
      throw error
    } finally {
      this.#isLocking = false
      this.#pending--
    }
  }

  #requireUsable(): void {
    if (this.#failure) throw this.#failure.error
    if (!this.#isOpen)
      throw new Error(
        `${this.owner.name} has ended, and its records with it: await every call of records before it returns`,
      )
  }

  /** True if the error comes from a call, also if the owner has caught and rethrown it. */
  hasFailedWith(error: unknown): boolean {
    return this.#errors.has(error)
  }

  /** The error of a call after which the database may retry the transaction, even if the owner throws another one. */
  get engineFailure(): { readonly error: unknown } | undefined {
    return this.#failure && !(this.#failure.error instanceof VersoError) ? this.#failure : undefined
  }

  /** Remembers whether calls are in progress when the owner returns. Later they may have ended, and nobody has looked at their results. */
  async watchReturn<T>(returned: T | Promise<T>): Promise<T> {
    return Promise.resolve(returned).then((result) => {
      this.#hasReturnedEarly = this.isCalling
      return result
    })
  }

  /** Ends the session after its owner has returned. Throws if a call has failed, or has not ended. */
  async end(): Promise<void> {
    await this.close()
    if (this.#failure) throw this.#failure.error
    if (this.#hasReturnedEarly)
      throw new Error(`${this.owner.name} returned before its calls of records had ended: await all of them`)
  }

  /** Refuses further calls and waits for the one in progress, which must not write after the transaction has ended. */
  async close(): Promise<void> {
    this.#isOpen = false
    await this.#last
  }
}

/** The owner may catch the error of a read, such as `not-found`. */
function isHarmlessRead(error: unknown): boolean {
  return error instanceof VersoError && !FATAL_READ_KINDS.includes(error.kind)
}
