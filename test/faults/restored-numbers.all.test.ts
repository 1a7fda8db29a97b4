// After a restore, no version, ETag, id or cursor that a client holds from before matches other content.
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { restoreBackup } from '../../src/service/backup/restore.js'
import { openDatabase } from '../../src/store/open.js'
import { backupOf, DATABASE_OPTIONS, withClaim } from '../transfer/backup-fixture.js'
import { Findings, STORAGE_CHECKS } from '../../src/service/maintenance/verification.js'
import { readNextMessage } from '../../src/service/webhooks/message.js'
import { raiseRestoredNumbers } from '../../src/service/maintenance/restored-numbers.js'
import {
  enter,
  newLocation,
  onEveryEngine,
  preparedLocation,
  startService,
  type DatabaseLocation,
  type Engine,
} from '../targets.js'
import { seeded } from '../properties/history-fixture.js'
import { findFalseMatches, holdNothing, logIn, writeAtRandom, type HeldNumbers } from './held-numbers.js'

const STEPS = 12
/** The clock of the next restore. */
const HOUR_MS = 3_600_000

const WEBHOOK = {
  id: 1,
  url: 'http://127.0.0.1/',
  secret: null,
  models: ['crm.Contact'],
  userId: null,
  isPaused: false,
  cursor: 0,
  retryUntilSeq: null,
  failures: 0,
  nextAttemptMs: 0,
  leasedUntilMs: 0,
}

interface Line {
  readonly engine: Engine
  readonly random: () => number
  readonly held: HeldNumbers
}

/** Serves a database, writes at random, and keeps what clients see. */
async function serveFor({ engine, random, held }: Line, location: DatabaseLocation): Promise<void> {
  const service = await startService(engine, { location })
  await writeAtRandom(await logIn(service), random, STEPS, held)
  await service.close()
}

type Raise = typeof raiseRestoredNumbers | undefined

/** Restores a copy of the database, checks the numbers that clients hold, writes, and checks again. */
async function restore(
  line: Line,
  backup: DatabaseLocation,
  raise: Raise,
  aheadMs: number,
): Promise<{ restored: DatabaseLocation; matches: string[] }> {
  const { engine, random, held } = line
  const restored = await newLocation(engine, backup.url)
  const service = await startService(engine, { location: restored })
  service.clock.advance(aheadMs)
  await withClaim(service.app.db, async (claim) => raise?.(service.app, claim, 'test'))
  const client = await logIn(service)
  const matches = await findFalseMatches(client, held)
  const later = holdNothing()
  await writeAtRandom(client, random, STEPS, later)
  matches.push(...(await findFalseMatches(client, held)))
  const ids = new Set(held.versions.filter(({ version }) => version === 0).map(({ id }) => id))
  for (const { id, version } of later.versions)
    if (version === 0 && ids.has(id)) matches.push(`the id ${id} is assigned again`)
  for (const check of Object.values(STORAGE_CHECKS)) {
    const findings = new Findings()
    await check(service.app, findings)
    matches.push(...findings.lines)
  }
  await service.close()
  held.versions.push(...later.versions)
  for (const cursor of later.cursors) held.cursors.add(cursor)
  return { restored, matches }
}

async function findMatchesAfterRestores(engine: Engine, seed: number, raise: Raise): Promise<string[]> {
  const line: Line = { engine, random: seeded(seed), held: holdNothing() }
  const source = await preparedLocation(engine)
  await serveFor(line, source)
  const first = await newLocation(engine, source.url)
  await serveFor(line, source)
  const second = await newLocation(engine, source.url)
  await serveFor(line, source)
  // An old backup, a backup of what was restored from it, a newer backup, and the old one once more.
  const one = await restore(line, first, raise, 0)
  const third = await newLocation(engine, one.restored.url)
  const two = await restore(line, third, raise, 1)
  const three = await restore(line, second, raise, 2)
  const four = await restore(line, first, raise, HOUR_MS)
  for (const location of [
    source,
    first,
    second,
    third,
    one.restored,
    two.restored,
    three.restored,
    four.restored,
  ])
    location.remove()
  return [one, two, three, four].flatMap(({ matches }) => matches)
}

onEveryEngine((engine) => {
  test('no number from before a restore matches other content', async () => {
    expect(await findMatchesAfterRestores(engine, 1, raiseRestoredNumbers)).toEqual([])
  })

  test('a webhook gets a resync message, and a reader from the beginning gets every Change', async () => {
    const service = await startService(engine)
    const records = await enter(service, 'direct')
    const {
      data: { id },
    } = await records.create('crm.Contact', { firstName: 'Ada' })
    const since = (await service.app.db.reader.all('select max(seq) as "last" from verso_log'))[0]?.['last']
    await withClaim(service.app.db, (claim) => raiseRestoredNumbers(service.app, claim, 'test'))
    const message = await readNextMessage(service.app, WEBHOOK, Number(since))
    expect(message).toMatchObject({ kind: 'message', message: { changes: 0 } })
    expect(JSON.stringify(message)).toContain('resync')
    const { data } = await records.changes({ since: 0, model: 'crm.Contact' })
    const { version } = await records.read('crm.Contact', id)
    expect(data).toMatchObject([{ id, version, action: 'create' }])
    await service.close()
  })

  test('a restored backup has greater versions, and one that was moved has the same', async () => {
    const service = await startService(engine)
    const records = await enter(service, 'direct')
    await records.create('crm.Contact', { firstName: 'Ada' })
    const backup = await backupOf(service.app.db)
    await service.close()
    const versions: number[] = []
    for (const isMoved of [false, true]) {
      const location = await newLocation(engine)
      const db = await openDatabase(location.url, DATABASE_OPTIONS)
      await restoreBackup(db, { source: Readable.from([backup]), isMoved })
      const [row] = await db.reader.all('select "version" from "crm.Contact"')
      versions.push(Number(row?.['version']))
      await db.close()
      location.remove()
    }
    expect(versions).toEqual([expect.any(Number), 0])
    expect(versions[0]).toBeGreaterThan(1_000_000)
  })

  // Both engines run the same statements.
  if (engine === 'postgres') return
  test('a restore that keeps the numbers is caught', async () => {
    const matches = (await findMatchesAfterRestores(engine, 1, undefined)).join('\n')
    expect(matches).toMatch(/^since=\d+ is 200/m)
    expect(matches).toMatch(/^update of .* is 200/m)
    expect(matches).toMatch(/is assigned again/)
  })
})
