// Writes one batch of an import: rows, links and Changes in one transaction.
import { VersoError } from '../../errors.js'
import type { Field } from '../../model/values/field.js'
import { IdSet } from '../../formats/id-set.js'
import { isOwnedList, type Model } from '../../model/definition/model.js'
import type { LineReader } from '../../formats/ndjson.js'
import type { Values } from '../../model/values/value.js'
import { readMaxId, insertWithIds, readVersions, type RowWithId } from '../../store/records/bulk.js'
import type { Transaction } from '../../store/engine/database.js'
import { insertRows } from '../../store/records/write.js'
import { takeNextNumber } from '../../store/records/sequences.js'
import { SERVICE_PRINCIPAL } from '../context/principal.js'
import { diffValues } from '../write/write-rows.js'
import { diffFiles } from '../write/held-files.js'
import { ReceivedBlobs } from './import-contents.js'
import { findExisting, type NumberedLine } from './import-existing.js'
import { lockReferencedRecords, insertRecordLinks, type ImportReferences } from './import-related.js'
import { LineError, type ImportSource } from './import-source.js'
import { WriteState } from '../write/write-state.js'
import { ImportHooks } from './import-hooks.js'
import { writeInTransaction } from '../write/transaction.js'
import { createContext } from '../context/context.js'

export interface ImportContext extends ImportReferences {
  /** User ids by name. */
  readonly users: ReadonlyMap<string, number>
  /** Owners of lists that this run has created. */
  readonly written: Map<Model, IdSet>
  readonly now: string
}

/** The context of one batch. */
interface BatchContext extends ImportContext {
  readonly reader: LineReader
  readonly contents: ReceivedBlobs
}

export interface ImportCounts {
  readonly created: number
  readonly existing: number
}

export async function writeImportBatch(
  context: ImportContext,
  source: ImportSource,
  reader: LineReader,
  lines: readonly NumberedLine[],
): Promise<ImportCounts> {
  const contents = new ReceivedBlobs(context.app, reader)
  const batch: BatchContext = { ...context, reader, contents }
  try {
    await receiveContents(batch, source, lines)
    const ids = await attemptBatch(batch, lines, false).catch(async (error: unknown) => {
      if (!(error instanceof VersoError) || error.kind !== 'not-unique') throw error
      // The database names the index but not the row. Inserting one by one finds the row.
      return attemptBatch(batch, lines, true)
    })
    rememberOwners(context, reader.model, ids)
    return { created: ids.length, existing: lines.length - ids.length }
  } finally {
    await contents.finish()
  }
}

function rememberOwners({ written }: ImportContext, model: Model, ids: readonly number[]): void {
  if (![...model.fields.values()].some(isOwnedList)) return
  const owners = written.get(model) ?? new IdSet()
  for (const id of ids) owners.add(id)
  written.set(model, owners)
}

/** Receives contents before the transaction, because that may be retried. Skips the contents of existing records. */
async function receiveContents(
  { app, reader, contents }: BatchContext,
  source: ImportSource,
  lines: readonly NumberedLine[],
): Promise<void> {
  if (!reader.hasFiles || !lines.some((line) => reader.listFiles(line).length > 0)) return
  const ids = lines.flatMap(({ id }) => id ?? [])
  const there = await readVersions(app.db.reader, app.tables.of(reader.model), ids)
  await contents.receive(source, lines, new Set(there.keys()))
}

/** Returns the ids of the created records. */
async function attemptBatch(
  context: BatchContext,
  lines: readonly NumberedLine[],
  isOneByOne: boolean,
): Promise<readonly number[]> {
  const { app, reader } = context
  const { model } = reader
  const request = { action: 'create', model: model.name } as const
  const { data } = await writeInTransaction(
    createContext(app, SERVICE_PRINCIPAL),
    request,
    {},
    async ({ context: writing, changes }) => {
      const { tx } = writing
      const newLines = await skipExisting(context, tx, lines)
      const state = new WriteState({ ...writing, now: context.now })
      const table = app.tables.of(model)
      const hooks = ImportHooks.find(state, model)
      const toRow = (line: NumberedLine): ImportRow => ({
        line,
        values: reader.resolveUsers(line, (name) => findUserId(context, name)),
      })
      const store = async (rows: readonly ImportRow[]) => {
        await state.changeSet.lockOwners(await findExistingOwners(context, tx, rows))
        const stored = await storeRows(context, tx, rows, isOneByOne || hooks !== undefined)
        await insertRecordLinks(tx, table, stored)
        return stored
      }
      // A hook sees the lines before its own as stored records.
      const stored = hooks
        ? await hooks.storeRows(newLines.map(toRow), store)
        : await store(newLines.map(toRow))
      await lockReferencedRecords(context, tx, reader, newLines)
      const atMs = Date.parse(context.now)
      for (const { id, version, values } of hooks ? [] : stored) {
        const plain = diffValues(model, {}, values)
        const logged = reader.hasFiles ? { ...plain, ...diffFiles(table, new Map(), values) } : plain
        changes.push({
          model: model.name,
          id,
          version,
          action: 'create',
          userId: null,
          atMs,
          changes: logged,
        })
      }
      changes.push(...(await state.finish()))
      return stored.map(({ id }) => id)
    },
  )
  return data
}

function findUserId({ users }: ImportContext, username: string): number {
  const id = users.get(username)
  if (id === undefined) throw new Error(`user ${username} was created but cannot be found`)
  return id
}

/** Skips records that an earlier, interrupted run has written. */
async function skipExisting(
  { app, reader }: BatchContext,
  tx: Transaction,
  lines: readonly NumberedLine[],
): Promise<readonly NumberedLine[]> {
  // Most files are sorted by id and start after the existing records, so nothing has to be looked up.
  const last = await readMaxId(tx, app.tables.of(reader.model))
  const known = lines.filter(({ id }) => id !== undefined && id <= last)
  const { ids, errors } = await findExisting(tx, app, reader, known)
  const [error] = errors
  if (error) throw new LineError(error.line, error.message)
  return ids.size === 0 ? lines : lines.filter(({ id }) => id === undefined || !ids.has(id))
}

/**
 * Returns the owners that existed before this run and whose lists get new members. Their versions are incremented: otherwise, saving an outdated
 * copy of the list would silently remove the new members. Owners that are also in the files are included, because an earlier run may have created
 * them and a client may have read them since. Owners that this run has still to create get the version of their line, with all members.
 */
async function findExistingOwners(
  { app, reader: { model }, written }: BatchContext,
  tx: Transaction,
  rows: readonly ImportRow[],
): Promise<{ model: Model; id: number }[]> {
  const owners: { model: Model; id: number }[] = []
  for (const field of model.fields.values()) {
    const list = app.catalog.findOwner(model, field)
    if (!list) continue
    const ids = rows.flatMap(({ values }) => {
      const owner = (values[field.name] ?? null) as { readonly id: number } | null
      return owner && !written.get(list.model)?.has(owner.id) ? [owner.id] : []
    })
    const existing = await readVersions(tx, app.tables.of(list.model), [...new Set(ids)])
    for (const id of existing.keys()) owners.push({ model: list.model, id })
  }
  return owners
}

interface ImportRow {
  readonly line: NumberedLine
  readonly values: Values
}

async function storeRows(
  { app, reader, contents }: BatchContext,
  tx: Transaction,
  rows: readonly ImportRow[],
  isOneByOne: boolean,
): Promise<readonly RowWithId[]> {
  const { model, hasFiles } = reader
  const table = app.tables.of(model)
  const sequences = model.sequenceFields
  const stored: RowWithId[] = []
  const rowsWithId: RowWithId[] = []
  for (const { line, values } of rows) {
    const withFiles = hasFiles ? await contents.store(tx, line, values) : values
    const numbered =
      sequences.length > 0 ? await fillSequenceFields(tx, model, sequences, withFiles) : withFiles
    const { id, version } = line
    if (id === undefined) {
      const [newId = 0] = await withLineNumber(line, () => insertRows(tx, table, [numbered]))
      stored.push({ id: newId, version, values: numbered })
      continue
    }
    const row = { id, version, values: numbered }
    if (isOneByOne) await withLineNumber(line, () => insertWithIds(tx, table, [row]))
    else rowsWithId.push(row)
    stored.push(row)
  }
  await insertWithIds(tx, table, rowsWithId)
  return stored
}

/** Takes sequence numbers for the fields that the line does not set. */
async function fillSequenceFields(
  tx: Transaction,
  model: Model,
  sequences: readonly Field[],
  values: Values,
): Promise<Values> {
  const numbered = { ...values }
  for (const field of sequences) numbered[field.name] ??= await takeNextNumber(tx, model, field)
  return numbered
}

async function withLineNumber<T>({ line }: NumberedLine, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof VersoError) || error.kind !== 'not-unique') throw error
    const errors = Object.entries(error.details.errors ?? {})
    const messages = errors.map(([name, message]) => `${name} ${message}`)
    throw new LineError(line, messages.join('; ') || 'another record has the same id')
  }
}
