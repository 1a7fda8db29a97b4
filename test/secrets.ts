// Everything that a service leaves behind, and the search for secrets in it.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Database, Row } from '../src/store/engine/database.js'
import type { Engine, DatabaseLocation } from './targets.js'

/** Something that can be searched: an answer, a file, a column of a table. */
export interface Trace {
  readonly where: string
  readonly bytes: Buffer
}

/** A text that must be nowhere, unless it is in one of these places. */
export interface Secret {
  readonly what: string
  readonly text: string
  readonly onlyIn?: readonly string[]
}

/** The secrets that were found, with their locations. */
export function leaksIn(traces: readonly Trace[], secrets: readonly Secret[]): string[] {
  return secrets.flatMap(({ what, text, onlyIn = [] }) =>
    traces
      .filter(
        ({ where, bytes }) => !onlyIn.includes(where) && spellings(text).some((each) => bytes.includes(each)),
      )
      .map(({ where }) => `${what} in ${where}`),
  )
}

/** The forms in which a secret can appear: as it is, as JSON, and encoded. */
function spellings(text: string): readonly (string | Buffer)[] {
  const inJson = JSON.stringify(text).slice(1, -1)
  return [...new Set([text, inJson, encodeURIComponent(text)])]
}

/** The bytes of a copy that is made while the service runs: the database, its WAL, contents of files. */
export function copiedFiles(engine: Engine, { url }: DatabaseLocation): Trace[] {
  if (engine !== 'sqlite') return []
  const copy = mkdtempSync(path.join(tmpdir(), 'verso-copy-'))
  try {
    cpSync(path.dirname(url.slice('sqlite:'.length)), copy, { recursive: true })
    return filesIn(copy, 'copy')
  } finally {
    rmSync(copy, { recursive: true })
  }
}

export function filesIn(folder: string, name: string): Trace[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const file = path.join(entry.parentPath, entry.name)
      return { where: `${name}/${path.relative(folder, file)}`, bytes: readFileSync(file) }
    })
}

/** Every row of every table, column by column: `table.column`. */
export async function storedColumns(engine: Engine, { reader }: Database): Promise<Trace[]> {
  const tables =
    engine === 'sqlite'
      ? "select name from sqlite_master where type = 'table'"
      : 'select tablename as name from pg_tables where schemaname = current_schema()'
  const traces: Trace[] = []
  for (const { name } of await reader.all(tables)) {
    const rows = await reader.all(`select * from "${String(name)}"`)
    for (const column of Object.keys(rows[0] ?? {}))
      traces.push({ where: `${String(name)}.${column}`, bytes: bytesOf(rows, column) })
  }
  return traces
}

function bytesOf(rows: readonly Row[], column: string): Buffer {
  return Buffer.concat(
    rows.map((row) =>
      Buffer.from(`${String(row[column])}
`),
    ),
  )
}
