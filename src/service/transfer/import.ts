// Imports records from files with their ids and versions: checks all of them first, then writes them in batches.
import { randomBytes } from 'node:crypto'
import { VersoError, ConfigError } from '../../errors.js'
import { listUsernameSpellings } from '../../model/catalog/auth-models.js'
import { pluralize } from '../../model/values/plural.js'
import type { Model } from '../../model/definition/model.js'
import { sortMembersFirst } from '../../formats/transfer-fields.js'
import { LineReader } from '../../formats/ndjson.js'
import { listUsers } from '../../store/auth/accounts.js'
import { advanceIds } from '../../store/records/bulk.js'
import { reserveNumbersUpTo } from '../../store/records/sequences.js'
import type { App } from '../context/app.js'
import { writeImportBatch, type ImportContext, type ImportCounts } from './import-batch.js'
import { ImportCheck, type CheckedImport } from './import-check.js'
import { splitByContents } from './import-contents.js'
import { toNumberedLine, type NumberedLine } from './import-existing.js'
import { LineError, type ImportSource, type RawLine } from './import-source.js'
import { IMPORT_PRINCIPAL } from '../context/principal.js'
import { createRecord } from '../records/save.js'
import { createContext } from '../context/context.js'

export interface ImportOptions {
  /** Called after each batch. */
  readonly onProgress?: (stage: 'check' | 'write', model: Model, lines: number) => void
}

export interface ImportResult {
  readonly created: number
  /** Records that already existed at the same version. */
  readonly existing: number
  /** Users whom the files name and who did not exist. They are created as disabled, with a random password. */
  readonly createdUsers: readonly string[]
}

/**
 * Imports every record of the sources, or fails with a list of all errors. An interruption, also a crash, leaves complete batches; running the
 * same import again continues after them.
 */
export async function importRecords(
  app: App,
  sources: readonly ImportSource[],
  { onProgress = () => undefined }: ImportOptions = {},
): Promise<ImportResult> {
  const now = new Date(app.clock.now()).toISOString()
  const models = sortMembersFirst(app.catalog, [...new Set(sources.map(({ model }) => model))])
  const ordered = models.flatMap((model) => sources.filter((source) => source.model === model))
  const check = new ImportCheck(app, now, (model, lines) => {
    onProgress('check', model, lines)
  })
  const checked = await check.run(ordered)
  await reserveIds(app, checked)
  const { users, createdUsers } = await resolveUsers(app, [...checked.usernames])
  const complete = new Set(app.catalog.storedModels.filter((model) => !checked.ids.has(model)))
  const context: ImportContext = { app, checked, users, complete, written: new Map(), now }
  let [created, existing] = [0, 0]
  for (const [index, source] of ordered.entries()) {
    const { model } = source
    const report = (lines: number) => {
      onProgress('write', model, lines)
    }
    const counts = await writeSource(context, source, created, report)
    created += counts.created
    existing += counts.existing
    if (ordered[index + 1]?.model !== model) complete.add(model)
  }
  return { created, existing, createdUsers }
}

/** Reserves ids and sequence numbers before the first write, so that concurrent writers cannot take them. */
async function reserveIds(app: App, { greatest, numbers }: CheckedImport): Promise<void> {
  for (const [model, id] of greatest) {
    await app.db.transaction((tx) => advanceIds(tx, app.tables.of(model), id))
  }
  await app.db.transaction(async (tx) => {
    for (const [model, fields] of numbers)
      for (const [field, last] of fields) await reserveNumbersUpTo(tx, model, field, last)
  })
}

/** Returns the ids of users by name. Creates missing users, so that the authors of records are preserved. */
async function resolveUsers(
  app: App,
  usernames: readonly string[],
): Promise<{ users: ReadonlyMap<string, number>; createdUsers: readonly string[] }> {
  const all = await listUsers(app.db.reader)
  const users = new Map<string, number>()
  // An exact spelling takes precedence over a folded one.
  for (const { username, id } of all) users.set(listUsernameSpellings(username).at(-1) ?? username, id)
  for (const { username, id } of all) users.set(username, id)
  const createdUsers: string[] = []
  for (const username of usernames) {
    const folded = listUsernameSpellings(username).at(-1) ?? username
    let id = users.get(username) ?? users.get(folded)
    if (id === undefined) {
      id = await createDisabledUser(app, folded)
      users.set(folded, id)
      createdUsers.push(folded)
    }
    users.set(username, id)
  }
  return { users, createdUsers }
}

async function createDisabledUser(app: App, username: string): Promise<number> {
  const password = randomBytes(32).toString('base64url')
  const user = { username, name: username, password, disabled: true }
  return (await createRecord(createContext(app, IMPORT_PRINCIPAL), app.catalog.user, user)).data.id
}

/** Reads and parses the next batch while the current one is written. */
async function writeSource(
  context: ImportContext,
  source: ImportSource,
  before: number,
  onWritten: (lines: number) => void,
): Promise<ImportCounts> {
  const reader = new LineReader(source.model)
  let [created, existing] = [0, 0]
  const portions = readPortions(context, source, reader)
  for (let next = await portions.next(); next.done !== true;) {
    const lines = next.value
    const upcoming = portions.next()
    upcoming.catch(() => undefined)
    const counts = await writeImportBatch(context, source, reader, lines).catch((error: unknown) => {
      throw createStoppedError(source, error, before + created)
    })
    created += counts.created
    existing += counts.existing
    onWritten(lines.length)
    next = await upcoming
  }
  return { created, existing }
}

/** The lines of one transaction whose model has hooks: each line takes longer, and other writers wait. */
const HOOKED_BATCH_LINES = 100

async function* readPortions(
  { app, now }: ImportContext,
  source: ImportSource,
  reader: LineReader,
): AsyncGenerator<readonly NumberedLine[]> {
  const maxLines = app.hooks.models.has(source.model.name) ? HOOKED_BATCH_LINES : Infinity
  for await (const portion of source.read()) {
    const lines = portion.map((raw) => readCheckedLine(source, reader, raw, now))
    for (let from = 0; from < lines.length; from += maxLines)
      yield* splitByContents(reader, lines.slice(from, from + maxLines))
  }
}

function readCheckedLine(
  source: ImportSource,
  reader: LineReader,
  { line, input, error }: RawLine,
  now: string,
): NumberedLine {
  const read = error === undefined ? reader.read(input, now, () => undefined) : undefined
  if (!read)
    throw new ConfigError('The import has stopped', [
      `${source.name}:${line}: the line has changed since the check`,
    ])
  return toNumberedLine(line, read)
}

function createStoppedError(source: ImportSource, error: unknown, created: number): unknown {
  const isOfLine = error instanceof LineError
  if (!isOfLine && !(error instanceof VersoError)) return error
  const location = isOfLine ? `${source.name}:${error.line}` : source.name
  return new ConfigError('The import has stopped', [
    `${location}: ${error.message}`,
    `${pluralize(created, 'record')} ${created === 1 ? 'was' : 'were'} imported before this error. Correct it and run the same command again: it continues after them`,
  ])
}
