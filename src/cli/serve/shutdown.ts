// Shuts a server down: in order after a signal, immediately after a crash.
import type { Logger } from 'pino'
import { reportStrayError } from '../../service/background/background-task.js'

/** Counted from the end of the drain. */
const SHUTDOWN_TIMEOUT_MS = 20_000
/** A longer shutdown tells the user what it waits for. */
const SHUTDOWN_NOTICE_MS = 1_000
/**
 * npm forwards Ctrl-C although the terminal has sent it to the process already. A second signal within this time is the
 * same one.
 */
const REPEATED_SIGNAL_MS = 300

export interface ShutdownSteps {
  /** Adds a step that runs before the steps added so far. */
  prepend(step: () => Promise<void>): void
}

/** The first signal runs all steps and exits; a second one exits immediately. The steps may take `drainMs` longer than the time-out. */
export function shutDownOnSignals(log: Logger, drainMs: number): ShutdownSteps {
  const steps: (() => Promise<void>)[] = []
  let sinceMs: number | undefined
  const onSignal = (signal: string) => {
    if (sinceMs === undefined) {
      sinceMs = performance.now()
      log.info({ signal }, 'stopping')
      void runShutdown(log, steps, drainMs)
    } else if (performance.now() - sinceMs > REPEATED_SIGNAL_MS) {
      log.warn({ signal }, 'stopping immediately')
      process.exit(1)
    }
  }
  // SIGHUP: the terminal was closed.
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal).on('SIGHUP', onSignal)
  return { prepend: (step) => steps.unshift(step) }
}

async function runShutdown(
  log: Logger,
  steps: readonly (() => Promise<void>)[],
  drainMs: number,
): Promise<void> {
  if (drainMs > SHUTDOWN_NOTICE_MS)
    process.stdout.write(
      `accepting requests for another ${drainMs / 1_000} s (--drain); press Ctrl-C again to stop now\n`,
    )
  setTimeout(() => {
    process.stdout.write('finishing open requests; press Ctrl-C again to stop now\n')
  }, drainMs + SHUTDOWN_NOTICE_MS)
  setTimeout(() => {
    log.error('shutdown timed out: some requests did not finish')
    process.exit(1)
  }, drainMs + SHUTDOWN_TIMEOUT_MS)
  try {
    for (const step of steps) await step()
    process.stdout.write('stopped\n')
    process.exit(0)
  } catch (error) {
    log.error({ err: error }, 'shutdown failed')
    process.exit(1)
  }
}

/**
 * Exits on an uncaught error or an unhandled rejection, because the state of the process is unknown afterwards. One of a hook or a schedule is
 * only logged: they share no state with the service.
 */
export function exitOnCrash(log: Logger): void {
  process.on('uncaughtException', (error) => {
    if (reportStrayError(log, error)) return
    log.fatal({ err: error }, 'uncaught error: the process exits')
    process.exit(1)
  })
}
