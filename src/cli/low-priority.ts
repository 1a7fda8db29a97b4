// Lowers the priority of work that may take longer, so that the requests of a service on the same computer come first.
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { promisify } from 'node:util'
import { readErrorCode } from '../store/engine/file-errors.js'

const { PRIORITY_LOW } = constants.priority
const CHRT_TIMEOUT_MS = 5_000

/** Applies to all threads of the process, and to the threads and processes that it starts later. Does nothing if the process has ended. */
export async function lowerPriority(pid: number): Promise<void> {
  try {
    setPriority(pid, PRIORITY_LOW)
    if (process.platform !== 'linux') return
    // On Linux each thread has a priority of its own.
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), PRIORITY_LOW)
    // A thread with low priority may still run for milliseconds while another one waits; one with the policy `idle` does not.
    const flags = ['--all-tasks', '--idle', '--pid', '0', String(pid)]
    await promisify(execFile)('chrt', flags, { timeout: CHRT_TIMEOUT_MS })
  } catch (error) {
    // The process has ended, or the program `chrt` is missing or cannot change it: the low priority must do.
    if (readErrorCode(error) === '') throw error
  }
}
