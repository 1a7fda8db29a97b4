// Stores the content of files in a table, in parts. The transaction that inserts the row also inserts the parts, so that every node can read
// them and no orphans remain.
import { randomBytes } from 'node:crypto'
import { readSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { Readable } from 'node:stream'
import type { BlobStore, PendingBlob, BlobLocation, Queryable, Transaction } from '../engine/database.js'
import type { ByteRange } from '../../wire.js'
import { translateFileError } from '../engine/file-errors.js'
import { UPLOAD_EXPIRY_MS, createUploadExpiredError, writeUpload } from '../engine/upload.js'
import { openUnlinked } from '../engine/private-files.js'

const PART_BYTES = 256 * 1024
const PARTS_PER_READ = 4

interface BufferedBlob {
  readonly handle: FileHandle
  readonly receivedAtMs: number
}

export class PostgresBlobStore implements BlobStore {
  /** Received content in unlinked files, which the system removes when the process ends. */
  readonly #buffered = new Map<string, BufferedBlob>()
  #receiving = 0

  constructor(
    private readonly reader: Queryable,
    private readonly folder = tmpdir(),
  ) {}

  countPending(): number {
    return this.#receiving + this.#buffered.size
  }

  async receive(source: AsyncIterable<Uint8Array>, limitBytes: number): Promise<PendingBlob> {
    const key = randomBytes(16).toString('hex')
    let handle: FileHandle | undefined
    this.#receiving++
    try {
      handle = await openUnlinked(this.folder)
      const received = await writeUpload(handle, source, limitBytes)
      this.#buffered.set(key, { handle, receivedAtMs: performance.now() })
      return { key, ...received }
    } catch (error) {
      await handle?.close()
      throw translateFileError(error)
    } finally {
      this.#receiving--
    }
  }

  async store(tx: Transaction, id: number, { key, size }: PendingBlob): Promise<void> {
    const { handle } = this.#buffered.get(key) ?? {}
    if (!handle) throw createUploadExpiredError()
    const part = Buffer.allocUnsafe(Math.min(size, PART_BYTES))
    for (let index = 0, offset = 0; offset < size; index++) {
      // Synchronous, because a transaction must await nothing but the database.
      const length = readSync(handle.fd, part, 0, part.length, offset)
      if (length === 0) throw new Error('an unlinked file is shorter than the content written to it')
      const data = part.toString('base64', 0, length)
      const sql = `insert into verso_file_part (file, part, data) values (?, ?, decode(?, 'base64'))`
      await tx.run(sql, [id, index, data])
      offset += length
    }
  }

  async finish({ key }: PendingBlob): Promise<void> {
    const blob = this.#buffered.get(key)
    this.#buffered.delete(key)
    await blob?.handle.close()
  }

  /** The foreign key deletes the parts with the row. */
  async drop(): Promise<void> {
    return Promise.resolve()
  }

  async collect(): Promise<void> {
    return Promise.resolve()
  }

  async open(
    file: BlobLocation,
    range: ByteRange = { first: 0, last: file.size - 1 },
    reader = this.reader,
  ): Promise<Readable | undefined> {
    if (file.size === 0) return Readable.from([])
    const parts = new PartReader(reader, file)
    const start = await parts.read(toPart(range.first), toPart(range.last))
    return start.length === 0
      ? undefined
      : Readable.from(parts.streamRange(range, start), { objectMode: false })
  }

  async openInSnapshot(snapshot: Queryable, file: BlobLocation): Promise<Readable | undefined> {
    return this.open(file, undefined, snapshot)
  }

  /** The snapshot contains the parts. */
  async retainDropped(): Promise<() => void> {
    return Promise.resolve(() => undefined)
  }

  /** Closes the files of abandoned uploads of this process. Ended processes and aborted transactions leave nothing behind. */
  async recover(abandonedAfterMs = UPLOAD_EXPIRY_MS): Promise<void> {
    const now = performance.now()
    for (const [key, { handle, receivedAtMs }] of this.#buffered) {
      if (now - receivedAtMs < abandonedAfterMs) continue
      this.#buffered.delete(key)
      await handle.close()
    }
  }

  async *findOrphans(): AsyncGenerator<string> {
    // In batches by key. The foreign key prevents orphans, so any result means damage.
    for (let after = 0; ;) {
      const rows = await this.reader.all(
        'select distinct p.file as "file" from verso_file_part as p where p.file > ? ' +
          'and not exists (select 1 from verso_file as f where f.id = p.file) order by p.file limit 100',
        [after],
      )
      for (const row of rows) yield `the parts of file ${row['file'] ?? ''} in verso_file_part`
      const last = rows.at(-1)
      if (!last) return
      after = Number(last['file'])
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#buffered.values()].map(({ handle }) => handle.close()))
    this.#buffered.clear()
  }
}

class PartReader {
  constructor(
    private readonly reader: Queryable,
    private readonly file: BlobLocation,
  ) {}

  /** `start` are the first parts of the range. */
  async *streamRange({ first, last }: ByteRange, start: readonly Buffer[]): AsyncGenerator<Buffer> {
    const { id, size } = this.file
    let [parts, next] = [start, toPart(first)]
    let at = next * PART_BYTES
    while (parts.length > 0) {
      for (const part of parts) {
        yield part.subarray(Math.max(0, first - at), last + 1 - at)
        at += part.length
      }
      next += parts.length
      parts = at <= last ? await this.read(next, toPart(last)) : []
    }
    // The file was removed during the read, or its last part has another length. Such a response must not look complete.
    if (at <= last || (last === size - 1 && at !== size))
      throw new Error(`file ${id} was removed while it was read`)
  }

  /** Reads the next parts up to `last`. */
  async read(from: number, last: number): Promise<Buffer[]> {
    const rows = await this.reader.all(
      `select encode(data, 'base64') as "data" from verso_file_part where file = ? and part >= ? order by part limit ?`,
      [this.file.id, from, Math.min(PARTS_PER_READ, last - from + 1)],
    )
    return rows.map((row) => Buffer.from(String(row['data']), 'base64'))
  }
}

/** The part that contains a byte. All parts but the last have the same size. */
function toPart(byte: number): number {
  return Math.floor(byte / PART_BYTES)
}
