// The first pass of an import: reads and checks every line, and reports all errors before anything is written.
import type { Field } from '../../model/values/field.js'
import { pluralize } from '../../model/values/plural.js'
import { IdSet } from '../../formats/id-set.js'
import type { Model } from '../../model/definition/model.js'
import { LineReader, type ImportLine } from '../../formats/ndjson.js'
import { readMaxId, readVersions } from '../../store/records/bulk.js'
import { findLastLoggedId, findLastVersions } from '../../store/log/log.js'
import { parseSequenceNumber } from '../../store/records/sequences.js'
import type { App } from '../context/app.js'
import { findImportContentError } from './import-contents.js'
import { findExisting, toNumberedLine, type NumberedLine } from './import-existing.js'
import { LineErrors, type ImportSource, type RawLine } from './import-source.js'

/** The results that the second pass needs. */
export interface CheckedImport {
  /** Ids in the files, by model. */
  readonly ids: ReadonlyMap<Model, IdSet>
  readonly greatest: ReadonlyMap<Model, number>
  /** The greatest sequence number in the files, by field. */
  readonly numbers: ReadonlyMap<Model, ReadonlyMap<Field, number>>
  readonly usernames: ReadonlySet<string>
}

/** A reference whose target was not found yet. */
interface PendingReference {
  readonly source: ImportSource
  readonly line: number
  readonly field: Field
  readonly id: number
}

const LOOKUP_BATCH_ROWS = 1_000

export class ImportCheck {
  readonly #errors = new LineErrors()
  readonly #ids = new Map<Model, IdSet>()
  readonly #greatest = new Map<Model, number>()
  readonly #numbers = new Map<Model, Map<Field, number>>()
  readonly #usernames = new Set<string>()
  /** Ids found in the database, so that they are looked up once. */
  readonly #existingIds = new Map<Model, IdSet>()
  /** References to models whose files were not read to the end yet. */
  readonly #deferred = new Map<Model, PendingReference[]>()
  /** References to records that are not in the files, so they must be in the database. */
  readonly #unknown = new Map<Model, PendingReference[]>()
  readonly #remainingSources = new Map<Model, number>()

  constructor(
    private readonly app: App,
    private readonly now: string,
    private readonly onProgress: (model: Model, lines: number) => void,
  ) {}

  async run(sources: readonly ImportSource[]): Promise<CheckedImport> {
    for (const { model } of sources) {
      this.#ids.set(model, new IdSet())
      this.#remainingSources.set(model, (this.#remainingSources.get(model) ?? 0) + 1)
    }
    for (const model of this.#ids.keys())
      for (const obstacle of new LineReader(model).listObstacles()) this.#errors.addText(obstacle)
    for (const source of sources) {
      await this.#readSource(source)
      await this.#finishSource(source.model)
    }
    for (const model of this.#unknown.keys()) await this.#lookUpReferences(model)
    this.#errors.refuseIfAny(`Nothing was imported: ${pluralize(this.#errors.count, 'error')}`)
    return {
      ids: this.#ids,
      greatest: this.#greatest,
      numbers: this.#numbers,
      usernames: this.#usernames,
    }
  }

  async #readSource(source: ImportSource): Promise<void> {
    const { model } = source
    const table = this.app.tables.of(model)
    const reader = new LineReader(model)
    const { reader: db } = this.app.db
    // No record with a greater id has ever existed here.
    const last = Math.max(await readMaxId(db, table), await findLastLoggedId(db, model.name))
    for await (const portion of source.read()) {
      const lines: NumberedLine[] = []
      for (const raw of portion) {
        const line = this.#readLine(source, reader, raw)
        if (line) lines.push(toNumberedLine(raw.line, line))
      }
      const known = lines.filter(({ id }) => id !== undefined && id <= last)
      const existing = await this.#compareWithStored(source, reader, known)
      if (reader.hasFiles)
        await this.#checkContents(
          source,
          reader,
          lines.filter(({ id = 0 }) => !existing.has(id)),
        )
      for (const [target, pending] of this.#unknown)
        if (pending.length >= LOOKUP_BATCH_ROWS) await this.#lookUpReferences(target)
      this.onProgress(model, portion.length)
    }
  }

  #readLine(
    source: ImportSource,
    reader: LineReader,
    { line, input, error }: RawLine,
  ): ImportLine | undefined {
    if (error !== undefined) {
      this.#errors.add(source, line, error)
      return undefined
    }
    const read = reader.read(input, this.now, (path, message) => {
      this.#errors.add(source, line, path === '' ? message : `${path} ${message}`)
    })
    if (!read) return undefined
    this.#noteId(source, line, read)
    this.#noteNumbers(source.model, read)
    reader.forEachUser(read, (username) => this.#usernames.add(username))
    reader.forEachReference(read, (field, id) => {
      if (!this.#isKnown(field, id)) this.#noteUnknown({ source, line, field, id })
    })
    return read
  }

  #noteId(source: ImportSource, line: number, { id }: ImportLine): void {
    if (id === undefined) return
    const { model } = source
    if (!this.#ids.get(model)?.add(id)) this.#errors.add(source, line, `id ${id} occurs twice in the files`)
    if (id > (this.#greatest.get(model) ?? 0)) this.#greatest.set(model, id)
  }

  #noteNumbers(model: Model, { values }: ImportLine): void {
    for (const field of model.sequenceFields) {
      const text = values[field.name]
      const number = typeof text === 'string' ? parseSequenceNumber(field, text) : undefined
      if (number === undefined) continue
      const greatest = this.#numbers.get(model) ?? new Map<Field, number>()
      greatest.set(field, Math.max(number, greatest.get(field) ?? 0))
      this.#numbers.set(model, greatest)
    }
  }

  #isKnown(field: Field, id: number): boolean {
    const target = this.#findTarget(field)
    return this.#ids.get(target)?.has(id) === true || this.#existingIds.get(target)?.has(id) === true
  }

  #noteUnknown(reference: PendingReference): void {
    const target = this.#findTarget(reference.field)
    const isComing = (this.#remainingSources.get(target) ?? 0) > 0
    addToList(isComing ? this.#deferred : this.#unknown, target, reference)
  }

  /** After the last source of a model, references that are not in the files must be in the database. */
  async #finishSource(model: Model): Promise<void> {
    const left = (this.#remainingSources.get(model) ?? 1) - 1
    this.#remainingSources.set(model, left)
    if (left > 0) return
    for (const reference of this.#deferred.get(model) ?? []) {
      if (this.#isKnown(reference.field, reference.id)) continue
      this.#noteUnknown(reference)
      if ((this.#unknown.get(model)?.length ?? 0) >= LOOKUP_BATCH_ROWS) await this.#lookUpReferences(model)
    }
    this.#deferred.delete(model)
  }

  async #lookUpReferences(target: Model): Promise<void> {
    const pending = this.#unknown.get(target) ?? []
    this.#unknown.delete(target)
    const ids = [...new Set(pending.map(({ id }) => id))]
    const existing = await readVersions(this.app.db.reader, this.app.tables.of(target), ids)
    const known = this.#existingIds.get(target) ?? new IdSet()
    for (const id of existing.keys()) known.add(id)
    this.#existingIds.set(target, known)
    for (const { source, line, field, id } of pending) {
      if (!existing.has(id))
        this.#errors.add(source, line, `${field.name} refers to ${target.name} ${id}, which does not exist`)
    }
  }

  /** Existing records must equal their lines, and deleted records must not come back silently. Returns the ids of existing records. */
  async #compareWithStored(
    source: ImportSource,
    reader: LineReader,
    lines: readonly NumberedLine[],
  ): Promise<ReadonlySet<number>> {
    if (lines.length === 0) return new Set()
    const { db } = this.app
    const { name } = source.model
    const { ids, errors } = await findExisting(db.reader, this.app, reader, lines)
    for (const { line, message } of errors) this.#errors.add(source, line, message)
    const missing = lines.filter(({ id = 0 }) => !ids.has(id))
    if (missing.length === 0) return ids
    const missingIds = missing.map(({ id = 0 }) => id)
    const logged = await findLastVersions(db.reader, db.dialect, name, missingIds)
    for (const { id = 0, version, line } of missing) {
      const last = logged.get(id) ?? -1
      if (last >= version)
        this.#errors.add(source, line, `${name} ${id} was deleted in this database, at version ${last}`)
    }
    return ids
  }

  /** Checks the contents of new records. Existing records already have theirs. */
  async #checkContents(
    source: ImportSource,
    reader: LineReader,
    lines: readonly NumberedLine[],
  ): Promise<void> {
    for (const line of lines) {
      for (const { field, facts } of reader.listFiles(line)) {
        const error = await findImportContentError(source, facts)
        if (error !== undefined) this.#errors.add(source, line.line, `${field.name} ${error}`)
      }
    }
  }

  #findTarget({ relation }: Field): Model {
    if (!relation) throw new Error('the field is not a reference')
    return this.app.catalog.getTarget(relation)
  }
}

function addToList<K, T>(lists: Map<K, T[]>, key: K, item: T): void {
  const list = lists.get(key)
  if (list) list.push(item)
  else lists.set(key, [item])
}
