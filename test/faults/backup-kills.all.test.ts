// kill -9 of `verso backup` and `verso restore` at random moments: no incomplete backup has its name, and no database is used before its restore
// has finished.
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, existsSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import { checkFrames } from '../../src/service/backup/backup-format.js'
import { createApp } from '../../src/service/create-app.js'
import { importRecords } from '../../src/service/transfer/import.js'
import { STORAGE_CHECKS, runStorageCheck } from '../../src/service/maintenance/verification.js'
import { openDatabase } from '../../src/store/open.js'
import { hasInternalTables } from '../../src/store/schema/internal-tables.js'
import { cleanUpAfterwards, MAIN, scratch } from '../cli/program.js'
import { models } from '../models.js'
import { WITHOUT_PART } from '../mutants/backup.js'
import { chooseRepeats } from './repeats.js'
import { createMutantProgram } from '../mutants/program.js'
import { enter, newLocation, onEveryEngine, startService, type DatabaseLocation } from '../targets.js'
import { DATABASE_OPTIONS } from '../transfer/backup-fixture.js'
import { fill, modelOf } from '../transfer/transfer-fixture.js'

cleanUpAfterwards()

/** On each engine, of backups and of restores. */
const KILLS = chooseRepeats([13, 12] as const, [4, 4] as const)
/** Enough that a kill often hits the middle. */
const RECORDS = 4_000

onEveryEngine((engine) => {
  test(`${KILLS[0] + KILLS[1]} kills during backup and restore leave nothing that looks complete and is not, and a repeat succeeds`, async () => {
    const service = await startService(engine)
    const file = path.join(scratch, `${engine}.backup`)
    const records = await enter(service, 'direct')
    await fill(service.app, records)
    const contact = modelOf(service.app, 'crm.Contact')
    await importRecords(service.app, [
      {
        name: 'contacts',
        model: contact,
        content: () => Promise.resolve(undefined),
        async *read() {
          const records = Array.from({ length: RECORDS }, (_, index) => ({
            line: index + 1,
            input: { id: index + 100, version: 0, notes: 'n'.repeat(200) },
          }))
          yield await Promise.resolve(records)
        },
      },
    ])
    const backUp = ['backup', file, '--db', service.location.url]
    const backupMs = await measure(backUp)
    for (let kill = 0; kill < KILLS[0]; kill++) {
      rmSync(file)
      await runKilled(backUp, randomInt(backupMs))
      if (existsSync(file)) await checkFrames(createReadStream(file))
      else await measure(backUp)
      // The service goes on.
      await records.create('crm.Contact', { notes: 'beside' })
    }
    await checkFrames(createReadStream(file))

    const restoreTo = ({ url }: DatabaseLocation) => ['restore', file, '--db', url, '--moved']
    const restoreMs = await measure(restoreTo(await newLocation(engine)))
    let location = await newLocation(engine)
    for (let kill = 0; kill < KILLS[1]; kill++) {
      await runKilled(restoreTo(location), randomInt(restoreMs))
      // A restore that finished before the kill needs a new database for the next one.
      if ((await countIfUsable(location.url)) > 0) location = await newLocation(engine)
    }
    await measure(restoreTo(location))
    expect(await countIfUsable(location.url)).toBeGreaterThanOrEqual(RECORDS)
    await service.close()
  })
})

test('a mutant that writes a backup under its name at once is caught', async () => {
  const main = path.join(createMutantProgram(scratch, WITHOUT_PART), 'cli/main.js')
  const service = await startService('sqlite')
  await fill(service.app, await enter(service, 'direct'))
  const file = path.join(scratch, 'mutant.backup')
  const backUp = ['backup', file, '--db', service.location.url]
  const backupMs = await measure(backUp)
  let isCaught = false
  for (let kill = 0; kill < 40 && !isCaught; kill++) {
    rmSync(file, { force: true })
    await runKilled(backUp, randomInt(Math.floor(backupMs / 2), backupMs), main)
    if (existsSync(file))
      isCaught = await checkFrames(createReadStream(file)).then(
        () => false,
        () => true,
      )
  }
  expect(isCaught).toBe(true)
  await service.close()
})

/** Runs the program to its end, and returns its time. */
async function measure(args: readonly string[]): Promise<number> {
  const sinceMs = performance.now()
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: scratch,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`verso ${args.join(' ')}: ${stderr}`)
  return Math.ceil(performance.now() - sinceMs)
}

async function runKilled(args: readonly string[], afterMs: number, main = MAIN): Promise<void> {
  const child = spawn(process.execPath, [main, ...args], { cwd: scratch, stdio: 'ignore' })
  const ended = once(child, 'exit')
  await sleep(afterMs)
  child.kill('SIGKILL')
  await ended
}

/** Returns 0 if the database is refused or empty. A database that starts must be whole. */
async function countIfUsable(url: string): Promise<number> {
  const db = await openDatabase(url, DATABASE_OPTIONS)
  const isEmpty = !(await hasInternalTables(db))
  await db.close()
  if (isEmpty) return 0
  const app = await createApp({ models, settings: { db: url } }).catch((error: unknown) => {
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toContain('did not finish')
    return undefined
  })
  if (!app) return 0
  try {
    for (const [name, check] of Object.entries(STORAGE_CHECKS))
      expect((await runStorageCheck(name, check, app)).findings.lines).toEqual([])
    const [row] = await app.db.reader.all('select count(*) as "count" from "crm.Contact"')
    return Number(row?.['count'])
  } finally {
    await app.close()
  }
}
