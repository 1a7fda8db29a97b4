// The scope of a running hook, or of the work of a transaction: its name for messages, its time limit, and the handles that it must not use.
import { AsyncLocalStorage } from 'node:async_hooks'
import { VersoError } from '../../errors.js'

/** A hook in the transaction has this time. Waiting for a lock does not count. */
export const HOOK_TIMEOUT_MS = 1_000
/**
 * A hook in the transaction may await nothing but its records. While it waits for anything else, it holds locks: on SQLite nobody else can
 * write. So it is refused after this time, long before the limit of a hook that works.
 */
export const HOOK_IDLE_LIMIT_MS = 50
/** A statement that takes longer probably waits for a lock. The database limits that wait, and ends a deadlock. */
const LONGEST_COUNTED_STATEMENT_MS = 100
/** A pause of the whole process, such as a suspended computer, uses up at most this much. Computing is no pause. */
const LONGEST_COUNTED_PAUSE_MS = 500
const ACTIVITY_CHECK_MS = HOOK_IDLE_LIMIT_MS / 2

/** The code that runs in a transaction: a hook, or the work of a program. */
export interface ScopeOwner {
  /** For messages, such as `shop.Order.beforeSave`. */
  readonly name: string
  readonly kind: 'hook' | 'transaction'
}

interface HookScope {
  readonly owner: ScopeOwner
  /** Code that the hook has left behind, such as a timer, may use other records afterwards. */
  hasEnded: boolean
}

/** Shows whether a hook uses its records. */
export interface HookActivity {
  /** The time that counts for the limit, in milliseconds. */
  usedMs: number
  /** Grows with every call and every statement. */
  readonly steps: number
  /** True while a call has not ended. */
  readonly isCalling: boolean
  /** True while a call may wait for a lock that another transaction holds. */
  readonly mayWaitForLock: boolean
}

/** The messages by the kind of the owner. */
const ADVICE = {
  hook: {
    records: '(call) => call.records.of(…)',
    waiting: 'Move calls of other services, timers and files to afterCommit',
    slow: 'Read and write fewer records in it, or move its work to afterCommit',
  },
  transaction: {
    records: 'transaction(async (records) => records.of(…))',
    waiting: 'Call other services, timers and files before or after it',
    slow: 'Read and write fewer records in it',
  },
} as const

const scopes = new AsyncLocalStorage<HookScope>()

/** Returns the name of the hook, or transaction, that the current code is part of. */
export function findScopeName(): string | undefined {
  return scopes.getStore()?.owner.name
}

/**
 * Refuses records that belong to no transaction while a hook runs in one. Such a call would wait for the transaction, which waits for the
 * hook.
 */
export function refuseOuterRecords(): void {
  const scope = scopes.getStore()
  if (!scope || scope.hasEnded) return
  const { name, kind } = scope.owner
  throw new Error(
    `${name} must use the records that it gets: ${ADVICE[kind].records}. Other records would wait for this transaction, which waits for them`,
  )
}

/** Runs a hook in the transaction. Refuses the write if the hook takes too long, or waits for anything but its records. */
export async function runInScope<T>(
  owner: ScopeOwner,
  activity: HookActivity,
  run: () => T | Promise<T>,
): Promise<T> {
  const scope: HookScope = { owner, hasEnded: false }
  const startMs = performance.now()
  const running = scopes.run(scope, async () => run())
  // No timer runs while code computes without a pause.
  activity.usedMs += performance.now() - startMs
  // The hook may fail after it was refused. Nobody awaits it any more.
  running.catch(() => undefined)
  const watch = watchHook(owner, activity)
  try {
    const result = await Promise.race([running, watch.refused])
    watch.stop()
    if (activity.usedMs >= HOOK_TIMEOUT_MS) throw createTimeoutError(owner)
    return result
  } finally {
    scope.hasEnded = true
    watch.stop()
  }
}

interface HookWatch {
  /** Rejects when the hook is refused; never resolves. */
  readonly refused: Promise<never>
  stop(): void
}

function watchHook(owner: ScopeOwner, activity: HookActivity): HookWatch {
  let refuse: (error: VersoError) => void = () => undefined
  const refused = new Promise<never>((_, reject) => {
    refuse = reject
  })
  refused.catch(() => undefined)
  let seen = activity.steps
  let lastMs = performance.now()
  let lastCpu = process.cpuUsage()
  let [idleChecks, statementMs] = [0, 0]
  const count = () => {
    const nowMs = performance.now()
    const passedMs = nowMs - lastMs
    lastMs = nowMs
    const { user, system } = process.cpuUsage(lastCpu)
    lastCpu = process.cpuUsage()
    const countedMs = Math.min(passedMs, Math.max(LONGEST_COUNTED_PAUSE_MS, (user + system) / 1_000))
    const isSame = activity.steps === seen
    seen = activity.steps
    // Counts checks, not time: after a pause of the whole process the hook gets its turn first.
    idleChecks = isSame && !activity.isCalling ? idleChecks + 1 : 0
    statementMs = isSame && activity.mayWaitForLock ? statementMs + passedMs : 0
    if (statementMs <= LONGEST_COUNTED_STATEMENT_MS) activity.usedMs += countedMs
  }
  const timer = setInterval(() => {
    count()
    if (idleChecks * ACTIVITY_CHECK_MS >= HOOK_IDLE_LIMIT_MS) refuse(createIdleError(owner))
    else if (activity.usedMs >= HOOK_TIMEOUT_MS) refuse(createTimeoutError(owner))
  }, ACTIVITY_CHECK_MS)
  return {
    refused,
    stop: () => {
      clearInterval(timer)
      count()
    },
  }
}

function createIdleError({ name, kind }: ScopeOwner): VersoError {
  return new VersoError(
    'hook-failed',
    `${name} waited more than ${HOOK_IDLE_LIMIT_MS} ms for something other than its records. ${ADVICE[kind].waiting}; nothing was changed`,
  )
}

function createTimeoutError({ name, kind }: ScopeOwner): VersoError {
  return new VersoError(
    'hook-failed',
    `${name} did not finish within ${HOOK_TIMEOUT_MS} ms. ${ADVICE[kind].slow}; nothing was changed`,
  )
}
