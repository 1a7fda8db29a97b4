// For random sequences of writes, what history tells of every version and of every moment is what was read then.
import { expect, test } from 'vitest'
import type { Database } from '../../src/store/database.js'
import { openDatabase } from '../../src/store/open.js'
import { skippingOne, withoutBefore } from '../history-twins.js'
import { enter, newPlace, onEveryEngine, startService, type Engine } from '../targets.js'
import { HistoryWorld, seeded } from './history-world.js'

const STEPS = 60

async function faultsOf(
  engine: Engine,
  seed: number,
  twin: (db: Database) => Database = (db) => db,
): Promise<string[]> {
  const place = await newPlace(engine)
  const database = twin(await openDatabase(place.url, { poolSize: 4, statementTimeoutMs: 30_000 }))
  const service = await startService(engine, { place, database })
  try {
    const world = new HistoryWorld(await enter(service, 'direct'), service.clock, seeded(seed))
    for (let step = 0; step < STEPS; step++) await world.step()
    // Or nothing would be claimed.
    expect(world.seen.size).toBeGreaterThan(STEPS / 2)
    expect(world.returns).toBeGreaterThan(0)
    return await world.differences()
  } finally {
    await service.close()
    place.remove()
  }
}

onEveryEngine((engine) => {
  test.each([1, 2, 3])('every version and every moment is told as it was (seed %i)', async (seed) => {
    expect(await faultsOf(engine, seed)).toEqual([])
  })

  test.each([
    ['a Log without what was before', withoutBefore],
    ['a walk that skips one Change', skippingOne],
  ])('%s is noticed', async (_, twin) => {
    expect(await faultsOf(engine, 1, twin)).not.toEqual([])
  })
})
