// Loaded before the service, with --expose-gc: reports its memory after a full garbage collection when its parent asks for it.
import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 10 })
delay.enable()
process.on('message', () => {
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, rss, external } = process.memoryUsage()
  const descriptors = readdirSync('/proc/self/fd').length
  process.send({ heapUsed, rss, external, descriptors, delayP999Ms: delay.percentile(99.9) / 1e6 })
  delay.reset()
})
// The channel must not keep a service alive that stops.
process.channel.unref()
