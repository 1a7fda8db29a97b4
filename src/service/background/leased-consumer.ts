// One `afterCommit` function whose lease this node has: runs it for a Change, and stores results as long as the lease is held.
import { describeThrown, summarizeError } from '../../errors.js'
import type { CommitCall } from '../../model/definition/hooks.js'
import type { Model } from '../../model/definition/model.js'
import type { Transaction } from '../../store/engine/database.js'
import { lockLease, renewLeases, type NamedLease } from '../../store/hooks/leases.js'
import type { Change } from '../../wire.js'
import type { App } from '../context/app.js'
import { LEASE_MS } from './background-work.js'
import { runTask, type RunOutcome } from './background-task.js'
import { buildCommitCall, type CommitConsumer, type RevisionReader } from './commit-call.js'
import { storeResult } from './node-leases.js'

/** The lease of the consumer. `untilMs` follows its renewals. */
export interface ConsumerLease extends NamedLease {
  untilMs: number
}

export interface LeasedConsumerOptions {
  readonly consumer: CommitConsumer
  readonly lease: ConsumerLease
  readonly timeLimitMs: number
  /** Called after something was stored. */
  readonly onProgress: () => void
  /** Aborts runs in progress, and attempts to store. */
  readonly abort: AbortSignal
}

export class LeasedConsumer {
  readonly #stopping = new AbortController()
  readonly hasSecrets: boolean

  constructor(
    private readonly app: App,
    private readonly options: LeasedConsumerOptions,
  ) {
    this.hasSecrets = [...this.model.fields.values()].some(({ secret }) => secret !== undefined)
  }

  get name(): string {
    return this.options.consumer.name
  }

  get model(): Model {
    return this.options.consumer.model
  }

  /** Aborts when no more runs may start: the service stops, or the lease is lost. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  stop(): void {
    this.#stopping.abort()
  }

  /** Runs the function for a Change. An error while its call is built is a failure of this Change, and of no other. Never throws. */
  async run(change: Change, attempt: number, readRevision: RevisionReader): Promise<RunOutcome> {
    const { app } = this
    const { consumer, timeLimitMs, abort } = this.options
    if (!(await this.#mayRun())) return { kind: 'interrupted' }
    const facts = { hook: consumer.name, model: change.model, record: change.id, seq: change.seq, attempt }
    const ended = new AbortController()
    let call: CommitCall
    try {
      const run = { attempt, signal: ended.signal }
      call = await buildCommitCall(app, consumer.model, await readRevision(change), run)
    } catch (error) {
      app.log.error({ ...facts, ...summarizeError(error) }, 'could not read the change for a hook')
      return { kind: 'failed', error: describeThrown(error) }
    }
    const outcome = await runTask({ log: app.log, facts }, () => consumer.run(call), { timeLimitMs, abort })
    ended.abort()
    return outcome
  }

  /** False after the lease was lost. A process that was suspended finds that out here. */
  async #mayRun(): Promise<boolean> {
    const { app, stopping } = this
    const { lease } = this.options
    if (stopping.aborted || app.clock.now() < lease.untilMs) return !stopping.aborted
    const untilMs = app.clock.now() + LEASE_MS
    try {
      const names = [lease.name]
      const isRenewed = await this.#storeOnce((tx) =>
        renewLeases(tx, app.db.dialect, lease, { names, untilMs }),
      )
      if (isRenewed) lease.untilMs = untilMs
      return isRenewed && !stopping.aborted
    } catch (error) {
      // Another node may have taken the lease by now.
      this.#stopping.abort()
      this.#warn(error, 'could not renew the expired lease of a hook; it will be taken again')
      return false
    }
  }

  /** Returns false, and stores nothing, if another node has taken the lease or the service stops. */
  async store(work: (tx: Transaction) => Promise<unknown>): Promise<boolean> {
    const isStored = await storeResult(
      () => this.#storeOnce(work),
      this.options.abort,
      (error) => {
        this.#warn(error, 'could not store the result of a hook; it will be retried')
      },
    )
    return isStored === true
  }

  async #storeOnce(work: (tx: Transaction) => Promise<unknown>): Promise<boolean> {
    const { db } = this.app
    const isOurs = await db.transaction(async (tx) => {
      const isHeld = await lockLease(tx, db.dialect, this.options.lease)
      if (isHeld) await work(tx)
      return isHeld
    })
    if (!isOurs) this.#stopping.abort()
    this.options.onProgress()
    return isOurs
  }

  #warn(error: unknown, message: string): void {
    this.app.log.warn({ hook: this.name, ...summarizeError(error) }, message)
  }
}
