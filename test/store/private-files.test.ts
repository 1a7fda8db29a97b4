// Only the owner of the process can open files that hold records, with any umask.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import { DatabaseSync } from '@photostructure/sqlite'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openSqlite } from '../../src/store/sqlite/sqlite.js'
import { enter, startService } from '../targets.js'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'verso-modes-'))
  file = path.join(folder, 'data', 'verso.db')
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** The mode of everything in a folder, recursively; names of folders end in a slash. */
function modesIn(place: string): Record<string, string> {
  const modes: Record<string, string> = {}
  for (const entry of readdirSync(place, { recursive: true, withFileTypes: true })) {
    const full = path.join(entry.parentPath, entry.name)
    const name = path.relative(place, full) + (entry.isDirectory() ? '/' : '')
    modes[name] = (statSync(full).mode & 0o777).toString(8)
  }
  return modes
}

const others = (modes: Readonly<Record<string, string>>) =>
  Object.entries(modes).filter(([name, mode]) => mode !== (name.endsWith('/') ? '700' : '600'))

describe('files of a new database', () => {
  test('a new database and its files have the mode 0600, and its folders 0700', async () => {
    const location = { url: `sqlite:${file}`, remove: () => undefined }
    const service = await startService('sqlite', { location })
    try {
      const records = await enter(service, 'direct')
      const content = Readable.from([Buffer.from('text')])
      await records.upload('com.axelor.meta.db.MetaFile', { data: {}, name: 'a.txt', content })
      const modes = modesIn(folder)
      expect(Object.keys(modes)).toEqual(
        expect.arrayContaining([
          'data/',
          'data/verso.db',
          'data/verso.db-wal',
          'data/verso.db-shm',
          'data/verso.db.files/',
        ]),
      )
      expect(Object.keys(modes).filter((name) => name.includes('verso.db.files/')).length).toBeGreaterThan(3)
      expect(others(modes)).toEqual([])
    } finally {
      await service.close()
    }
    expect(others(modesIn(folder))).toEqual([])
  })

  test('a database created by SQLite alone has a readable -wal, which the check reports', () => {
    mkdirSync(path.dirname(file), { mode: 0o700 })
    const connection = new DatabaseSync(file)
    chmodSync(file, 0o644)
    connection.exec('pragma journal_mode = wal; create table item (id integer)')
    expect(others(modesIn(folder)).map(([name]) => name)).toContain('data/verso.db-wal')
    connection.close()
  })
})

describe('a database with too wide modes', () => {
  const widen = async () => {
    await (await openSqlite(file)).close()
    mkdirSync(`${file}.files`)
    chmodSync(`${file}.files`, 0o755)
    chmodSync(file, 0o644)
  }

  test('a start narrows the modes of a database, with a warning for each file', async () => {
    await widen()
    const lines: string[] = []
    const stream = new Writable({
      write(chunk: Buffer, _, done) {
        lines.push(chunk.toString())
        done()
      },
    })
    const location = { url: `sqlite:${file}`, remove: () => undefined }
    const start = async () => {
      lines.length = 0
      const service = await startService('sqlite', { location, log: pino({ level: 'warn' }, stream) })
      await service.close()
      return lines.map((line) => (JSON.parse(line) as { file?: string }).file)
    }
    expect(await start()).toEqual([file, `${file}.files`])
    expect(others(modesIn(folder))).toEqual([])
    expect(await start()).toEqual([])
  })

  test('a start narrows the modes of files that a killed process left', async () => {
    await widen()
    const holding = new DatabaseSync(file)
    holding.exec('create table item (id integer)')
    for (const tail of ['-wal', '-shm']) {
      expect(existsSync(file + tail)).toBe(true)
      chmodSync(file + tail, 0o664)
    }
    const narrowed: string[] = []
    const db = await openSqlite(file, { onModeNarrowed: (each) => narrowed.push(each) })
    expect(narrowed).toEqual([file, `${file}-wal`, `${file}-shm`, `${file}.files`])
    expect(others(modesIn(folder))).toEqual([])
    await db.close()
    holding.close()
  })

  test('a second connection does not drop the file locks of the first', async () => {
    const first = await openSqlite(file)
    await first.transaction((tx) => tx.run('create table item (id integer)'))
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const writing = first.transaction(async (tx) => {
      await tx.run('insert into item values (1)')
      await held
    })
    const second = await openSqlite(file)
    const also = second.transaction((tx) => tx.run('insert into item values (2)'))
    release()
    await Promise.all([writing, also])
    expect(await first.reader.all('select id from item order by id')).toEqual([{ id: 1 }, { id: 2 }])
    await first.close()
    await second.close()
  })
})
