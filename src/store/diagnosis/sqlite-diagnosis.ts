// Checks an SQLite database without creating or changing a file.
import { existsSync, readFileSync, statSync, type Stats } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import type { Queryable, Row, SqlValue } from '../engine/database.js'
import { isFileMissing, isNotWritable } from '../engine/file-errors.js'
import { FunctionQueryable } from '../engine/unshared.js'
import { canWriteDatabase } from '../sqlite/disk/write-access.js'
import { sqliteDialect } from '../sqlite/dialect.js'
import { isBusy } from '../sqlite/errors.js'
import { diagnoseLastStop, diagnoseReserve } from './file-diagnosis.js'
import { followLinks } from '../engine/private-files.js'
import { createDiagnosis, diagnoseStoredTime, diagnoseTables, type Diagnosis } from './diagnosis.js'

/** A check of more data takes too long. */
const MAX_CHECKED_BYTES = 2 * 1024 ** 3
/** No further table is checked after this time. */
const MAX_CHECK_MS = 10_000
/** A WAL grows beyond this size only if something keeps it from being copied into the database. */
const MAX_WAL_BYTES = 256 * 1024 ** 2
const RESTORE_ADVICE = 'Stop the service, keep a copy of the file, and restore a backup.'
const USER_ADVICE = 'Run this as the user of the service, or correct the owner of the file.'

export async function* diagnoseSqlite(
  location: string,
  diskReserveBytes: number | undefined,
): AsyncGenerator<Diagnosis> {
  const file = followLinks(location)
  const stat = readStat(file)
  const lastStop = await diagnoseLastStop(file)
  if (!('size' in stat)) {
    yield stat
    if (lastStop.level === 'problem') yield lastStop
    return
  }
  yield diagnoseOwners(file, stat)
  let connection
  try {
    connection = new DatabaseSync(findLocation(file), { readOnly: true, timeout: 1_000 })
    const opened = connection
    // Only for statements that read, as in SqliteSession.
    const db = new FunctionQueryable((sql, params: readonly SqlValue[] = []) =>
      Promise.resolve(opened.prepare(sql).all(...params) as Row[]),
    )
    yield* diagnoseContent(db, stat.size)
  } catch (error) {
    yield describeOpenFailure(error)
  } finally {
    connection?.close()
  }
  yield lastStop
  yield diagnoseWal(file)
  if (diskReserveBytes !== undefined) yield diagnoseReserve(file, diskReserveBytes)
  yield* diagnoseProcesses(file)
}

function readStat(file: string): Stats | Diagnosis {
  try {
    const stat = statSync(file)
    if (stat.isFile()) return stat
    return createDiagnosis('database', 'problem', `${file} is not a file`, 'Name a file in --db.')
  } catch (error) {
    if (isFileMissing(error))
      return createDiagnosis(
        'database',
        'problem',
        `${file} does not exist`,
        'The first start creates it. If the service has run before, check --db, or restore a backup.',
      )
    const reason = error instanceof Error ? error.message : String(error)
    return createDiagnosis(
      'database',
      'problem',
      isNotWritable(error) ? `permission denied: ${file}` : reason,
      isNotWritable(error) ? USER_ADVICE : 'Check --db.',
    )
  }
}

/** A command that ran as root leaves files that the user of the folder cannot write. */
function diagnoseOwners(file: string, stat: Stats): Diagnosis {
  const folder = path.dirname(path.resolve(file))
  const owner = statSync(folder).uid
  const sidecars = [`${file}-wal`, `${file}-shm`, `${file}.files`, `${file}.reserve`, `${file}.open`]
  const foreign = [file, ...sidecars].find(
    (each) =>
      (each === file ? stat : statSync(each, { throwIfNoEntry: false }))?.uid !== owner && existsSync(each),
  )
  if (foreign !== undefined)
    return createDiagnosis(
      'owner',
      'problem',
      `${foreign} belongs to user ${statSync(foreign).uid}, but its folder to user ${owner}`,
      `Give both to the user of the service: chown --reference=${folder} ${foreign}`,
    )
  if (!canWriteDatabase(file))
    return createDiagnosis(
      'writable',
      'problem',
      `${file} or its folder is read-only for this user`,
      USER_ADVICE,
    )
  return createDiagnosis('writable', 'ok', `${file} and its folder can be written`)
}

/** A file that no process uses is opened as immutable: otherwise SQLite would create files beside it. */
function findLocation(file: string): string {
  const isUsed = existsSync(`${file}-wal`) || existsSync(`${file}-shm`)
  return isUsed ? file : `${pathToFileURL(path.resolve(file)).href}?immutable=1`
}

async function* diagnoseContent(db: Queryable, sizeBytes: number): AsyncGenerator<Diagnosis> {
  const [{ version } = {}] = await db.all('select sqlite_version() as version')
  // The first read of the file: fails if it is not a database.
  const tables = await db.all(`select name from sqlite_schema where type = 'table' order by name`)
  yield createDiagnosis('database', 'ok', `SQLite ${String(version)} opens the file`)
  const versions = await diagnoseTables(db, sqliteDialect)
  yield versions
  const stored = versions.level === 'ok' ? await diagnoseStoredTime(db, Date.now()) : undefined
  if (stored) yield stored
  yield await diagnosePages(
    db,
    tables.map(({ name }) => String(name)),
    sizeBytes,
  )
}

async function diagnosePages(
  db: Queryable,
  tables: readonly string[],
  sizeBytes: number,
): Promise<Diagnosis> {
  const advice = 'For a complete check, run: verso verify'
  if (sizeBytes > MAX_CHECKED_BYTES)
    return createDiagnosis('integrity', 'ok', 'not checked, because the file is larger than 2 GB', advice)
  const startMs = performance.now()
  for (const [index, table] of tables.entries()) {
    if (performance.now() - startMs > MAX_CHECK_MS) {
      const checked = `${index} of ${tables.length} tables were checked in ${MAX_CHECK_MS / 1_000} s`
      return createDiagnosis('integrity', 'ok', `${checked}, without errors`, advice)
    }
    const rows = await db.all('select quick_check as fault from pragma_quick_check(?)', [table])
    const fault = rows.map((row) => String(row['fault'])).find((text) => text !== 'ok')
    if (fault !== undefined)
      return createDiagnosis(
        'integrity',
        'problem',
        `the table ${table} is damaged: ${fault}`,
        RESTORE_ADVICE,
      )
  }
  return createDiagnosis('integrity', 'ok', `quick_check of ${tables.length} tables found no errors`)
}

function describeOpenFailure(error: unknown): Diagnosis {
  const message = error instanceof Error ? error.message : String(error)
  if (isBusy(error))
    return createDiagnosis(
      'database',
      'problem',
      'another program has locked the file exclusively',
      'End that program: see the line "processes".',
    )
  if (/unable to open|readonly|permission/i.test(message))
    return createDiagnosis('database', 'problem', `the file cannot be opened: ${message}`, USER_ADVICE)
  return createDiagnosis('database', 'problem', `the file cannot be read: ${message}`, RESTORE_ADVICE)
}

function diagnoseWal(file: string): Diagnosis {
  const size = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  const text = `${(size / 1024 ** 2).toFixed(1)} MB`
  if (size <= MAX_WAL_BYTES) return createDiagnosis('wal', 'ok', `the write-ahead log has ${text}`)
  return createDiagnosis(
    'wal',
    'warning',
    `the write-ahead log has ${text}`,
    'A program that reads for a long time keeps it from being emptied: see the line "processes". A clean stop of the service empties it.',
  )
}

/** Linux lists the processes that have locked a file. SQLite locks the index of the WAL as long as it is open. */
function* diagnoseProcesses(file: string): Generator<Diagnosis> {
  const index = statSync(`${file}-shm`, { throwIfNoEntry: false })
  if (process.platform !== 'linux') return
  const locks = readFileSync('/proc/locks', 'utf8')
  const holders = locks.split('\n').flatMap((line) => {
    const [, pid, inode] = /\s(\d+) [\da-f]+:[\da-f]+:(\d+) /.exec(line) ?? []
    return Number(inode) === index?.ino && Number(pid) !== process.pid ? [Number(pid)] : []
  })
  const names = [...new Set(holders)].map((pid) => `${pid} (${readProcessName(pid)})`)
  yield createDiagnosis(
    'processes',
    'ok',
    names.length === 0 ? 'no other process uses the file' : `used by process ${names.join(', ')}`,
  )
}

function readProcessName(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, 3).join(' ').trim()
  } catch {
    // The process has ended, or belongs to another user.
    return 'unknown'
  }
}
