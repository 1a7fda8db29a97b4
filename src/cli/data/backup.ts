import { once } from 'node:events'
import { statSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { pluralize } from '../../model/values/plural.js'
import { writeBackupFile } from '../../service/backup/backup-file.js'
import { BACKUP_FAILED, writeBackup, type BackupOptions } from '../../service/backup/backup.js'
import type { Database } from '../../store/engine/database.js'
import { readErrorCode } from '../../store/engine/file-errors.js'
import { toFileConfigError } from '../file-error.js'
import { lowerPriority } from '../low-priority.js'
import { requireDatabaseFile, useDatabase } from '../open.js'
import { readPackageVersion } from '../package-files.js'
import { readSettings, addSettingFlags, type Flags } from '../settings/read-settings.js'
import { createProgressBar } from '../terminal/progress.js'

const EXAMPLES = `
Backs up the whole database while the service runs: records, files, history, users, roles, keys, webhooks. The file can be
restored into SQLite and into PostgreSQL. It has mode 0600, and appears under its name when it is complete.

Examples:
  $ verso backup verso-2026-01-31.backup
  $ verso backup - | ssh backup.example.org 'cat > verso.backup'`

export const STANDARD_STREAM = '-'
/** One connection for each purpose; a backup opens another one for its snapshot. */
export const COMMAND_POOL = { poolSize: 3 }

export function addBackupCommand(program: Command): void {
  const command = program.command('backup').description('back up the database of a running service to a file')
  addSettingFlags(command, 'backup')
    .argument('<file>', 'file to create, or - for standard output')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags: Flags) => {
      const { db: url } = readSettings('backup', flags, process.env)
      if (file === STANDARD_STREAM) requirePipe()
      else requireFolder(file)
      requireDatabaseFile(url)
      lowerPriority(process.pid)
      await useDatabase(url, (db) => backUp(db, file), COMMAND_POOL)
    })
}

function requirePipe(): void {
  if (process.stdout.isTTY)
    throw new ConfigError(BACKUP_FAILED, [
      'standard output is a terminal: name a file, or send the output to a program or a file (verso backup - > file)',
    ])
}

function requireFolder(file: string): void {
  if (file === '' || /[/\\]$/.test(file))
    throw new ConfigError(BACKUP_FAILED, [`"${file}" names no file: name a file to create`])
  const folder = path.dirname(path.resolve(file))
  try {
    if (statSync(folder).isDirectory()) return
  } catch (error) {
    throw toFileConfigError(BACKUP_FAILED, error)
  }
  throw new ConfigError(BACKUP_FAILED, [`${folder} is a file, not a folder`])
}

async function backUp(db: Database, file: string): Promise<void> {
  const progress = await createProgressBar()
  progress.begin('backing up', 0)
  const sinceMs = performance.now()
  const options: Omit<BackupOptions, 'sink'> = {
    release: readPackageVersion(),
    onProgress: (count) => {
      progress.advance(count, count)
    },
  }
  try {
    const written =
      file === STANDARD_STREAM
        ? await writeBackup(db, { ...options, sink: writeToStandardOutput })
        : await writeBackupFile(db, file, options)
    progress.end()
    const seconds = ((performance.now() - sinceMs) / 1_000).toFixed(1)
    // Standard output may be the backup.
    process.stderr.write(
      `backed up ${pluralize(written.rows, 'row')} and ${pluralize(written.files, 'file')}: ` +
        `${formatMegabytes(written.bytes)} MB in ${seconds} s, up to change ${written.lastSeq}\n`,
    )
  } catch (error) {
    throw readErrorCode(error) === 'EPIPE' ? createReceiverError() : toFileConfigError(BACKUP_FAILED, error)
  } finally {
    progress.end()
  }
}

function createReceiverError(): ConfigError {
  return new ConfigError(BACKUP_FAILED, ['the program that receives standard output has ended'])
}

export function formatMegabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1)
}

async function writeToStandardOutput(bytes: Uint8Array): Promise<void> {
  // Without this check a backup would run to its end although nobody receives it.
  if (process.stdout.destroyed || process.stdout.errored) throw createReceiverError()
  if (process.stdout.write(bytes)) return
  const waiting = new AbortController()
  const { signal } = waiting
  const ends = [once(process.stdout, 'drain', { signal }), once(process.stdout, 'close', { signal })]
  try {
    await Promise.race(ends)
  } finally {
    // Removes the listeners of the other one.
    waiting.abort()
    await Promise.allSettled(ends)
  }
}
