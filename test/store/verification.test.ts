// The checks of `verso verify`: exactly one of them finds each direct change of the database.
import { mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../../src/service/context/app.js'
import { findCounterDifferences } from '../../src/service/maintenance/counters.js'
import { compactLog } from '../../src/service/maintenance/retention.js'
import { purgeHistory } from '../../src/service/maintenance/purge.js'
import {
  checkIntegrity,
  STORAGE_CHECKS,
  runStorageCheck,
  type StorageCheck,
} from '../../src/service/maintenance/verification.js'
import type { Transaction } from '../../src/store/engine/database.js'
import type { Records } from '../../src/wire.js'
import { blobFilesIn, filesFolder } from '../file-audit.js'
import { HistoryFixture, seeded } from '../properties/history-fixture.js'
import { enter, onEngineOfTier, startService, type Engine, type Service } from '../targets.js'

/** Every check, as the command runs them. */
const PARTS: Readonly<Record<string, StorageCheck<App>>> = {
  integrity: ({ db }, findings) => checkIntegrity(db, findings),
  ...STORAGE_CHECKS,
  totals: async (app, findings) => {
    for (const model of app.catalog.storedModels)
      findings.add(...(await findCounterDifferences(app, model)).map(({ what }) => what))
    return 'totals'
  },
}

async function faultsByPart(
  app: App,
  parts: readonly string[] = Object.keys(PARTS),
): Promise<ReadonlyMap<string, readonly string[]>> {
  const faults = new Map<string, readonly string[]>()
  for (const name of parts) {
    const check = PARTS[name]
    if (check) faults.set(name, (await runStorageCheck(name, check, app)).findings.lines)
  }
  return faults
}

async function faultsBy(app: App, parts?: readonly string[]): Promise<string[]> {
  return [...(await faultsByPart(app, parts)).values()].flat()
}

interface Tampering {
  readonly what: string
  readonly part: string
  readonly words: RegExp
  /** Runs in a transaction; `mend` undoes it. */
  readonly spoil: (tx: Transaction) => Promise<unknown>
  readonly mend: (tx: Transaction) => Promise<unknown>
}

const PERSON = '"rel.Person"'
const SOME = `(select max("id") from ${PERSON})`
const NEWEST = `(select max(seq) from verso_log where model = 'rel.Person' and record = ${SOME})`

const TAMPERINGS: readonly Tampering[] = [
  {
    what: 'a value changed by SQL',
    part: 'Log',
    words: /rel\.Person \d+ has a different value in name than the Log/,
    spoil: (tx) => tx.run(`update ${PERSON} set "name" = "name" || '!' where "id" = ${SOME}`),
    mend: (tx) => tx.run(`update ${PERSON} set "name" = replace("name", '!', '') where "id" = ${SOME}`),
  },
  {
    what: 'a value set in an empty field',
    part: 'Log',
    words: /doc\.Paper \d+ has a different value in note than the Log/,
    spoil: (tx) => tx.run(`update "doc.Paper" set "note" = 'x'`),
    mend: (tx) => tx.run('update "doc.Paper" set "note" = null'),
  },
  {
    what: 'a version incremented by SQL',
    part: 'Log',
    words: /rel\.Person \d+ is at version \d+, but the Log is at \d+/,
    spoil: (tx) => tx.run(`update ${PERSON} set "version" = "version" + 1 where "id" = ${SOME}`),
    mend: (tx) => tx.run(`update ${PERSON} set "version" = "version" - 1 where "id" = ${SOME}`),
  },
  {
    what: 'a missing newest Change',
    part: 'Log',
    words: /rel\.Person \d+ (is at version|is stored, but the Log does not have it)/,
    spoil: (tx) => tx.run(`update verso_log set model = 'gone' where seq = ${NEWEST}`),
    mend: (tx) => tx.run(`update verso_log set model = 'rel.Person' where model = 'gone'`),
  },
  {
    what: 'a missing Change in the middle',
    part: 'Log',
    words: /test\.Limited \d+ has no Change for version 1/,
    spoil: (tx) =>
      tx.run(
        `update verso_log set model = 'gone' where model = 'test.Limited' and version = 1 and action = 'update'`,
      ),
    mend: (tx) => tx.run(`update verso_log set model = 'test.Limited' where model = 'gone'`),
  },
  {
    what: 'a missing delete Change',
    part: 'Log',
    words: /test\.Limited \d+ is missing, but the Log has it at version 0/,
    spoil: (tx) =>
      tx.run(`update verso_log set model = 'gone' where model = 'test.Limited' and action = 'delete'`),
    mend: (tx) => tx.run(`update verso_log set model = 'test.Limited' where model = 'gone'`),
  },
  {
    what: 'a file row with another hash',
    part: 'files',
    words: /has different content than was stored/,
    spoil: (tx) =>
      tx.run(`update verso_file set sha256 = '!' || sha256 where id = (select min(id) from verso_file)`),
    mend: (tx) => tx.run(`update verso_file set sha256 = replace(sha256, '!', '')`),
  },
  {
    what: 'a file row without a record',
    part: 'files',
    words: /file \d+ has a row, but no record refers to it/,
    spoil: (tx) =>
      tx.run(
        `insert into verso_file (key, name, type, size, sha256, created_ms) values ('k', 'n', 't', 0, '${EMPTY_SHA}', 0)`,
      ),
    mend: (tx) => tx.run(`delete from verso_file where key = 'k'`),
  },
  {
    what: 'a wrong counter',
    part: 'totals',
    words: /all/,
    spoil: (tx) => tx.run(`update verso_count set n = n + 5 where model = 'rel.Circle' and level = 53`),
    mend: (tx) => tx.run(`update verso_count set n = n - 5 where model = 'rel.Circle' and level = 53`),
  },
]

const EMPTY_SHA = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

onEngineOfTier((engine: Engine) => {
  let service: Service
  let records: Records
  beforeAll(async () => {
    service = await startService(engine)
    records = await enter(service, 'direct')
    await fill(records, service)
  })
  afterAll(() => service.close())

  test('verify finds no error in data written by the service', async () => {
    expect(await faultsBy(service.app)).toEqual([])
  })

  test.for(TAMPERINGS)(
    'verify finds $what by one check, and by no other',
    async ({ part, words, spoil, mend }) => {
      const { app } = service
      await app.db.transaction(spoil)
      try {
        const faults = await faultsByPart(app)
        expect(faults.get(part)).toContainEqual(expect.stringMatching(words))
        // Without this check, verify would report no error.
        const others = [...faults].filter(([name]) => name !== part)
        expect(others.flatMap(([, lines]) => lines)).toEqual([])
      } finally {
        await app.db.transaction(mend)
      }
      expect(await faultsBy(app, [part])).toEqual([])
    },
  )

  test('verify accepts purged and compacted Changes', async () => {
    const { app } = service
    const { data: people } = await records.find('rel.Person', { limit: 5 })
    for (const { id } of people) await purgeHistory(app, app.catalog.get('rel.Person'), id)
    expect(await faultsBy(app)).toEqual([])
    service.clock.advance(DAYS_MS)
    expect(await compactLog(app, undefined, { versions: 1 })).toBeGreaterThan(0)
    expect(await faultsBy(app)).toEqual([])
  })

  test('verify finds content that is missing, altered or without a record', async () => {
    const { app, location } = service
    const folder = filesFolder(location.url)
    if (folder === undefined) {
      const parts = 'select file from verso_file_part order by file limit 1'
      await app.db.transaction((tx) =>
        tx.run(`update verso_file_part set file = file where file in (${parts})`),
      )
      await app.db.transaction((tx) =>
        tx.run(`update verso_file_part set data = data || 'x'::bytea where file in (${parts})`),
      )
      expect(await faultsBy(app)).toEqual([
        expect.stringMatching(/bytes of content|cannot be read|removed while/),
      ])
      await app.db.transaction((tx) => tx.run(`delete from verso_file_part where file in (${parts})`))
      expect(await faultsBy(app)).toEqual([expect.stringMatching(/has no content/)])
      return
    }
    const [first = '', second = ''] = blobFilesIn(folder)
    truncateSync(path.join(folder, first), 1)
    expect(await faultsBy(app)).toEqual([
      expect.stringMatching(/cannot be read: the content of file [0-9a-f]{32} has 1 bytes instead of \d+$/),
    ])
    writeFileSync(path.join(folder, first), 'x'.repeat(CONTENT.length))
    rmSync(path.join(folder, second))
    mkdirSync(path.join(folder, 'ff'), { recursive: true })
    writeFileSync(path.join(folder, 'ff', 'f'.repeat(32)), 'nobody')
    const faults = await faultsBy(app)
    expect(faults).toHaveLength(3)
    for (const words of [/different content/, /has no content/, /content without a record: .*f{32}/])
      expect(faults).toContainEqual(expect.stringMatching(words))
    expect(
      await faultsBy(
        app,
        Object.keys(PARTS).filter((name) => name !== 'files'),
      ),
    ).toEqual([])
    expect(readdirSync(path.join(folder, 'ff'))).toHaveLength(1)
  })
})

const DAYS_MS = 3 * 24 * 60 * 60_000
const CONTENT = 'the content of a file'

/** Creates related records with a history, deleted and reverted records, and files. */
async function fill(records: Records, service: Service): Promise<void> {
  const fixture = new HistoryFixture(records, service.clock, seeded(7))
  for (let step = 0; step < 25; step++) await fixture.step()
  await records.create('rel.Circle', { name: 'last' })
  await records.create('rel.Person', { name: 'last' })
  const { data: kept } = await records.create('test.Limited', { code: 'TAKE' })
  for (const code of ['GIVE', 'TAKE']) {
    const { version } = await records.read('test.Limited', kept.id)
    await records.update('test.Limited', kept.id, { version, code })
  }
  const { data: gone } = await records.create('test.Limited', { code: 'GONE' })
  await records.remove('test.Limited', gone.id)
  for (const name of ['a.txt', 'b.txt']) {
    const content = Readable.from([Buffer.from(CONTENT)])
    await records.upload('doc.Paper', { data: { title: name }, field: 'scan', name, content })
  }
}
