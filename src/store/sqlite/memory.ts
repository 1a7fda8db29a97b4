// `sqlite::memory:` is a file in a private temporary folder, because readers and query workers are connections of their own, and SQLite
// gives each connection its own in-memory database. The folder is removed when the database closes or the process exits. A process that
// is killed leaves it behind.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Database } from '../engine/database.js'
import { openSqlite, type SqliteOptions } from './sqlite.js'

const folders = new Set<string>()

export async function openMemory(options: SqliteOptions): Promise<Database> {
  const { file, remove } = createMemoryFile()
  try {
    return await openSqlite(file, { ...options, diskReserveBytes: 0 }, remove)
  } catch (error) {
    remove()
    throw error
  }
}

export interface MemoryFile {
  readonly file: string
  readonly remove: () => void
}

/** Creates the folder of a database that several connections open one after another, and that ends with the process. */
export function createMemoryFile(): MemoryFile {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-memory-'))
  if (folders.size === 0) process.on('exit', removeAllFolders)
  folders.add(folder)
  const remove = () => {
    rmSync(folder, { recursive: true, force: true })
    folders.delete(folder)
    if (folders.size === 0) process.off('exit', removeAllFolders)
  }
  return { file: path.join(folder, 'verso.db'), remove }
}

function removeAllFolders(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}
