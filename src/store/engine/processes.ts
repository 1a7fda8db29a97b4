// Other processes of this machine.
import { readFileSync } from 'node:fs'
import { readErrorCode } from './file-errors.js'

export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return readErrorCode(error) === 'EPERM'
  }
}

/** Identifies a process although its id is used again: the id of the boot, and the time of the start after it. Empty if unknown. */
export function readProcessStart(pid: number): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program is in parentheses, and may contain spaces. The start is field 22.
    return `${boot}/${stat.slice(stat.lastIndexOf(')')).split(' ')[20] ?? ''}`
  } catch {
    // The system has no /proc, or the process has ended.
    return ''
  }
}
