import { test } from 'vitest'
import { Session } from 'node:inspector/promises'
import { writeFileSync } from 'node:fs'
import { startService, preparedLocation } from '/work/main/test/targets.js'
for (const engine of ['postgres'] as const)
test('cost ' + engine, async () => {
  await (await startService(engine)).close()
  const s = new Session(); s.connect(); await s.post('Profiler.enable'); await s.post('Profiler.start')
  const c0 = process.cpuUsage(); const N = 20
  let starts = 0, closes = 0, loc = 0
  const cpu = () => { const c = process.cpuUsage(); return (c.user + c.system) / 1000 }
  for (let i = 0; i < N; i++) {
    let a = cpu()
    const l = await preparedLocation(engine)
    loc += cpu() - a; a = cpu()
    const service = await startService(engine, {location: l}); starts += cpu() - a
    a = cpu(); await service.close(); closes += cpu() - a; l.remove()
  }
  const { profile } = await s.post('Profiler.stop')
  writeFileSync(`/tmp/slim/prof-${engine}.json`, JSON.stringify(profile))
  console.log(engine, 'loc', loc/N, 'start', starts / N, 'close', closes / N)
})
