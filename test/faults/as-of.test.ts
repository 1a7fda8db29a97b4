// A find with asOf stays consistent while others write between its statements.
import { expect, test } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records } from '../../src/wire.js'
import { readingWithoutSnapshot } from '../mutants/history.js'
import { searchingBy } from '../query-pool.js'
import { enter, onEveryEngine, preparedLocation, startService, type Engine } from '../targets.js'
import { unshared } from '../queryables.js'

const CIRCLE = 'rel.Circle'

/** Finds as of an instant while another client updates, removes and creates a record after each statement. */
async function foundBetweenWrites(
  engine: Engine,
  mutant: (db: Database) => Database = (db) => db,
): Promise<{ readonly before: unknown; readonly was: unknown }> {
  const location = await preparedLocation(engine)
  const inner = mutant(await openDatabase(location.url, { poolSize: 9, statementTimeoutMs: 30_000 }))
  let between: (() => Promise<unknown>) | undefined
  const queryPool = searchingBy(inner.queryPool, (queryable) =>
    unshared({
      all: async (sql, params) => {
        const rows = await queryable.all(sql, params)
        await between?.()
        return rows
      },
    }),
  )
  const database: Database = {
    ...{
      dialect: inner.dialect,
      reader: inner.reader,
      queryPool,
      blobs: inner.blobs,
      commits: inner.commits,
      writability: () => inner.writability(),
      gauges: () => inner.gauges(),
      measure: () => inner.measure(),
    },
    transaction: (work, options) => inner.transaction(work, options),
    close: () => inner.close(),
  }
  const service = await startService(engine, { location, database })
  try {
    const records = await enter(service, 'direct')
    const made = await records.save(
      CIRCLE,
      Array.from({ length: 40 }, (_, index) => ({ name: `c${index}` })),
    )
    const ids = made.data.map(({ id }) => id)
    const before = await listOf(records)
    service.clock.advance(1_000)
    const asOf = new Date(service.clock.now()).toISOString()
    service.clock.advance(1_000)
    between = async () => {
      const [one, other] = [ids.pop() ?? 0, ids.shift() ?? 0]
      await records.update(CIRCLE, one, { version: 0, name: 'changed' })
      await records.remove(CIRCLE, other)
      await records.create(CIRCLE, { name: 'new' })
    }
    const was = await listOf(records, asOf)
    between = undefined
    return { before, was }
  } finally {
    await service.close()
    location.remove()
  }
}

async function listOf(records: Records, asOf?: string): Promise<unknown> {
  const { total, data } = await records.find(CIRCLE, { limit: 100, ...(asOf === undefined ? {} : { asOf }) })
  return { total, data }
}

onEveryEngine((engine) => {
  test('a find with asOf reads one consistent snapshot despite concurrent writes', async () => {
    const { before, was } = await foundBetweenWrites(engine)
    expect(was).toEqual(before)
  })

  test('the mutant that reads asOf without a snapshot is caught', async () => {
    const { before, was } = await foundBetweenWrites(engine, readingWithoutSnapshot)
    expect(was).not.toEqual(before)
  })
})
