// Lowers the priority of work that may take longer, so that the requests of a service on the same computer come first.
import { readdirSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { readErrorCode } from '../store/engine/file-errors.js'

const { PRIORITY_LOW } = constants.priority

/**
 * Applies to all threads of the process, and to the threads and processes that it starts later. Leaves out those that have ended, and those of
 * another user.
 */
export function lowerPriority(pid: number): void {
  ignoreSystemErrors(() => {
    setPriority(pid, PRIORITY_LOW)
  })
  // On Linux each thread has a priority of its own.
  if (process.platform !== 'linux') return
  ignoreSystemErrors(() => {
    for (const thread of readdirSync(`/proc/${pid}/task`))
      ignoreSystemErrors(() => {
        setPriority(Number(thread), PRIORITY_LOW)
      })
  })
}

function ignoreSystemErrors(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (readErrorCode(error) === '') throw error
  }
}
