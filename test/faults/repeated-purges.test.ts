// Values that were purged after a backup do not come back with it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { readBackupPurges } from '../../src/service/backup/complete-restore.js'
import { restoreBackup } from '../../src/service/backup/restore.js'
import { openDatabase } from '../../src/store/open.js'
import { backupOf, DATABASE_OPTIONS, withClaim } from '../transfer/backup-fixture.js'
import { purgeHistory } from '../../src/service/maintenance/purge.js'
import {
  extendPurgeJournal,
  PURGE_JOURNAL,
  readPurgeJournal,
  repeatPurges,
} from '../../src/service/maintenance/repeated-purges.js'
import { raiseRestoredNumbers } from '../../src/service/maintenance/restored-numbers.js'
import { Findings, STORAGE_CHECKS } from '../../src/service/maintenance/verification.js'
import { readLastSeq } from '../../src/store/log/feed.js'
import { listPurges } from '../../src/store/log/purges.js'
import { readDatabaseId } from '../../src/store/schema/database-id.js'
import type { Records } from '../../src/wire.js'
import {
  enter,
  newLocation,
  onEveryEngine,
  preparedLocation,
  startService,
  type Engine,
  type Service,
} from '../targets.js'

const CONTACT = 'crm.Contact'

async function create(records: Records, values: object): Promise<number> {
  return (await records.create(CONTACT, { ...values })).data.id
}

async function update(records: Records, id: number, values: object): Promise<void> {
  const { version } = await records.read(CONTACT, id)
  await records.update(CONTACT, id, { version, ...values })
}

/** All values that the database stores of contacts, in their rows and in the Log. */
async function readStored({ app }: Service): Promise<string> {
  const rows = [
    ...(await app.db.reader.all('select * from "crm.Contact"')),
    ...(await app.db.reader.all('select changes from verso_log')),
  ]
  return JSON.stringify(rows)
}

/** Purges three contacts after a backup, and one before. Returns the restored service and the journal. */
async function purgeAfterBackup(engine: Engine) {
  const source = await preparedLocation(engine)
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-journal-'))
  let service = await startService(engine, { location: source })
  let records = await enter(service, 'direct')
  const changed = await create(records, { firstName: 'secret-1', lastName: 'keep-1', notes: 'keep-1' })
  const deleted = await create(records, { firstName: 'secret-2', pin: 'secret-2', phones: ['secret-2'] })
  const past = await create(records, { firstName: 'secret-3' })
  await update(records, past, { firstName: 'keep-3', email: 'keep-3' })
  const early = await create(records, { firstName: 'secret-4' })
  await update(records, early, { firstName: 'keep-4' })
  await purgeHistory(service.app, service.app.catalog.get(CONTACT), early)
  await service.close()
  const backup = await newLocation(engine, source.url)
  service = await startService(engine, { location: source })
  records = await enter(service, 'direct')
  await update(records, changed, { firstName: 'keep-5' })
  await update(records, changed, { notes: 'keep-6' })
  await records.remove(CONTACT, deleted)
  for (const id of [changed, deleted, past])
    await purgeHistory(service.app, service.app.catalog.get(CONTACT), id)
  await extendPurgeJournal(folder, await listPurges(service.app.db.reader))
  // A second journal of the same database adds nothing.
  await extendPurgeJournal(folder, await listPurges(service.app.db.reader))
  await service.close()
  source.remove()
  const restored = await startService(engine, { location: backup })
  const close = async () => {
    await restored.close()
    backup.remove()
    rmSync(folder, { recursive: true })
  }
  return { restored, folder, changed, deleted, past, close }
}

onEveryEngine((engine) => {
  test('a restore repeats the purges of the journal, once', async () => {
    const { restored, folder, changed, deleted, past, close } = await purgeAfterBackup(engine)
    const journal = await readPurgeJournal(path.join(folder, PURGE_JOURNAL))
    expect(journal).toHaveLength(4)
    expect(readFileSync(path.join(folder, PURGE_JOURNAL), 'utf8')).not.toMatch(/secret-|keep-/)
    // Without the journal the values are back.
    expect((await readStored(restored)).match(/secret-\d/g)?.sort()).toContain('secret-1')

    const { purges, emptied } = await withClaim(restored.app.db, (claim) =>
      repeatPurges(restored.app, claim, journal),
    )
    expect([purges, emptied.map(({ id }) => id)]).toEqual([3, [deleted]])
    expect(await readStored(restored)).not.toMatch(/secret-/)
    await withClaim(restored.app.db, async (claim) => {
      expect((await repeatPurges(restored.app, claim, journal)).purges).toBe(0)
      await raiseRestoredNumbers(restored.app, claim, 'test')
    })

    const records = await enter(restored, 'direct')
    expect(await records.read(CONTACT, changed)).toMatchObject({
      firstName: null,
      lastName: 'keep-1',
      notes: null,
    })
    expect(await records.read(CONTACT, past)).toMatchObject({ firstName: 'keep-3', email: 'keep-3' })
    expect(await records.read(CONTACT, deleted)).toMatchObject({ firstName: null, phones: null })
    await update(records, deleted, { firstName: 'new' })
    await records.remove(CONTACT, deleted)
    const findings = new Findings()
    for (const check of Object.values(STORAGE_CHECKS)) await check(restored.app, findings)
    expect(findings.lines).toEqual([])
    await close()
  })

  test('a restore repeats the purges that a newer backup lists', async () => {
    const service = await startService(engine)
    const records = await enter(service, 'direct')
    const id = await create(records, { firstName: 'secret-1' })
    const older = await backupOf(service.app.db)
    await update(records, id, { firstName: 'keep-1' })
    await purgeHistory(service.app, service.app.catalog.get(CONTACT), id)
    const newer = await backupOf(service.app.db)
    await service.close()
    const location = await newLocation(engine)
    const db = await openDatabase(location.url, DATABASE_OPTIONS)
    const purges = await readBackupPurges(Readable.from([newer]))
    const { repeated } = await restoreBackup(db, { source: Readable.from([older]), purges })
    expect(repeated).toEqual({ purges: 1, emptied: [] })
    await db.close()
    const restored = await startService(engine, { location })
    expect(await readStored(restored)).not.toMatch(/secret-/)
    await restored.close()
    location.remove()
  })

  test('a restore repeats no purges of another database that wrote to the same journal', async () => {
    const service = await startService(engine)
    const { db } = service.app
    const id = await create(await enter(service, 'direct'), { firstName: 'keep-1' })
    const backup = await backupOf(db)
    const database = (await readDatabaseId(db.reader)) ?? 0
    const seq = (await readLastSeq(db.reader)) + 1
    await service.close()
    const purge = { model: CONTACT, id, seq, atMs: 1, isDeleted: false, fields: { firstName: seq } }
    const folder = mkdtempSync(path.join(tmpdir(), 'verso-journal-'))
    /** Restores with a journal that the database with this id has written. */
    const restoreWith = async (writer: number) => {
      await extendPurgeJournal(folder, [{ ...purge, database: writer }])
      const purges = await readPurgeJournal(path.join(folder, PURGE_JOURNAL))
      const location = await newLocation(engine)
      const restored = await openDatabase(location.url, DATABASE_OPTIONS)
      const { repeated } = await restoreBackup(restored, { source: Readable.from([backup]), purges })
      expect(await readDatabaseId(restored.reader)).toBe(database)
      const [row] = await restored.reader.all(`select "firstName" from "${CONTACT}" where "id" = ${id}`)
      await restored.close()
      location.remove()
      return [repeated.purges, row?.['firstName']]
    }
    expect(await restoreWith(database + 1)).toEqual([0, 'keep-1'])
    // The control: its own purge.
    expect(await restoreWith(database)).toEqual([1, null])
    rmSync(folder, { recursive: true })
  })

  test('a damaged journal is refused, and names the line', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'verso-journal-'))
    const file = path.join(folder, PURGE_JOURNAL)
    expect(await readPurgeJournal(file)).toEqual([])
    writeFileSync(file, '{"model":"crm.Contact","id":"seven"}\n')
    await expect(readPurgeJournal(file)).rejects.toThrow(/purges\.ndjson, line 1/)
    rmSync(folder, { recursive: true })
  })
})
