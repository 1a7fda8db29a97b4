// Runs one `afterCommit` function over the Changes of its model, as long as this node has the lease of the consumer.
import { summarizeError } from '../../errors.js'
import { findLoggedChanges, moveConsumer } from '../../store/hooks/consumers.js'
import {
  deleteJob,
  findWaitingRecords,
  insertJobs,
  listDueJobs,
  postponeJob,
  type HookJob,
  type NewHookJob,
} from '../../store/hooks/jobs.js'
import { readFeedPage } from '../../store/log/feed.js'
import type { Change } from '../../wire.js'
import type { App } from '../context/app.js'
import {
  BACKGROUND_POLL_MS,
  computeBackoff,
  runConcurrently,
  SingleFlight,
  sleepUnlessStopped,
} from './background-work.js'
import type { RunOutcome } from './background-task.js'
import { createRevisionReader } from './commit-call.js'
import type { LeasedConsumer } from './leased-consumer.js'

const PAGE_CHANGES = 100
const MAX_CONCURRENT_RECORDS = 8
/** Retries have places of their own, so that records whose hook hangs do not hold back the others. */
const MAX_CONCURRENT_RETRIES = 4
/** After this many attempts a job is dead. */
export const MAX_HOOK_ATTEMPTS = 10
/** The minimum interval between saves of the position while no Change is of the model. */
const POSITION_SAVE_INTERVAL_MS = 5_000

export class CommitWorker {
  readonly #pages = new SingleFlight(() => this.#repeatOnError(() => this.#runPages()))
  readonly #retries = new SingleFlight(() => this.#repeatOnError(() => this.#runRetries()))
  /** The records with a run in progress, or with one whose result is not stored yet. */
  readonly #busyRecords = new Set<number>()
  /** May be ahead of the stored position if no Change in between is of the model. */
  #scannedSeq: number
  #storedSeq: number
  #storedAtMs = performance.now()
  #reportedFloor = 0

  constructor(
    private readonly app: App,
    private readonly consumer: LeasedConsumer,
    /** The position that the database had when the lease was taken. */
    position: number,
  ) {
    this.#scannedSeq = this.#storedSeq = position
  }

  get model(): string {
    return this.consumer.model.name
  }

  /** True if the worker may have left the stored position behind for a while. */
  needsSave(lastSeq: number): boolean {
    return lastSeq > this.#storedSeq && performance.now() - this.#storedAtMs > POSITION_SAVE_INTERVAL_MS
  }

  /** Runs the Changes after the position, now or after the current ones. */
  requestPages(): void {
    if (!this.isStopping) this.#pages.request()
  }

  /** Runs the jobs that are due. */
  requestRetries(): void {
    if (!this.isStopping) this.#retries.request()
  }

  get isStopping(): boolean {
    return this.consumer.stopping.aborted
  }

  /** Starts no more runs. Resolves after those in progress have ended. */
  async stop(): Promise<void> {
    this.consumer.stop()
    await this.#pages.finish()
    await this.#retries.finish()
  }

  async #repeatOnError(run: () => Promise<void>): Promise<void> {
    try {
      await run()
    } catch (error) {
      const { name, stopping } = this.consumer
      this.app.log.warn({ hook: name, ...summarizeError(error) }, 'a hook was held up; it will be retried')
      await sleepUnlessStopped(BACKGROUND_POLL_MS, stopping)
      this.requestPages()
    }
  }

  async #runPages(): Promise<void> {
    const { db } = this.app
    for (let isLast = false; !isLast && !this.isStopping;) {
      const query = { since: this.#scannedSeq, limit: PAGE_CHANGES, models: [this.model] }
      const page = await readFeedPage(db.queryPool, db.dialect, query)
      this.#reportLostChanges(page.retentionFloor)
      isLast = page.changes.length < PAGE_CHANGES && !page.isTruncated
      const next = isLast ? page.lastSeq : (page.changes.at(-1)?.seq ?? page.lastSeq)
      if (page.changes.length > 0)
        await this.#runPage(
          page.changes.filter((change) => this.#hasContent(change)),
          next,
        )
      else if (this.needsSave(next)) await this.#storePage([], next)
      this.#scannedSeq = Math.max(this.#scannedSeq, next)
    }
  }

  #reportLostChanges(floor: number): void {
    if (floor <= Math.max(this.#scannedSeq, this.#reportedFloor)) return
    this.#reportedFloor = floor
    this.app.log.error(
      { hook: this.consumer.name, position: this.#scannedSeq, floor },
      'the change log was compacted before a hook has read it: the hook does not run for the removed changes',
    )
  }

  async #runPage(changes: readonly Change[], next: number): Promise<void> {
    const { db } = this.app
    const byRecord = groupByRecord(changes)
    const ids = [...byRecord.keys()]
    const waiting = await findWaitingRecords(db.reader, db.dialect, this.consumer.name, ids)
    const jobs: NewHookJob[] = []
    const groups: (readonly Change[])[] = []
    for (const [id, group] of byRecord) {
      if (waiting.has(id) || this.#busyRecords.has(id)) jobs.push(...group.map((each) => this.#toJob(each)))
      else groups.push(group)
    }
    for (const [first] of groups) if (first) this.#busyRecords.add(first.id)
    try {
      await runConcurrently(groups, MAX_CONCURRENT_RECORDS, async (group) => {
        jobs.push(...(await this.#runInOrder(group)))
      })
      await this.#storePage(jobs, next)
    } finally {
      for (const [first] of groups) if (first) this.#busyRecords.delete(first.id)
    }
    if (jobs.length > 0) this.requestRetries()
  }

  /** Runs the Changes of one record up to the first failure. Returns the jobs for it and for the Changes behind it. */
  async #runInOrder(changes: readonly Change[]): Promise<NewHookJob[]> {
    const readRevision = createRevisionReader(this.app, this.consumer.model, changes)
    for (const [index, change] of changes.entries()) {
      const outcome = await this.consumer.run(change, 1, readRevision)
      if (outcome.kind === 'done') continue
      const behind = changes.slice(index + 1).map((each) => this.#toJob(each))
      return [this.#toJob(change, outcome), ...behind]
    }
    return []
  }

  #toJob({ seq, id }: Change, outcome?: RunOutcome): NewHookJob {
    const nowMs = this.app.clock.now()
    const job = { hook: this.consumer.name, seq, record: id, createdMs: nowMs }
    return outcome?.kind === 'failed'
      ? { ...job, attempts: 1, nextMs: nowMs + computeBackoff(1), error: outcome.error }
      : { ...job, attempts: 0, nextMs: 0, error: null }
  }

  /** One transaction stores the jobs and the position, so that no Change is lost or has two jobs. */
  async #storePage(jobs: readonly NewHookJob[], next: number): Promise<void> {
    const isStored = await this.consumer.store(async (tx) => {
      await moveConsumer(tx, this.consumer.name, next)
      await insertJobs(tx, jobs)
    })
    if (isStored) [this.#storedSeq, this.#storedAtMs] = [next, performance.now()]
  }

  async #runRetries(): Promise<void> {
    const { app } = this
    const { name } = this.consumer
    while (!this.isStopping) {
      const due = await listDueJobs(app.db.queryPool, name, app.clock.now(), PAGE_CHANGES)
      const jobs = due.filter(({ record }) => !this.#busyRecords.has(record))
      if (jobs.length === 0) return
      // A page may run a record again after its retry. Only the others are released at the end.
      const held = new Set(jobs.map(({ record }) => record))
      const release = (record: number) => {
        if (held.delete(record)) this.#busyRecords.delete(record)
      }
      for (const record of held) this.#busyRecords.add(record)
      try {
        const seqs = jobs.map(({ seq }) => seq)
        const changes = await findLoggedChanges(app.db.reader, app.db.dialect, seqs)
        await runConcurrently(jobs, MAX_CONCURRENT_RETRIES, async (job) => {
          await this.#retry(job, changes.get(job.seq))
          release(job.record)
        })
      } finally {
        held.forEach(release)
      }
    }
  }

  async #retry(job: HookJob, change: Change | undefined): Promise<void> {
    const attempts = job.attempts + 1
    const outcome: RunOutcome = change
      ? await this.consumer.run(
          change,
          attempts,
          createRevisionReader(this.app, this.consumer.model, [change]),
        )
      : { kind: 'failed', error: `change ${job.seq} is no longer in the change log` }
    if (outcome.kind === 'interrupted') return
    await this.consumer.store(async (tx) => {
      if (outcome.kind === 'done') return deleteJob(tx, job.id)
      const isDead = attempts >= MAX_HOOK_ATTEMPTS || !change
      const nextMs = this.app.clock.now() + computeBackoff(attempts)
      return postponeJob(tx, { id: job.id, attempts, nextMs, error: outcome.error, isDead })
    })
  }

  /**
   * False for an update that gave the record a new version and changed nothing. The Log has no secrets, so an empty update of a model with
   * secrets may have changed one.
   */
  #hasContent({ action, changes, purged }: Change): boolean {
    return (
      action !== 'update' || purged === true || Object.keys(changes).length > 0 || this.consumer.hasSecrets
    )
  }
}

function groupByRecord(changes: readonly Change[]): Map<number, Change[]> {
  const groups = new Map<number, Change[]>()
  for (const change of changes) {
    const group = groups.get(change.id)
    if (group) group.push(change)
    else groups.set(change.id, [change])
  }
  return groups
}
