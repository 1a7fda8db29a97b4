// Reads CPU time and memory of processes from /proc; undefined where there is no /proc.
import { readdirSync, readFileSync } from 'node:fs'

// USER_HZ is 100 on every Linux that Node runs on.
const TICK_US = 10_000

/** Lists a process and its descendants. */
export function listProcessTree(pid) {
  const parents = new Map()
  for (const name of listProcessFolders()) {
    const fields = readStatFields(name)
    if (fields) parents.set(Number(name), Number(fields[1]))
  }
  const tree = [pid]
  for (const parent of tree)
    for (const [child, its] of parents) if (its === parent && !tree.includes(child)) tree.push(child)
  return tree.filter((each) => parents.has(each))
}

/** Returns the CPU time of a process and its descendants, including those that have ended. */
export function readCpuUs(pid) {
  if (pid === undefined) return undefined
  const times = listProcessTree(pid).map((each) => {
    const fields = readStatFields(each)
    // utime, stime, and both for children that have ended.
    return fields ? [11, 12, 13, 14].reduce((sum, place) => sum + Number(fields[place]), 0) : 0
  })
  return times.length > 0 ? times.reduce((sum, time) => sum + time) * TICK_US : undefined
}

/**
 * Returns the CPU time of a process and its descendants from the scheduler, which counts nanoseconds. It leaves out
 * threads and processes that have ended, so it is for short turns of a server whose threads stay. Returns undefined
 * where the scheduler keeps no such statistics.
 */
export function readExactCpuUs(pid) {
  let nanoseconds = 0
  for (const each of listProcessTree(pid)) {
    for (const thread of listIfExists(`/proc/${each}/task`)) {
      const spent = readIfExists(`/proc/${each}/task/${thread}/schedstat`)?.split(' ', 1)[0]
      nanoseconds += Number(spent ?? 0)
    }
  }
  return nanoseconds > 0 ? nanoseconds / 1_000 : undefined
}

export function readRssMb(pid) {
  const status = readIfExists(`/proc/${pid}/status`)
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status ?? '')?.[1] ?? 0) / 1024
}

/** Returns the processor time that the host of a virtual machine has given to others since the start; 0 on other machines. */
export function readStolenUs() {
  const [, , , , , , , , stolen = 0] = (readIfExists('/proc/stat')?.split('\n', 1)[0] ?? '').split(/ +/)
  return Number(stolen) * TICK_US
}

/**
 * Returns the fields after the process name, which may contain any character. The first one is the state, field 3 of
 * the file.
 */
function readStatFields(pid) {
  const stat = readIfExists(`/proc/${pid}/stat`)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function listProcessFolders() {
  return listIfExists('/proc').filter((name) => /^\d+$/.test(name))
}

function listIfExists(folder) {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return []
    throw error
  }
}

function readIfExists(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  }
}
