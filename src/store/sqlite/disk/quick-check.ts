// Checks the pages of a database after an unclean stop, beside the requests.
import { statSync } from 'node:fs'
import type { Queryable } from '../../engine/database.js'

export interface QuickCheckLimits {
  /** A larger file is not checked. */
  readonly sizeBytes: number
  /** The check is stopped after this time; 0 disables it. */
  readonly timeMs: number
}

/** `stopped`: by the time limit, or by an error of the check. */
export type QuickCheckOutcome =
  { readonly kind: 'passed' | 'too-large' | 'stopped' } | { readonly kind: 'damaged'; readonly error: Error }

export interface RunningQuickCheck {
  readonly isEnded: boolean
  stop(): Promise<void>
}

/** The checker runs statements in a process of its own, because only a process can be stopped in the middle of a statement. */
export function startQuickCheck(
  file: string,
  checker: Queryable & { close(): Promise<void> },
  limits: QuickCheckLimits,
  onEnded: (outcome: QuickCheckOutcome) => void,
): RunningQuickCheck {
  const running = { isEnded: false, isStopped: false }
  void quickCheck(file, limits, checker).then(async (outcome) => {
    if (running.isStopped) return
    running.isEnded = true
    onEnded(outcome)
    await checker.close()
  })
  return {
    get isEnded() {
      return running.isEnded
    },
    stop: async () => {
      running.isStopped = true
      await checker.close()
    },
  }
}

async function quickCheck(
  file: string,
  { sizeBytes }: QuickCheckLimits,
  db: Queryable,
): Promise<QuickCheckOutcome> {
  try {
    if (statSync(file).size > sizeBytes) return { kind: 'too-large' }
    const [row] = await db.all('pragma quick_check(1)')
    const finding = String(row?.['quick_check'])
    return finding === 'ok' ? { kind: 'passed' } : { kind: 'damaged', error: new Error(finding) }
  } catch {
    // The query pool has reported damage that the statement met. A file that is gone fails the next write.
    return { kind: 'stopped' }
  }
}
