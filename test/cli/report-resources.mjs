// Loaded into a process by --import: answers SIGUSR2 with a line on stderr about what the process holds.
import { readdirSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc')

process.on('SIGUSR2', () => {
  collectGarbage()
  const resources = {}
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1
  const listeners = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
  const report = {
    files: readdirSync('/proc/self/fd').length,
    resources,
    listeners,
    heapBytes: process.memoryUsage().heapUsed,
  }
  process.stderr.write(`resources ${JSON.stringify(report)}\n`)
})
