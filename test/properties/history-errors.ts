// Random sequences of writes, compared with their history.
import { expect } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { enter, preparedLocation, startService, type Engine } from '../targets.js'
import { HistoryFixture, seeded } from './history-fixture.js'

/** Differences between the history and the records as read at the time. */
export async function faultsOf(
  engine: Engine,
  seed: number,
  steps: number,
  mutant: (db: Database) => Database = (db) => db,
): Promise<string[]> {
  const location = await preparedLocation(engine)
  const database = mutant(await openDatabase(location.url, { poolSize: 4, statementTimeoutMs: 30_000 }))
  const service = await startService(engine, { location, database })
  try {
    const fixture = new HistoryFixture(await enter(service, 'direct'), service.clock, seeded(seed))
    for (let step = 0; step < steps; step++) await fixture.step()
    // Otherwise the test would check nothing.
    expect(fixture.seen.size).toBeGreaterThan(steps / 2)
    expect(fixture.returns).toBeGreaterThan(0)
    return await fixture.differences()
  } finally {
    await service.close()
    location.remove()
  }
}
