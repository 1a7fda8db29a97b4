import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { BackupPace } from '../../src/service/backup/backup-pace.js'
import { enter, onEveryEngine, startService } from '../targets.js'

/** Longer than the interval in which the backup looks for writers. */
const ROUND_MS = 550
const ROUNDS = 3

onEveryEngine((engine) => {
  test('a backup pauses only while other clients write', async () => {
    const service = await startService(engine, { isNew: true })
    const client = await enter(service, 'direct')
    const runRounds = async (between: () => Promise<unknown>) => {
      const pace = new BackupPace(service.app.db)
      for (let round = 0; round < ROUNDS; round++) {
        await between()
        await sleep(ROUND_MS)
        await pace.pause()
      }
      return pace.pausedMs
    }
    expect(await runRounds(() => Promise.resolve())).toBe(0)
    expect(await runRounds(() => client.create('crm.Contact', { firstName: 'Ada' }))).toBeGreaterThan(0)
    await service.close()
  })
})
