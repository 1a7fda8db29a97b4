// Random sequences of writes, compared with their history.
import { expect } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { enter, preparedPlace, startService, type Engine } from '../targets.js'
import { HistoryWorld, seeded } from './history-fixture.js'

/** Differences between the history and the records as read at the time. */
export async function faultsOf(
  engine: Engine,
  seed: number,
  steps: number,
  twin: (db: Database) => Database = (db) => db,
): Promise<string[]> {
  const place = await preparedPlace(engine)
  const database = twin(await openDatabase(place.url, { poolSize: 4, statementTimeoutMs: 30_000 }))
  const service = await startService(engine, { place, database })
  try {
    const world = new HistoryWorld(await enter(service, 'direct'), service.clock, seeded(seed))
    for (let step = 0; step < steps; step++) await world.step()
    // Otherwise the test would check nothing.
    expect(world.seen.size).toBeGreaterThan(steps / 2)
    expect(world.returns).toBeGreaterThan(0)
    return await world.differences()
  } finally {
    await service.close()
    place.remove()
  }
}
