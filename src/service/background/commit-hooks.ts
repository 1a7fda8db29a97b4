// Runs the `afterCommit` hooks from the change log. Every node has one runner; a lease for each hook decides which node runs it.
import { EventEmitter, once } from 'node:events'
import { summarizeError, VersoError } from '../../errors.js'
import {
  countChangesAfter,
  findChangedModels,
  listConsumers,
  registerConsumers,
  takeConsumer,
  type ConsumerState,
} from '../../store/hooks/consumers.js'
import { listDueJobs } from '../../store/hooks/jobs.js'
import { HOOK_TABLE, listRegisteredNames } from '../../store/hooks/leases.js'
import { readLastSeq } from '../../store/log/feed.js'
import type { App } from '../context/app.js'
import { BACKGROUND_POLL_MS, finishOrAbort, LEASE_MS, sleepUnlessStopped } from './background-work.js'
import { listCommitConsumers, type CommitConsumer } from './commit-call.js'
import { CommitWorker } from './commit-worker.js'
import { LeasedConsumer, type ConsumerLease } from './leased-consumer.js'
import { NodeLeases } from './node-leases.js'

const DEFAULT_TIME_LIMIT_MS = 30_000
/** `settle` looks again after this time if another node does the work. */
const SETTLE_POLL_MS = 50
const PROGRESS = 'progress'

export interface CommitHookOptions {
  /** The time that one run of a hook has. */
  readonly timeLimitMs?: number
}

export interface CommitHooks {
  /** Starts no more runs, and waits a short time for those in progress. */
  stop(): Promise<void>
  /** Resolves when every Change that was committed before has run, or waits for a retry, or is dead. For tests. */
  settle(): Promise<void>
}

/**
 * Registers hooks that the database does not know. They begin with the Changes after this call, so it must resolve before the first write of
 * this App. Writes nothing if the database knows all hooks.
 */
export async function registerCommitHooks({ catalog, db, log }: App): Promise<void> {
  const names = listCommitConsumers(catalog).map(({ name }) => name)
  if (names.length === 0) return
  const known = await listRegisteredNames(db.reader, HOOK_TABLE)
  const added = names.filter((name) => !known.has(name))
  if (added.length === 0) return
  try {
    await db.transaction((tx) => registerConsumers(tx, added))
  } catch (error) {
    if (!(error instanceof VersoError)) throw error
    log.warn(
      summarizeError(error),
      'could not register new hooks; they begin with the changes after a later attempt',
    )
  }
}

/** Starts to run the hooks. */
export function startCommitHooks(app: App, options: CommitHookOptions = {}): CommitHooks {
  const consumers = listCommitConsumers(app.catalog)
  if (consumers.length === 0) return { stop: async () => undefined, settle: async () => undefined }
  const runner = new CommitHookRunner(app, consumers, options.timeLimitMs ?? DEFAULT_TIME_LIMIT_MS)
  runner.start()
  return runner
}

interface RunningConsumer {
  readonly worker: CommitWorker
  readonly lease: ConsumerLease
}

class CommitHookRunner implements CommitHooks {
  readonly #leases: NodeLeases
  readonly #models: readonly string[]
  readonly #running = new Map<string, RunningConsumer>()
  readonly #progress = new EventEmitter()
  readonly #stopping = new AbortController()
  readonly #abort = new AbortController()
  #loop = Promise.resolve()
  #polledAtMs = -Infinity
  /** Undefined before the first look: taking a lease requests the Changes before it. */
  #lastSeq: number | undefined

  constructor(
    private readonly app: App,
    private readonly consumers: readonly CommitConsumer[],
    private readonly timeLimitMs: number,
  ) {
    this.#leases = new NodeLeases(app, HOOK_TABLE)
    this.#models = [...new Set(consumers.map(({ model }) => model.name))]
    this.#progress.setMaxListeners(0)
  }

  start(): void {
    this.#loop = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#loop
    const stopped = [...this.#running.values()].map(({ worker }) => worker.stop())
    await finishOrAbort(stopped, this.#abort)
    await this.#leases.release()
  }

  async settle(): Promise<void> {
    const lastSeq = await readLastSeq(this.app.db.reader)
    while (!this.#stopping.signal.aborted && !(await this.#isSettled(lastSeq))) {
      for (const { worker } of this.#running.values()) {
        worker.requestPages()
        worker.requestRetries()
      }
      const timeout = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(SETTLE_POLL_MS)])
      await once(this.#progress, PROGRESS, { signal: timeout }).catch(() => undefined)
    }
  }

  async #isSettled(lastSeq: number): Promise<boolean> {
    const { db, clock } = this.app
    const states = new Map((await listConsumers(db.reader)).map((state) => [state.name, state]))
    for (const { name, model } of this.consumers) {
      const state = states.get(name)
      if (!state || (await countChangesAfter(db.reader, model.name, state.position, lastSeq)) > 0)
        return false
      if ((await listDueJobs(db.reader, name, clock.now(), 1)).length > 0) return false
    }
    return true
  }

  async #run(): Promise<void> {
    const { app } = this
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        await this.#wakeWorkers()
        if (performance.now() - this.#polledAtMs >= BACKGROUND_POLL_MS) await this.#poll()
        await app.changeWaiters.wait(this.#lastSeq ?? 0, BACKGROUND_POLL_MS, signal)
      } catch (error) {
        app.log.warn(summarizeError(error), 'could not look for work of hooks; it will be retried')
        await sleepUnlessStopped(BACKGROUND_POLL_MS, signal)
      }
    }
  }

  /** One statement for all hooks: a commit wakes only those whose model it changed. */
  async #wakeWorkers(): Promise<void> {
    const { db } = this.app
    const since = this.#lastSeq ?? (await readLastSeq(db.reader))
    const { models, lastSeq } = await findChangedModels(db.reader, db.dialect, this.#models, since)
    this.#lastSeq = lastSeq
    for (const { worker } of this.#running.values())
      if (models.has(worker.model) || worker.needsSave(lastSeq)) worker.requestPages()
  }

  /** Renews the leases of this node, takes free ones, and starts retries that are due. */
  async #poll(): Promise<void> {
    const { app } = this
    this.#polledAtMs = performance.now()
    await this.#renew()
    const states = await listConsumers(app.db.reader)
    if (this.consumers.some(({ name }) => !states.some((state) => state.name === name)))
      await registerCommitHooks(app)
    for (const consumer of this.consumers) {
      const state = states.find(({ name }) => name === consumer.name)
      if (state) await this.#follow(consumer, state)
    }
  }

  async #follow(consumer: CommitConsumer, state: ConsumerState): Promise<void> {
    const running = this.#running.get(consumer.name)
    const nowMs = this.app.clock.now()
    if (!running) {
      if (state.lease === null || state.leasedUntilMs <= nowMs) await this.#take(consumer)
    } else if (state.lease !== this.#leases.token || running.worker.isStopping) {
      // Runs in progress end first: this node may take the lease again.
      void running.worker.stop().then(() => this.#running.delete(consumer.name))
    } else if (state.nextJobMs !== null && state.nextJobMs <= nowMs) running.worker.requestRetries()
  }

  async #take(consumer: CommitConsumer): Promise<void> {
    const { app } = this
    const nowMs = app.clock.now()
    const lease = {
      table: HOOK_TABLE,
      name: consumer.name,
      token: this.#leases.token,
      untilMs: nowMs + LEASE_MS,
    } as const
    const position = await app.db.transaction((tx) =>
      takeConsumer(tx, lease, { nowMs, untilMs: lease.untilMs }),
    )
    if (position === undefined) return
    const leased = new LeasedConsumer(app, {
      consumer,
      lease,
      timeLimitMs: this.timeLimitMs,
      onProgress: () => this.#progress.emit(PROGRESS),
      abort: this.#abort.signal,
    })
    const worker = new CommitWorker(app, leased, position)
    this.#running.set(consumer.name, { worker, lease })
    worker.requestPages()
    worker.requestRetries()
  }

  /** A consumer without a worker keeps no lease, so that another node, or this one, takes it soon. */
  async #renew(): Promise<void> {
    const renewal = await this.#leases.renew([...this.#running.keys()])
    if (!renewal) return
    for (const { lease } of this.#running.values())
      if (renewal.held.has(lease.name)) lease.untilMs = renewal.untilMs
  }
}
