// Whoever follows the Log by its numbers misses nothing: the numbers are in the order of the commits.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { App } from '../../src/service/app.js'
import type { Database } from '../../src/store/database.js'
import { append, LOG_TABLE, type NewChange } from '../../src/store/log.js'
import { changesSince } from '../log.js'
import { openDatabase } from '../../src/store/open.js'
import { enter, onEveryEngine, preparedPlace, startService, type Engine, type Place } from '../targets.js'
import { withoutLogLock } from '../twins.js'

const WRITERS = 16
const WRITES_EACH = 15
const SLOW_MS = 30
const OPTIONS = { poolSize: WRITERS, statementTimeoutMs: 10_000 }

onEveryEngine((engine) => {
  let place: Place
  let observer: Database

  beforeEach(async () => {
    place = await preparedPlace(engine)
    observer = await openDatabase(place.url, OPTIONS)
  })
  afterEach(async () => {
    await observer.close()
    place.remove()
  })

  test(`a reader that follows ${WRITERS} writers and a slow one skips nothing`, async () => {
    expect(await skippedChanges(engine, place, observer)).toEqual([])
  })

  test('a Change is not shown before one with a lower number, however late that is committed', async () => {
    const service = await startService(engine, { place })
    const records = await enter(service, 'direct')
    const [last = 0] = (await changesSince(observer.reader, 0, 100)).map(({ seq }) => seq).slice(-1)
    const shown = async () => (await changesSince(observer.reader, last, 100)).map(({ model }) => model)

    const slow = await startSlowChange(service.app, 1)
    const next = records.create('crm.Contact', { firstName: 'next' })
    await sleep(200)
    expect(await shown()).toEqual([])
    await Promise.all([slow.commit(), next])
    expect(await shown()).toEqual([SLOW, 'crm.Contact'])
    await service.close()
  })

  // SQLite writes one transaction after the other: it has no such lock to lose.
  if (engine === 'postgres') {
    test('a Log whose numbers are given as they come is caught', async () => {
      expect(await skippedChanges(engine, place, observer, withoutLogLock)).not.toEqual([])
    })
  }
})

const SLOW = 'test.Slow'

/** A transaction that has appended to the Log, and commits when it is told to. */
async function startSlowChange({ db, tables }: App, id: number): Promise<{ commit: () => Promise<void> }> {
  const change: NewChange = { model: SLOW, id, version: 0, action: 'create', by: null, atMs: 0, changes: {} }
  const told = new AbortController()
  const hasBeenTold = once(told.signal, 'abort')
  let isCommitted = Promise.resolve()
  await new Promise<void>((resolve, reject) => {
    isCommitted = db.transaction(async (tx) => {
      await append(tx, tables, [change])
      resolve()
      await hasBeenTold
    })
    isCommitted.catch(reject)
  })
  return {
    commit: () => {
      told.abort()
      return isCommitted
    },
  }
}

/** Numbers that are in the Log at the end, and that a reader did not get who asked for those after the last it had. */
async function skippedChanges(
  engine: Engine,
  place: Place,
  observer: Database,
  twin: (db: Database) => Database = (db) => db,
): Promise<number[]> {
  const database = twin(await openDatabase(place.url, OPTIONS))
  const service = await startService(engine, { place, database })
  const records = await enter(service, 'direct')
  let [isWritten, isOver] = [false, false]
  const write = async (writer: number) => {
    for (let i = 0; i < WRITES_EACH; i++) await records.create('crm.Contact', { firstName: `${writer}/${i}` })
  }
  const writeSlowly = async () => {
    for (let id = 1; !isWritten; id++) {
      const slow = await startSlowChange(service.app, id)
      await sleep(SLOW_MS)
      await slow.commit()
    }
  }
  const follower = follow(observer, () => isOver)
  const slowWriter = writeSlowly()
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
  isWritten = true
  await slowWriter
  isOver = true
  const seen = await follower
  const stored = await observer.reader.all(`select seq from ${LOG_TABLE}`)
  await service.close()
  return stored.map((row) => Number(row['seq'])).filter((seq) => !seen.has(seq))
}

async function follow(db: Database, isOver: () => boolean): Promise<Set<number>> {
  const seen = new Set<number>()
  let last = 0
  const poll = async () => {
    const changes = await changesSince(db.reader, last, 50)
    for (const { seq } of changes) seen.add((last = seq))
    return changes.length
  }
  while (!isOver()) {
    await poll()
    await sleep(1)
  }
  while ((await poll()) > 0) continue
  return seen
}
