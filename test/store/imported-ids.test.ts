// Records imported with their ids: the engine assigns ids after them, also during concurrent writes.
import pg from 'pg'
import { expect, test } from 'vitest'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { advanceIds } from '../../src/store/records/bulk.js'
import type { Dialect } from '../../src/store/engine/database.js'
import { statementsHeldUp } from '../faults/table-locks.js'
import { onEveryEngine, startService, type Service } from '../targets.js'

const MODEL = 'test.Note'
const FAR = 5_000_000_000
const WAITING = `select pid from pg_locks where not granted and locktype = 'advisory' and objid = 3
  and database = (select oid from pg_database where datname = current_database())`

async function create({ app }: Service): Promise<number> {
  return (await recordsForPrincipal(app, SERVICE_PRINCIPAL).create(MODEL, { title: 'x' })).data.id
}

async function pass({ app }: Service, id: number, dialect: Partial<Dialect> = {}): Promise<void> {
  const table = app.tables.of(app.catalog.get(MODEL))
  const changed = { model: table.model, dialect: { ...table.dialect, ...dialect } }
  await app.db.transaction((tx) => advanceIds(tx, { ...table, ...changed }, id))
}

/** The id assigned after each of these was passed. */
async function idsAfter(service: Service, passed: readonly number[], dialect?: Partial<Dialect>) {
  const ids: number[] = []
  for (const id of passed) {
    await pass(service, id, dialect)
    ids.push(await create(service))
  }
  return ids
}

onEveryEngine((engine) => {
  test('ids continue after a passed id, near or far, and never go back', async () => {
    const service = await startService(engine)
    expect(await idsAfter(service, [3, 1, 40, FAR, 41])).toEqual([4, 5, 41, FAR + 1, FAR + 2])
    await service.close()
  })

  test('no id is assigned twice to concurrent writers while ids are passed', async () => {
    const service = await startService(engine)
    const made: number[] = []
    const writers = Array.from({ length: 4 }, async () => {
      for (let round = 0; round < 10; round++) made.push(await create(service))
    })
    for (let id = 5; id <= 100; id += 5) await pass(service, id)
    await Promise.all(writers)
    expect(new Set(made).size).toBe(40)
    expect(await create(service)).toBeGreaterThan(100)
    await service.close()
  })
})

test('a mutant that goes back to the passed id is caught', async () => {
  const service = await startService('postgres')
  const goesBack = {
    advanceIds: (table: string, id: number) => [
      `select setval(pg_get_serial_sequence('"${table}"', 'id'), ${id})`,
    ],
  }
  expect(await idsAfter(service, [40, 3], goesBack)).toEqual([41, 4])
  await service.close()
})

/** Passes an id; while that waits for the lock, moves the sequence to another id. Returns the id assigned next. */
async function idAfterTwo(service: Service, id: number, other: number, dialect?: Partial<Dialect>) {
  const client = new pg.Client(service.location.url)
  await client.connect()
  try {
    await client.query('begin')
    await client.query('select pg_advisory_xact_lock(86730, 3)')
    let isOver = false
    const passing = pass(service, id, dialect).finally(() => (isOver = true))
    const hasEnded = () => isOver
    for (let isWaiting = false; !isWaiting;) {
      if (hasEnded()) throw new Error('it did not wait for its turn')
      isWaiting = (await client.query(WAITING)).rows.length > 0
    }
    await client.query(`select setval(pg_get_serial_sequence('"${MODEL}"', 'id'), ${other})`)
    await client.query('commit')
    await passing
    return await create(service)
  } finally {
    await client.end()
  }
}

test('on PostgreSQL two concurrent jumps of a sequence are serialized, and neither goes back', async () => {
  const service = await startService('postgres')
  expect(await idAfterTwo(service, 1_000_000, 5_000_000)).toBe(5_000_001)
  // The distance is small once the lock is granted.
  expect(await idAfterTwo(service, 6_000_000, 5_950_000)).toBe(6_000_001)
  await service.close()
})

test('a mutant that reads the sequence before it has the lock is caught', async () => {
  const service = await startService('postgres')
  const looksBefore = {
    advanceIds: (table: string, id: number) => [
      `with own as materialized (select last_value as last from pg_sequences where sequencename = 'test.Note_id_seq'),
        turn as materialized (select pg_advisory_xact_lock(86730, 3) from own)
        select setval(pg_get_serial_sequence('"${table}"', 'id'), ${id}) from own, turn where coalesce(last, 0) < ${id}`,
    ],
  }
  expect(await idAfterTwo(service, 1_000_000, 5_000_000, looksBefore)).toBe(1_000_001)
  await service.close()
})

test('on PostgreSQL passing ids blocks no writer, and a mutant that locks the table is caught', async () => {
  const service = await startService('postgres')
  const locks = { advanceIds: (table: string) => [`lock table "${table}" in share row exclusive mode`] }
  const { url } = service.location
  expect(await statementsHeldUp(url, () => idsAfter(service, [40, FAR]))).toEqual([])
  expect(await statementsHeldUp(url, () => pass(service, 1, locks))).toEqual([
    'lock table "test.Note" in share row exclusive mode',
  ])
  await service.close()
})
