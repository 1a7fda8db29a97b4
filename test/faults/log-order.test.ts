// A reader that follows the sequence numbers of the change log misses nothing: they are in commit order.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { App } from '../../src/service/context/app.js'
import type { Database } from '../../src/store/engine/database.js'
import { appendChanges, type NewChange } from '../../src/store/log/log.js'
import { LOG_TABLE } from '../../src/store/sql/log-insert.js'
import { changesSince } from '../log.js'
import { openDatabase } from '../../src/store/open.js'
import {
  enter,
  onEveryEngine,
  preparedLocation,
  startService,
  type Engine,
  type DatabaseLocation,
} from '../targets.js'
import { withoutLogLock } from '../mutants/records.js'

const WRITERS = 16
const WRITES_EACH = 15
const SLOW_MS = 30
const OPTIONS = { poolSize: WRITERS, statementTimeoutMs: 10_000 }

onEveryEngine((engine) => {
  let location: DatabaseLocation
  let observer: Database

  beforeEach(async () => {
    location = await preparedLocation(engine)
    observer = await openDatabase(location.url, OPTIONS)
  })
  afterEach(async () => {
    await observer.close()
    location.remove()
  })

  test(`a reader that follows ${WRITERS} writers and a slow one skips no change`, async () => {
    expect(await skippedChanges(engine, location, observer)).toEqual([])
  })

  test('a change is not visible before a change with a lower sequence number is committed', async () => {
    const service = await startService(engine, { location })
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

  // SQLite runs one write transaction at a time and needs no such lock.
  if (engine === 'postgres') {
    test('the mutant that assigns sequence numbers without the lock is caught', async () => {
      expect(await skippedChanges(engine, location, observer, withoutLogLock)).not.toEqual([])
    })
  }
})

const SLOW = 'test.Slow'

/** Appends to the change log in a transaction that commits on request. */
async function startSlowChange({ db, tables }: App, id: number): Promise<{ commit: () => Promise<void> }> {
  const change: NewChange = {
    model: SLOW,
    id,
    version: 0,
    action: 'create',
    userId: null,
    atMs: 0,
    changes: {},
  }
  const told = new AbortController()
  const hasBeenTold = once(told.signal, 'abort')
  let isCommitted = Promise.resolve()
  await new Promise<void>((resolve, reject) => {
    isCommitted = db.transaction(async (tx) => {
      await appendChanges(tx, tables, [change])
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

/** Sequence numbers that are in the change log at the end, but that a polling reader never got. */
async function skippedChanges(
  engine: Engine,
  location: DatabaseLocation,
  observer: Database,
  mutant: (db: Database) => Database = (db) => db,
): Promise<number[]> {
  const database = mutant(await openDatabase(location.url, OPTIONS))
  const service = await startService(engine, { location, database })
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
