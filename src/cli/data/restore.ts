import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { pluralize } from '../../model/values/plural.js'
import { BACKUP_NAME, checkFrames } from '../../service/backup/backup-format.js'
import { readBackupPurges } from '../../service/backup/complete-restore.js'
import {
  PURGE_JOURNAL,
  readPurgeJournal,
  type RepeatedPurges,
} from '../../service/maintenance/repeated-purges.js'
import type { Purge } from '../../store/log/purges.js'
import { restoreBackup } from '../../service/backup/restore.js'
import { requireEmptyDatabase, RESTORE_FAILED } from '../../store/backup/restore-tables.js'
import { toFileConfigError } from '../file-error.js'
import { loadCatalog } from '../models/models.js'
import { redactDatabaseUrl, useDatabase } from '../open.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'
import { createProgressBar, type ProgressBar } from '../terminal/progress.js'
import { printLine } from '../terminal/listing.js'
import { COMMAND_POOL, STANDARD_STREAM } from './backup.js'

const EXAMPLES = `
The database must be empty: a new SQLite file, or a PostgreSQL database without tables. It may be of another engine than the
database that was backed up. All sessions end; passwords, keys and history stay.

Examples:
  $ verso restore verso-2026-01-31.backup --db sqlite:data/restored.db
  $ verso restore verso-2026-01-31.backup --db postgres://localhost/verso
  $ ssh backup.example.org 'cat verso.backup' | verso restore - --db sqlite:data/restored.db`

/** A scan of a large table takes long, and no request waits for it. */
const RESTORE_STATEMENT_TIMEOUT_MS = 60 * 60_000
const MAX_LISTED_RECORDS = 20
const READ_BYTES = 1024 * 1024

export function addRestoreCommand(program: Command): void {
  const command = program
    .command('restore')
    .description('restore a backup into an empty database, of SQLite or PostgreSQL')
  addSettingFlags(command, 'restore')
    .argument('<file>', 'backup file, or - for standard input')
    .option(
      '--moved',
      'the old service was stopped before the backup, for good: keep all versions, ids and change numbers',
    )
    .option(
      '--purges <file>',
      `also repeat the purges of this ${PURGE_JOURNAL}, or of a newer backup; the one beside the backup is always used`,
    )
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags: RestoreFlags) => {
      await runRestore(file, flags).catch((error: unknown) => {
        throw toFileConfigError(RESTORE_FAILED, error)
      })
    })
}

interface RestoreFlags extends Flags {
  readonly purges?: string
}

/** Reads the purges of the journal beside the backup, and of the file that the user names: a journal or a backup. */
async function readPurges(file: string, named: string | undefined): Promise<Purge[]> {
  const journal = path.join(path.dirname(file), PURGE_JOURNAL)
  const beside = file === STANDARD_STREAM ? [] : await readPurgeJournal(journal)
  if (named === undefined) return beside
  await requireFile(named)
  const isBackup = await hasBackupName(named)
  const others = isBackup ? await readBackupPurges(createReadStream(named)) : await readPurgeJournal(named)
  return [...beside, ...others]
}

async function requireFile(file: string): Promise<void> {
  if (file === '')
    throw new ConfigError(RESTORE_FAILED, ['the name of the file is empty; nothing was changed'])
  if ((await stat(file)).isDirectory())
    throw new ConfigError(RESTORE_FAILED, [`${file} is a folder, not a file; nothing was changed`])
}

async function hasBackupName(file: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const { buffer } = await handle.read(Buffer.alloc(BACKUP_NAME.length), 0, BACKUP_NAME.length)
    return buffer.toString('latin1') === BACKUP_NAME
  } finally {
    await handle.close()
  }
}

function describePurges({ purges, emptied }: RepeatedPurges): string[] {
  const some = emptied.slice(0, MAX_LISTED_RECORDS).map(({ model, id }) => `${model} ${id}`)
  return [
    ...(purges > 0 ? [`repeated ${pluralize(purges, 'purge')} of values`] : []),
    ...(emptied.length > 0
      ? [
          `deleted since the backup, and back without their purged values: ${some.join(', ')}. Delete them again`,
        ]
      : []),
  ]
}

async function runRestore(file: string, flags: RestoreFlags): Promise<void> {
  const { db: url, models } = readSettings('restore', flags, process.env)
  if (file === STANDARD_STREAM && process.stdin.isTTY)
    throw new ConfigError(RESTORE_FAILED, [
      'standard input is a terminal: name a file, or send a backup to this command (verso restore - < file)',
    ])
  if (file !== STANDARD_STREAM) await requireFile(file)
  const purges = await readPurges(file, flags.purges)
  const catalog = models === undefined ? undefined : await loadCatalog(models)
  const progress = await createProgressBar()
  const settings = { ...COMMAND_POOL, statementTimeoutMs: RESTORE_STATEMENT_TIMEOUT_MS }
  const sinceMs = performance.now()
  try {
    const total = file === STANDARD_STREAM ? 0 : (await stat(file)).size
    // The whole checksum first, so that a damaged file changes nothing.
    if (file !== STANDARD_STREAM) await checkFrames(openSource(file, progress, ['checking', total]))
    const { header, end, checks, repeated } = await useDatabase(
      url,
      async (db) => {
        await requireEmptyDatabase(db)
        return restoreBackup(db, {
          source: openSource(file, progress, ['restoring', total]),
          catalog,
          purges,
          isMoved: flags['moved'] === true,
          onProgress: (count) => {
            progress.advance(0, count)
          },
          onVerifying: () => {
            progress.begin('verifying', 0)
          },
        })
      },
      settings,
    )
    progress.end()
    const rows = end.tables.reduce((sum, table) => sum + table.rows, 0)
    const seconds = ((performance.now() - sinceMs) / 1_000).toFixed(1)
    const time = new Date(header.takenAtMs).toISOString()
    printLine(
      `restored ${pluralize(rows, 'row')} and ${pluralize(end.files, 'file')} into ${redactDatabaseUrl(url)} in ${seconds} s`,
    )
    for (const check of checks) printLine(`verified: ${check}`)
    for (const line of describePurges(repeated)) printLine(line)
    printLine(`the data is that of ${time}, up to change ${header.lastSeq}`)
  } finally {
    progress.end()
  }
}

async function* openSource(
  file: string,
  progress: ProgressBar,
  [label, total]: readonly [label: string, total: number],
): AsyncGenerator<Uint8Array> {
  progress.begin(label, total)
  const stream =
    file === STANDARD_STREAM ? process.stdin : createReadStream(file, { highWaterMark: READ_BYTES })
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (total > 0) progress.advance(chunk.length, 0)
    yield chunk
  }
}
