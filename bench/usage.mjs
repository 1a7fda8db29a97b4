// What processes have used so far, from /proc; undefined where there is none.
import { readdirSync, readFileSync } from 'node:fs'

// USER_HZ: 100 on every Linux that Node runs on.
const TICK_US = 10_000

/** A process and all that it has started, directly or not. */
export function treeOf(pid) {
  const parents = new Map()
  for (const name of folders()) {
    const fields = fieldsOf(name)
    if (fields) parents.set(Number(name), Number(fields[1]))
  }
  const tree = [pid]
  for (const parent of tree)
    for (const [child, its] of parents) if (its === parent && !tree.includes(child)) tree.push(child)
  return tree.filter((each) => parents.has(each))
}

/** The CPU time of a process and all that it has started, those that have ended meanwhile included. */
export function cpuUsOf(pid) {
  if (pid === undefined) return undefined
  const times = treeOf(pid).map((each) => {
    const fields = fieldsOf(each)
    // utime, stime, and the same of children that have ended.
    return fields ? [11, 12, 13, 14].reduce((sum, place) => sum + Number(fields[place]), 0) : 0
  })
  return times.length > 0 ? times.reduce((sum, time) => sum + time) * TICK_US : undefined
}

export function rssMbOf(pid) {
  const status = read(`/proc/${pid}/status`)
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status ?? '')?.[1] ?? 0) / 1024
}

/** Behind the name, which may hold anything: the first is the state, the third field of the file. */
function fieldsOf(pid) {
  const stat = read(`/proc/${pid}/stat`)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function folders() {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}

function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  }
}
