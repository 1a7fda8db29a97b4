import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ANY_FAILURE, watchLog, type Failure } from '../server-failures.js'
import { PASSWORD, USERNAME } from '../targets.js'
import type * as mutants from '../mutants/records.js'
import type { Point } from './failpoints.js'

export interface ServerProcess {
  readonly url: string
  /** The error output. */
  readonly complaints: () => string
  isRunning(): boolean
  /** Reads the file SHIFT again. */
  shiftClock(): void
  /** SIGKILL: no handler runs, nothing is finished. */
  kill(): Promise<void>
  /** Makes the process kill itself when it reaches this point. */
  dieAt(point: Point): Promise<void>
  readonly gone: Promise<void>
}

/** See serve.mjs. */
interface ProcessOptions {
  readonly MODELS?: string
  readonly WEBHOOKS?: string
  readonly BACKGROUND?: string
  /** See test/hooks/marking-models.ts. */
  readonly MARKS?: string
  readonly HOLD?: string
  /** See shift-clock.mjs. */
  readonly SHIFT?: string
  readonly OWN_CLOCK?: string
  readonly expects?: readonly Failure[]
}

const script = fileURLToPath(new URL('serve.mjs', import.meta.url))

/** A node of the service in its own process; it ends with the tests in any case. */
export async function startServerProcess(
  db: string,
  mutant?: keyof typeof mutants,
  firstMutant?: keyof typeof mutants,
  { expects = mutant || firstMutant ? ANY_FAILURE : [], ...more }: ProcessOptions = {},
): Promise<ServerProcess> {
  const child = fork(script, [db, USERNAME, PASSWORD], {
    execArgv: [],
    env: {
      ...process.env,
      ...(mutant ? { MUTANT: mutant } : {}),
      ...(firstMutant ? { FIRST_MUTANT: firstMutant } : {}),
      ...more,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let [output, complaints] = ['', '']
  child.stderr?.on('data', (chunk: Buffer) => (complaints += chunk.toString()))
  child.stderr?.on('data', watchLog(expects))
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      const listening = /listening on (\S+)\n/.exec(output)?.[1]
      if (listening !== undefined) resolve(listening)
    })
    child.once('error', reject)
    void gone.then(() => reject(new Error(`the server did not start: ${complaints}`)))
  })
  return {
    url,
    complaints: () => complaints,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    shiftClock: () => {
      child.kill('SIGUSR2')
    },
    kill: async () => {
      child.kill('SIGKILL')
      await gone
    },
    dieAt: async (point) => {
      const isTold = new Promise((resolve) => child.once('message', resolve))
      child.send(point)
      await isTold
    },
    gone,
  }
}
