import { readFileSync } from 'node:fs'

// USER_HZ: 100 on every Linux that Node runs on.
const TICK_US = 10_000

/** The CPU time that all threads of a process have used so far, and its memory; undefined where there is no /proc. */
export function usageOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Behind the name, which may hold anything: state is the third field, utime and stime are the 14th and 15th.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const rssKb = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1])
    return { cpuUs: (Number(fields[11]) + Number(fields[12])) * TICK_US, rssMb: rssKb / 1024 }
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  }
}
