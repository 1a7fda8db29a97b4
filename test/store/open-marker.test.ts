// A database whose process was killed: its commits are in the WAL, and the database does not open without it.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test, vi } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import { WalGuard } from '../../src/store/sqlite/disk/wal-guard.js'
import { openSqlite } from '../../src/store/sqlite/sqlite.js'
import { newLocation } from '../targets.js'

const SCRIPT = fileURLToPath(new URL('kill-after-commits.mjs', import.meta.url))
const ROWS = 20
const WAL_HEADER_BYTES = 32
const FRAME_BYTES = 24 + 4096

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const removals: (() => void)[] = []
afterEach(() => {
  for (const remove of removals.splice(0)) remove()
})

async function newFile(): Promise<string> {
  const location = await newLocation('sqlite')
  removals.push(() => {
    location.remove()
  })
  return location.url.slice('sqlite:'.length)
}

function runProcess(file: string, rows: number, end: 'kill' | 'clean' = 'kill'): void {
  const { stderr } = spawnSync(process.execPath, [SCRIPT, file, String(rows), end], { encoding: 'utf8' })
  expect(stderr).toBe('')
}

async function killedFile(rows = ROWS): Promise<string> {
  const file = await newFile()
  runProcess(file, rows)
  return file
}

async function countRows(file: string): Promise<number> {
  const db = await openSqlite(file)
  try {
    const [row] = await db.reader.all('select count(*) as "rows" from item')
    return Number(row?.['rows'])
  } finally {
    await db.close()
  }
}

/** The reason for which the database does not open; undefined if it opens. */
async function refusalOf(file: string): Promise<string | undefined> {
  try {
    await (await openSqlite(file)).close()
    return undefined
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

function flipBytes(file: string, start: number, count: number): void {
  const bytes = readFileSync(file)
  for (let index = start; index < start + count; index++) bytes[index] = ~(bytes[index] ?? 0) & 0xff
  writeFileSync(file, bytes)
}

const LOSSES: Readonly<Record<string, (file: string) => void>> = {
  'a missing WAL': (file) => {
    rmSync(`${file}-wal`)
  },
  'an empty WAL': (file) => {
    truncateSync(`${file}-wal`)
  },
  'a damaged header of the WAL': (file) => {
    flipBytes(`${file}-wal`, 16, 4)
  },
  'a WAL of zeros': (file) => {
    flipBytes(`${file}-wal`, 0, 0)
    writeFileSync(`${file}-wal`, Buffer.alloc(readFileSync(`${file}-wal`).length))
  },
  'a damaged frame of the WAL': (file) => {
    flipBytes(`${file}-wal`, WAL_HEADER_BYTES + 3 * FRAME_BYTES + 2_000, 1)
  },
  'a damaged first frame of the WAL': (file) => {
    flipBytes(`${file}-wal`, WAL_HEADER_BYTES + 8, 8)
  },
  'a missing database file': (file) => {
    rmSync(file)
  },
  'an empty database file': (file) => {
    truncateSync(file)
  },
}

test.for(Object.keys(LOSSES))(
  'after a kill, a database with %s is refused, nothing is changed, and without the marker it opens',
  async (name) => {
    const file = await killedFile()
    LOSSES[name]?.(file)
    const readAll = () =>
      ['', '-wal', '.open'].map((suffix) =>
        existsSync(`${file}${suffix}`) ? readFileSync(`${file}${suffix}`, 'base64') : undefined,
      )
    const before = readAll()
    expect(await refusalOf(file)).toMatch(/delete .*\.open/)
    expect(readAll()).toEqual(before)
    rmSync(`${file}.open`)
    rmSync(`${file}-wal`, { force: true })
    expect(await refusalOf(file)).toBeUndefined()
  },
)

test('after a kill, a database with its WAL opens with all commits, also if the last commit is torn', async () => {
  const file = await killedFile()
  expect(await countRows(file)).toBe(ROWS)
  expect(existsSync(`${file}.open`)).toBe(false)
  const torn = await killedFile()
  const { length } = readFileSync(`${torn}-wal`)
  flipBytes(`${torn}-wal`, length - 100, 1)
  expect(await countRows(torn)).toBe(ROWS - 1)
})

test('a lost WAL of a kill before the first commit, and a file of a clean stop, are no reason to refuse', async () => {
  const file = await newFile()
  runProcess(file, ROWS, 'clean')
  expect(existsSync(`${file}.open`)).toBe(false)
  runProcess(file, 0, 'kill')
  expect(existsSync(`${file}.open`)).toBe(true)
  rmSync(`${file}-wal`, { force: true })
  expect(await countRows(file)).toBe(ROWS)
})

test('a process that empties the WAL beside another one causes no false alarm, and the other one keeps its marker', async () => {
  const file = await newFile()
  const child = spawn(process.execPath, [SCRIPT, file, String(ROWS), 'hold'])
  await once(child.stdout, 'data')
  runProcess(file, 1, 'clean')
  expect(existsSync(`${file}.open`)).toBe(true)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(await countRows(file)).toBe(ROWS + 1)
})

/** The driver finalizes what was collected in a later turn. */
async function collectStatements(): Promise<void> {
  for (let run = 0; run < 3; run++) {
    collectGarbage()
    await new Promise(setImmediate)
  }
}

/** Opens and closes the database here, kills a process that has committed since, and collects the statements of the closed database. */
async function closeBesideKilled(file: string): Promise<void> {
  const child = spawn(process.execPath, [SCRIPT, file, String(ROWS), 'hold'])
  await once(child.stdout, 'data')
  // The spy refers to the statements of the writer, so none of them is collected.
  const statements = vi.spyOn(WalGuard.prototype, 'add')
  expect(await countRows(file)).toBe(ROWS)
  // Those of the reader go first, so that the writer is the last connection.
  await collectStatements()
  child.stdin.write('\n')
  await once(child.stdout, 'data')
  await expect
    .poll(() => readFileSync(`${file}.open`, 'utf8'), { timeout: 20_000 })
    .toContain('"hasWal":true')
  child.kill('SIGKILL')
  await once(child, 'exit')
  statements.mockReset()
  statements.mockRestore()
  await collectStatements()
}

test('a process that has closed the database before another one was killed leaves the WAL to the next start', async () => {
  const file = await newFile()
  await closeBesideKilled(file)
  expect(await countRows(file)).toBe(ROWS + 1)
})

test('the mutant that does not keep the WAL open is caught', async () => {
  const hold = vi.spyOn(WalGuard.prototype, 'hold').mockImplementation(() => undefined)
  const file = await newFile()
  await closeBesideKilled(file).finally(() => {
    hold.mockRestore()
  })
  expect(await refusalOf(file)).toMatch(/-wal file with the last commits is missing/)
})

test('a process takes over the marker of one that was killed beside it, and removes it when it stops', async () => {
  const file = await newFile()
  const child = spawn(process.execPath, [SCRIPT, file, String(ROWS), 'hold'])
  await once(child.stdout, 'data')
  const db = await openSqlite(file)
  child.kill('SIGKILL')
  await once(child, 'exit')
  await expect
    .poll(() => readFileSync(`${file}.open`, 'utf8'), { timeout: 20_000 })
    .toContain(`"pid":${process.pid}`)
  await db.close()
  expect(existsSync(`${file}.open`)).toBe(false)
})

test('a WAL that an open database has lost is refused after its process was killed', async () => {
  const file = await newFile()
  const child = spawn(process.execPath, [SCRIPT, file, String(ROWS), 'hold'])
  await once(child.stdout, 'data')
  renameSync(`${file}-wal`, `${file}-moved`)
  // Longer than the interval of the refresh of the marker.
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(await refusalOf(file)).toMatch(/-wal file with the last commits is missing/)
  renameSync(`${file}-moved`, `${file}-wal`)
  expect(await countRows(file)).toBe(ROWS)
})

/** Gives the marker of a killed process the id of a process that runs. */
function reuseProcessId(file: string, changes: object = {}): void {
  const marker = JSON.parse(readFileSync(`${file}.open`, 'utf8')) as object
  writeFileSync(`${file}.open`, JSON.stringify({ ...marker, pid: process.ppid, ...changes }))
}

test('a lost WAL is refused although another process has the id of the killed one', async () => {
  const file = await killedFile()
  reuseProcessId(file)
  rmSync(`${file}-wal`)
  expect(await refusalOf(file)).toMatch(/-wal file with the last commits is missing/)
})

test('the mutant that goes by the process id alone accepts a lost WAL', async () => {
  const file = await killedFile()
  reuseProcessId(file, { start: '' })
  rmSync(`${file}-wal`)
  expect(await refusalOf(file)).toBeUndefined()
})

test('behind a symbolic link, the marker and the modes are those of the file that it names', async () => {
  const file = await newFile()
  const link = `${file}-link`
  symlinkSync(path.basename(file), link)
  runProcess(link, ROWS)
  expect(existsSync(`${link}.open`)).toBe(false)
  expect([file, `${file}-wal`].map((each) => statSync(each).mode & 0o777)).toEqual([0o600, 0o600])
  expect(await countRows(file)).toBe(ROWS)
  runProcess(link, 1)
  rmSync(`${file}-wal`)
  expect(await refusalOf(link)).toMatch(/-wal file with the last commits is missing/)
})

test('a database whose file was removed closes', async () => {
  const file = await newFile()
  const db = await openSqlite(file)
  await db.reader.all('select 1 as n')
  rmSync(file)
  await db.close()
  expect(existsSync(`${file}.open`)).toBe(false)
})

test('an open that fails leaves nothing behind in the process, and the next start checks the WAL again', async () => {
  const file = await killedFile()
  chmodSync(file, 0o644)
  const listeners = process.listenerCount('exit')
  const onModeNarrowed = () => {
    throw new Error('a defect')
  }
  await expect(openSqlite(file, { onModeNarrowed })).rejects.toThrow('a defect')
  expect(process.listenerCount('exit')).toBe(listeners)
  renameSync(`${file}-wal`, `${file}-lost`)
  expect(await refusalOf(file)).toMatch(/-wal file with the last commits is missing/)
})

test('a folder and a file of another program are refused, and keep their modes', async () => {
  const file = await newFile()
  writeFileSync(file, 'a text')
  const folder = `${file}-folder`
  mkdirSync(folder)
  for (const [each, mode] of [
    [file, 0o644],
    [folder, 0o755],
  ] as const) {
    chmodSync(each, mode)
    expect(await refusalOf(each)).toMatch(/nothing was changed/)
    expect(statSync(each).mode & 0o777).toBe(mode)
    expect(existsSync(`${each}.open`)).toBe(false)
  }
})
