// File contents of an import: verified while lines are checked, and received before the transaction that stores their records.
import { createHash } from 'node:crypto'
import { VersoError } from '../../errors.js'
import { deriveFileValues, pickFileMetadata, type FileMetadata } from '../../model/catalog/file-metadata.js'
import { detectContentType } from '../../model/values/file-type.js'
import type { LineReader } from '../../formats/ndjson.js'
import type { Values } from '../../model/values/value.js'
import type { PendingBlob, Transaction } from '../../store/engine/database.js'
import { insertFile } from '../../store/records/files.js'
import type { App } from '../context/app.js'
import type { NumberedLine } from './import-existing.js'
import { LineError, type ImportSource } from './import-source.js'

/** Limits of one transaction. Every content that waits for it is an open file. */
const MAX_BATCH_FILES = 64
const MAX_BATCH_CONTENT_BYTES = 64 * 1024 * 1024

/** Returns the error of the content that a line names, or undefined. */
export async function findImportContentError(
  source: ImportSource,
  { size, sha256 }: FileMetadata,
): Promise<string | undefined> {
  const content = await source.content?.(sha256)
  if (!content) return `its content ${sha256} is missing`
  const digest = createHash('sha256')
  let bytes = 0
  for await (const chunk of content) {
    digest.update(chunk)
    bytes += chunk.length
  }
  if (bytes !== size) return `its content ${sha256} has ${bytes} bytes, not ${size}`
  return digest.digest('hex') === sha256 ? undefined : `its content ${sha256} does not match its SHA-256`
}

/** Splits a batch of lines so that each part stays within the limits for contents. */
export function* splitByContents(
  reader: LineReader,
  lines: readonly NumberedLine[],
): Generator<readonly NumberedLine[]> {
  if (!reader.hasFiles) {
    yield lines
    return
  }
  let portion: NumberedLine[] = []
  let [files, bytes] = [0, 0]
  for (const line of lines) {
    const lineFiles = reader.listFiles(line)
    const lineBytes = lineFiles.reduce((sum, { facts }) => sum + facts.size, 0)
    const isFull = files + lineFiles.length > MAX_BATCH_FILES || bytes + lineBytes > MAX_BATCH_CONTENT_BYTES
    if (lineFiles.length > 0 && files > 0 && isFull) {
      yield portion
      portion = []
      files = bytes = 0
    }
    portion.push(line)
    files += lineFiles.length
    bytes += lineBytes
  }
  if (portion.length > 0) yield portion
}

/** The received contents of one batch. Call `finish` after its transaction, also if that failed. */
export class ReceivedBlobs {
  readonly #byLine = new Map<NumberedLine, ReadonlyMap<string, PendingBlob>>()

  constructor(
    private readonly app: App,
    private readonly reader: LineReader,
  ) {}

  /** Receives the contents of all lines except those of existing records. */
  async receive(
    source: ImportSource,
    lines: readonly NumberedLine[],
    existing: ReadonlySet<number>,
  ): Promise<void> {
    for (const line of lines) {
      const files = this.reader.listFiles(line)
      if (files.length === 0 || existing.has(line.id ?? 0)) continue
      const received = new Map<string, PendingBlob>()
      // Registers the map first, so that `finish` also handles contents that arrived before an error.
      this.#byLine.set(line, received)
      for (const { field, facts } of files) {
        const content = await source.content?.(facts.sha256)
        if (!content) throw createContentChangedError(line, field.name)
        // The limit is the size that was checked. The upload limit does not apply to imports.
        const blob = await this.app.db.blobs.receive(content, facts.size).catch((error: unknown) => {
          throw isTooLargeError(error) ? createContentChangedError(line, field.name) : error
        })
        received.set(field.name, blob)
        if (blob.sha256 !== facts.sha256) throw createContentChangedError(line, field.name)
      }
    }
  }

  /** Inserts the files of one line and returns its values with their ids. Runs inside the transaction. */
  async store(tx: Transaction, line: NumberedLine, values: Values): Promise<Values> {
    const { app, reader } = this
    let stored = values
    for (const { field, facts } of reader.listFiles(line)) {
      const blob = this.#byLine.get(line)?.get(field.name)
      if (!blob) throw new LineError(line.line, 'a file that was read before is no longer available')
      // Detects the type from the content, as for an upload, because browsers act on it.
      const known = { ...facts, type: detectContentType(blob.head) }
      const id = await insertFile(tx, known, blob.key, app.clock.now())
      await app.db.blobs.store(tx, id, blob)
      stored = {
        ...stored,
        [field.name]: { id, ...pickFileMetadata(known) },
        ...deriveFileValues(reader.model, known),
      }
    }
    return stored
  }

  async finish(): Promise<void> {
    for (const arrived of this.#byLine.values())
      for (const blob of arrived.values()) await this.app.db.blobs.finish(blob)
    this.#byLine.clear()
  }
}

function isTooLargeError(error: unknown): boolean {
  return error instanceof VersoError && error.kind === 'too-large'
}

function createContentChangedError({ line }: NumberedLine, field: string): LineError {
  return new LineError(line, `the content of ${field} has changed since the check`)
}
