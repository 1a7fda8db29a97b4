// Lists the positions and failed runs of `afterCommit` hooks for operators, and repeats failed runs.
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Database, Queryable } from '../../store/engine/database.js'
import { countChangesAfter, listConsumers } from '../../store/hooks/consumers.js'
import { countJobs, deleteJobs, listJobs, retryJobs } from '../../store/hooks/jobs.js'
import { listCommitConsumers } from './commit-call.js'

/** A Change for which a hook failed, or that waits behind such a Change of the same record. */
export interface FailedHook {
  readonly id: number
  /** `<model>/<name>` */
  readonly hook: string
  readonly record: number
  readonly seq: number
  readonly attempts: number
  /** Dead after the last attempt: it runs again only on request. */
  readonly state: 'waiting' | 'dead'
  /** In the past if it is due now. Null if it is dead, or waits behind another change. */
  readonly nextAttemptOn: string | null
  readonly error: string | null
}

/** Lists failed Changes in commit order. */
export async function listFailedHooks(db: Queryable, limit: number): Promise<FailedHook[]> {
  const heldUp = new Set<string>()
  return (await listJobs(db, limit)).map((job): FailedHook => {
    const { id, hook, record, seq, attempts, isDead, error } = job
    const key = `${record} ${hook}`
    const isNext = !isDead && !heldUp.has(key)
    if (isNext) heldUp.add(key)
    // A job that is due at once has no time.
    const nextMs = Math.max(job.nextMs, job.createdMs)
    return {
      id,
      hook,
      record,
      seq,
      attempts,
      state: isDead ? 'dead' : 'waiting',
      nextAttemptOn: isNext ? new Date(nextMs).toISOString() : null,
      error,
    }
  })
}

/** Lets failed Changes run again at once, in commit order for each record. Returns their number. */
export async function retryFailedHooks(db: Database, ids: readonly number[] | 'all'): Promise<number> {
  return db.transaction((tx) => retryJobs(tx, db.dialect, ids))
}

/** Gives up failed Changes: the hook never runs for them again. Returns their number. */
export async function discardFailedHooks(db: Database, ids: readonly number[] | 'all'): Promise<number> {
  return db.transaction((tx) => deleteJobs(tx, db.dialect, ids))
}

export interface HookLag {
  /** `<model>/<name>` */
  readonly hook: string
  readonly model: string
  /** The number of Changes that the hook has not reached. Null before a server has started with the hook. */
  readonly lag: number | null
  readonly waiting: number
  readonly dead: number
}

/** Describes how far each `afterCommit` hook of the catalog has come. */
export async function describeHookLag({
  catalog,
  db,
}: {
  readonly catalog: Catalog
  readonly db: Queryable
}): Promise<HookLag[]> {
  const states = new Map((await listConsumers(db)).map((state) => [state.name, state]))
  const counts = await countJobs(db)
  const lags: HookLag[] = []
  for (const { name, model } of listCommitConsumers(catalog)) {
    const state = states.get(name)
    lags.push({
      hook: name,
      model: model.name,
      lag: state ? await countChangesAfter(db, model.name, state.position) : null,
      waiting: counts.get(name)?.waiting ?? 0,
      dead: counts.get(name)?.dead ?? 0,
    })
  }
  return lags
}
