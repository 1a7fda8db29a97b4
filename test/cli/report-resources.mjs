// Loaded into a process by --import: answers SIGUSR2 with a line on stderr about what the process holds. `connections` are those to SQLite, each of which has opened the WAL.
import { readdirSync, readlinkSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const DESCRIPTORS = '/proc/self/fd'
const FINALIZE_MS = 50

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc')

/** The targets of all open descriptors. */
function listFiles() {
  return readdirSync(DESCRIPTORS).map((name) => {
    try {
      return readlinkSync(`${DESCRIPTORS}/${name}`)
    } catch {
      // The descriptor of the folder itself.
      return ''
    }
  })
}

process.on('SIGUSR2', async () => {
  // The driver closes a connection when its last statement is finalized, which Node does after a garbage collection.
  for (let round = 0; round < 3; round++) {
    collectGarbage()
    await new Promise((resolve) => setTimeout(resolve, FINALIZE_MS))
  }
  const resources = {}
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1
  const listeners = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
  const report = {
    files: listFiles().length,
    connections: listFiles().filter((target) => target.endsWith('-wal')).length,
    resources,
    listeners,
    heapBytes: process.memoryUsage().heapUsed,
  }
  process.stderr.write(`resources ${JSON.stringify(report)}\n`)
})
