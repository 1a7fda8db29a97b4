// The processor time of this process. Other programs do not lengthen it.

/** Returns a function that returns the milliseconds since now. */
export function startProcessorClock(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
}

/** The milliseconds of synchronous work. */
export function processorTimeOf(work: () => void): number {
  const readMs = startProcessorClock()
  work()
  return readMs()
}

const PROBE_MS = 200

/** How many times longer work takes than its processor time, because others use the processor, too. It is 1 on a quiet machine. */
export function measureSlowness(): number {
  const startMs = performance.now()
  let used = 0
  while (used < PROBE_MS)
    used += processorTimeOf(() => {
      for (let count = 0; count < 1_000_000; count++) Math.sqrt(count)
    })
  return Math.max(1, (performance.now() - startMs) / used)
}
