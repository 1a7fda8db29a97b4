// Scheduled backups: each is restored and verified, old ones are deleted, and no failure deletes a good one.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { ScheduledBackups } from '../../src/cli/serve/scheduled-backups.js'
import { startSchedules } from '../../src/service/background/schedule-runner.js'
import { purgeHistory } from '../../src/service/maintenance/purge.js'
import { isProcessAlive } from '../../src/store/engine/processes.js'
import { listScheduleStates } from '../../src/store/hooks/schedules.js'
import { cleanUpAfterwards, MAIN, newDatabase, scratch, start, verso } from '../cli/program.js'
import {
  enter,
  newLocation,
  onEveryEngine,
  startService,
  type DatabaseLocation,
  type Engine,
  type Service,
} from '../targets.js'

cleanUpAfterwards()

const HOUR_MS = 3_600_000
const PATIENTLY = { timeout: 120_000, interval: 100 }
const KEEP = 2
const MODELS = fileURLToPath(new URL('../../examples/contacts', import.meta.url))

const endings: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

function makeFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-backups-'))
  endings.push(async () => {
    rmSync(folder, { recursive: true, force: true })
    return Promise.resolve()
  })
  return folder
}

interface Fixture {
  readonly service: Service
  readonly folder: string
}

interface BackupsOptions {
  readonly db?: string
  readonly program?: string
  readonly folder?: string
  readonly location?: DatabaseLocation
}

/** Serves a database and makes backups of `db`, its own one by default. */
async function startBackups(
  engine: Engine,
  { db, program = MAIN, folder = makeFolder(), location }: BackupsOptions = {},
): Promise<Fixture> {
  const service = await startService(engine, location ? { location } : {})
  const backups = new ScheduledBackups({
    everyMs: HOUR_MS,
    keep: KEEP,
    folder,
    db: db ?? service.location.url,
    program,
  })
  const detach = backups.attach(service.app)
  const stop = startSchedules(service.app, [backups.schedule])
  endings.push(async () => {
    detach()
    await stop()
    await service.close()
  })
  await expect.poll(() => listScheduleStates(service.app.db.reader), PATIENTLY).toHaveLength(1)
  return { service, folder }
}

function listBackups(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.backup'))
    .sort()
}

async function readReadiness({ url }: Service): Promise<Record<string, unknown>> {
  const { data } = (await (await fetch(`${url}/readyz`)).json()) as { data: [Record<string, unknown>] }
  return data[0]
}

/** Advances the clock by an interval, and waits for the result of the run. */
async function runOnce({ service }: Fixture): Promise<string | null> {
  const before = (await listScheduleStates(service.app.db.reader))[0]?.lastMs
  service.clock.advance(HOUR_MS)
  const last = async () => (await listScheduleStates(service.app.db.reader))[0]
  await expect.poll(async () => (await last())?.lastMs, PATIENTLY).not.toBe(before)
  return (await last())?.error ?? null
}

/** Runs the program, and changes a byte of the backup that it has written. */
const DAMAGING = `
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
const [, , command, file] = process.argv
const { status } = spawnSync(process.execPath, [process.env.TEST_MAIN, ...process.argv.slice(2)], { stdio: 'inherit' })
if (command === 'backup') {
  const bytes = readFileSync(file)
  bytes[Math.floor(bytes.length / 2)] ^= 1
  writeFileSync(file, bytes)
}
process.exit(SKIPS_CHECK && command === 'restore' ? 0 : status)
`

/** Runs the program, and notes its command. */
const COUNTING = `
import { spawnSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
appendFileSync(RUNS, process.argv[2] + '\\n')
process.exit(spawnSync(process.execPath, [MAIN, ...process.argv.slice(2)], { stdio: 'inherit' }).status)
`

/** A backup never gets further than the beginning of its file, which contains its process id here. */
const HANGING = `
import { writeFileSync } from 'node:fs'
if (process.argv[2] === 'backup') {
  writeFileSync(process.argv[3] + '.part', String(process.pid))
  setInterval(() => undefined, 1_000)
  await new Promise(() => undefined)
}
`

function writeProgram(folder: string, skipsCheck: boolean): string {
  const file = path.join(folder, 'program.mjs')
  writeFileSync(
    file,
    DAMAGING.replace('process.env.TEST_MAIN', JSON.stringify(MAIN)).replace(
      'SKIPS_CHECK',
      String(skipsCheck),
    ),
  )
  return file
}

test('two nodes on PostgreSQL with the same schedule make one backup for each interval', async () => {
  const location = await newLocation('postgres')
  endings.push(async () => {
    location.remove()
    return Promise.resolve()
  })
  const folder = makeFolder()
  const runs = path.join(folder, 'runs')
  writeFileSync(runs, '')
  const program = path.join(folder, 'program.mjs')
  writeFileSync(program, COUNTING.replace('RUNS', JSON.stringify(runs)).replace('MAIN', JSON.stringify(MAIN)))
  const first = await startBackups('postgres', { location, folder, program })
  const second = await startBackups('postgres', { location, folder, program })
  for (let run = 1; run <= KEEP; run++) {
    second.service.clock.advance(HOUR_MS)
    expect(await runOnce(first)).toBeNull()
    expect(readFileSync(runs, 'utf8')).toBe('backup\nrestore\n'.repeat(run))
    expect(listBackups(folder)).toHaveLength(run)
  }
})

test('SIGTERM during a backup ends the service and the backup, leaves no backup, and the next start makes one', async () => {
  const db = newDatabase()
  const folder = path.join(scratch, 'stopped')
  const hanging = path.join(scratch, 'hanging.mjs')
  writeFileSync(hanging, HANGING)
  const args = ['serve', '--models', MODELS, '--db', db, '--port', '0', '--drain', '0s']
  args.push('--backup-every', '1s', '--backup-folder', folder)
  const service = await start(args, { NODE_OPTIONS: `--import=${hanging}` })
  const findPart = () => readdirSync(folder).find((name) => name.endsWith('.part'))
  await expect.poll(() => existsSync(folder) && findPart(), PATIENTLY).toBeTruthy()
  const part = findPart() ?? ''
  await expect.poll(() => readFileSync(path.join(folder, part), 'utf8'), PATIENTLY).toMatch(/^\d+$/)
  const backupPid = Number(readFileSync(path.join(folder, part), 'utf8'))
  service.child.kill('SIGTERM')
  expect(await service.ended()).toBe(0)
  await expect.poll(() => isProcessAlive(backupPid), PATIENTLY).toBe(false)
  expect(readdirSync(folder).sort()).toEqual(['database-id', part])
  const next = await start(args)
  await expect.poll(() => listBackups(folder).length, PATIENTLY).toBeGreaterThan(0)
  expect(readdirSync(folder)).not.toContain(part)
  next.child.kill('SIGTERM')
  expect(await next.ended()).toBe(0)
})

onEveryEngine((engine) => {
  test('backups are verified, their names sort by time, and the newest stay', async () => {
    const fixture = await startBackups(engine)
    const { service, folder } = fixture
    expect(await readReadiness(service)).toMatchObject({ lastBackup: null })
    const records = await enter(service, 'direct')
    const { data } = await records.create('crm.Contact', { firstName: 'Ada' })
    await purgeHistory(service.app, service.app.catalog.get('crm.Contact'), data.id)
    const seen: string[] = []
    for (let run = 1; run <= KEEP + 1; run++) {
      expect(await runOnce(fixture)).toBeNull()
      seen.push(listBackups(folder).at(-1) ?? '')
    }
    expect(seen.toSorted()).toEqual(seen)
    expect(listBackups(folder)).toEqual(seen.slice(-KEEP))
    // Nothing of the verification is left.
    expect(readdirSync(folder).sort()).toEqual(['database-id', 'purges.ndjson', ...seen.slice(-KEEP)])
    const { lastBackup, warnings } = await readReadiness(service)
    expect([typeof lastBackup, warnings]).toEqual(['string', undefined])
  })

  test('a failed backup is a warning, and deletes nothing', async () => {
    const good = await startBackups(engine)
    expect(await runOnce(good)).toBeNull()
    const before = listBackups(good.folder)
    const missing = `sqlite:${path.join(good.folder, 'missing.db')}`
    const bad = await startBackups(engine, { db: missing, folder: good.folder })
    for (let run = 0; run <= KEEP; run++) expect(await runOnce(bad)).toMatch(/does not exist/)
    expect(listBackups(good.folder)).toEqual(before)
    await expect
      .poll(() => readReadiness(bad.service), PATIENTLY)
      .toMatchObject({ warnings: ['The last scheduled backup failed. The log says why'] })
  })

  test('a folder that cannot be used is a warning from the start, until it can', async () => {
    const folder = path.join(makeFolder(), 'file')
    writeFileSync(folder, '')
    const { service } = await startBackups(engine, { folder })
    const warning = expect.stringMatching(/^The folder of --backup-folder cannot be used: /) as unknown
    await expect.poll(async () => (await readReadiness(service)).warnings, PATIENTLY).toEqual([warning])
    rmSync(folder)
    await expect.poll(async () => (await readReadiness(service)).warnings, PATIENTLY).toBeUndefined()
  })

  test('a damaged backup does not count as one, and a check that passes it is caught', async () => {
    const folder = makeFolder()
    const damaging = await startBackups(engine, { program: writeProgram(folder, false) })
    for (let run = 0; run < 3; run++) expect(await runOnce(damaging)).toMatch(/damaged/)
    expect(listBackups(damaging.folder)).toEqual([])
    // The newest stays, because a verification also fails without room for it.
    expect(readdirSync(damaging.folder).filter((name) => name.endsWith('.unverified'))).toHaveLength(1)
    const unchecked = await startBackups(engine, { program: writeProgram(makeFolder(), true) })
    expect(await runOnce(unchecked)).toBeNull()
    expect(listBackups(unchecked.folder)).toHaveLength(1)
  })
})

test('a service that is killed during its backups leaves only good ones, and the next run removes the rest', async () => {
  const db = newDatabase()
  const folder = path.join(scratch, 'killed')
  const args = [
    'serve',
    '--models',
    MODELS,
    '--db',
    db,
    '--port',
    '0',
    '--backup-every',
    '1s',
    '--backup-folder',
    folder,
  ]
  for (let kill = 0; kill < 5; kill++) {
    const { child } = await start(args)
    await sleep(1_500 + 1_000 * kill)
    child.kill('SIGKILL')
  }
  const { child } = await start(args)
  const before = new Set(listBackups(folder))
  await expect
    .poll(() => listBackups(folder).filter((name) => !before.has(name)).length, PATIENTLY)
    .toBeGreaterThan(1)
  child.kill('SIGTERM')
  for (const name of listBackups(folder)) {
    const { code, stderr } = await verso(['restore', path.join(folder, name), '--db', newDatabase()])
    expect([name, code, stderr]).toEqual([name, 0, expect.any(String)])
  }
})
