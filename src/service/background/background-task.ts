// Runs functions of the application outside of a request: hooks after the commit, and schedules. Whatever they throw, and whenever, ends neither
// the work of others nor the process.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Logger } from 'pino'
import { describeThrown } from '../../errors.js'
import { findScopeName } from '../context/hook-scope.js'

/** The fields of a log entry about a run, such as the name of the hook and the record. */
export interface BackgroundTask {
  readonly log: Logger
  /** The noun for messages; a hook or schedule by default. */
  readonly noun?: string
  readonly facts: Readonly<Record<string, unknown>>
}

export type RunOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: string }
  /** The service stops, and did not wait any longer. */
  | { readonly kind: 'interrupted' }

export interface RunLimits {
  /** Without it the run may take any time. */
  readonly timeLimitMs?: number
  readonly abort: AbortSignal
}

/** The task that runs; also in callbacks and promises that nobody awaits, and after the run has ended. */
const running = new AsyncLocalStorage<BackgroundTask>()

/** Runs the work until it ends, exceeds its time or is aborted. Logs its errors. Never throws. */
export async function runTask(
  task: BackgroundTask,
  work: () => unknown,
  { timeLimitMs, abort }: RunLimits,
): Promise<RunOutcome> {
  let isLeft = false
  const run = running
    .run(task, async () => work())
    .then(
      (): RunOutcome => ({ kind: 'done' }),
      (error: unknown): RunOutcome => {
        logTaskError(task, error, isLeft ? 'failed after its time limit' : 'failed')
        return { kind: 'failed', error: describeThrown(error) }
      },
    )
  const outcome = await new Promise<RunOutcome>((resolve) => {
    const end = (result: RunOutcome) => {
      clearTimeout(timer)
      abort.removeEventListener('abort', interrupt)
      resolve(result)
    }
    const interrupt = () => {
      end({ kind: 'interrupted' })
    }
    const timer =
      timeLimitMs === undefined
        ? undefined
        : setTimeout(() => {
            const error = `did not finish within ${timeLimitMs / 1_000} s`
            task.log.error({ ...task.facts, reason: error }, `${task.noun ?? TASK_NAME} failed`)
            end({ kind: 'failed', error })
          }, timeLimitMs)
    abort.addEventListener('abort', interrupt)
    if (abort.aborted) interrupt()
    void run.then(end)
  })
  isLeft = true
  return outcome
}

const TASK_NAME = 'a hook or schedule'

/** Never throws: the properties of an error can be getters that do. */
function logTaskError({ log, facts, noun = TASK_NAME }: BackgroundTask, error: unknown, what: string): void {
  const reason = describeThrown(error)
  const message = `${noun} ${what}`
  try {
    log.error({ ...facts, ...(error instanceof Error ? { err: error } : {}), reason }, message)
  } catch {
    log.error({ ...facts, reason }, message)
  }
}

/** Calls a route of the application. `reportStrayError` then logs the errors that it leaves behind as those of a route. */
export function callRouteInTask(task: Pick<BackgroundTask, 'log' | 'facts'>, call: () => void): void {
  running.run({ ...task, noun: 'a route' }, call)
}

/** Logs an error that a hook or a schedule left behind. Returns false if it came from elsewhere. */
export function reportStrayError(log: Logger, error: unknown): boolean {
  const task = running.getStore()
  const hook = findScopeName()
  if (!task && hook === undefined) return false
  const what = 'left a rejected promise, or threw an error, that nothing handles'
  logTaskError(task ?? { log, facts: { hook } }, error, what)
  return true
}

/** The logs of the apps that have hooks or schedules. */
const guarded = new Set<{ readonly log: Logger }>()

/**
 * Keeps rejections that hooks and schedules leave behind from ending the process. Every other one has the effect that it has without this.
 * Returns a function that removes the guard.
 */
export function guardProcess(log: Logger): () => void {
  const guard = { log }
  if (guarded.size === 0) process.on('unhandledRejection', onUnhandledRejection)
  guarded.add(guard)
  return () => {
    if (guarded.delete(guard) && guarded.size === 0) process.off('unhandledRejection', onUnhandledRejection)
  }
}

function onUnhandledRejection(reason: unknown): void {
  const [guard] = guarded
  if (guard && reportStrayError(guard.log, reason)) return
  // Node does this itself if nothing listens.
  if (process.listenerCount('unhandledRejection') === 1) throw reason
}
