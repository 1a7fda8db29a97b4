// The file format of backups: a first line, frames, and a SHA-256 of everything before it. See docs/decisions/backup.md.
//
//   verso backup 01\n
//   frame: type (1 byte), 1 if the payload is compressed (1 byte), length of the payload (4 bytes, big-endian), payload
import { createHash, type Hash } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import { ConfigError } from '../../errors.js'
import { RESTORE_FAILED } from '../../store/backup/restore-tables.js'

export const BACKUP_NAME = 'verso backup '
const FORMAT = '01'
const FIRST_LINE = Buffer.from(`${BACKUP_NAME}${FORMAT}\n`)
const HEAD_BYTES = 6
/** A row is never larger: its texts have limits. A greater length means damage. */
const MAX_FRAME_BYTES = 512 * 1024 * 1024
const COMPRESSION_LEVEL = 1

export const FRAME_TYPES = {
  /** JSON: facts about the backup. The first frame. */
  header: 'H',
  /** JSON: a table. Its rows follow. */
  table: 'T',
  /** Rows as JSON arrays, separated by commas. */
  rows: 'R',
  /** JSON: the row of a file. Its content follows. */
  file: 'F',
  /** A part of the content of a file. */
  content: 'C',
  /** JSON: `BackupEnd`. The last frame but one. */
  end: 'E',
  /** The SHA-256 of all bytes before this frame. The last frame. */
  digest: 'S',
} as const

export type FrameType = (typeof FRAME_TYPES)[keyof typeof FRAME_TYPES]

export interface Frame {
  readonly type: FrameType
  readonly payload: Buffer
}

/** Receives the bytes of a backup. Resolves when it can take more. */
export type BackupSink = (bytes: Uint8Array) => Promise<void>

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

export class BackupWriter {
  readonly #hash = createHash('sha256')
  #bytes = 0

  constructor(private readonly sink: BackupSink) {}

  /** The number of bytes so far. */
  get bytes(): number {
    return this.#bytes
  }

  async begin(): Promise<void> {
    await this.#write(FIRST_LINE)
  }

  async write(type: FrameType, payload: string | Uint8Array): Promise<void> {
    const plain = typeof payload === 'string' ? Buffer.from(payload) : payload
    const compressed = await deflate(plain, { level: COMPRESSION_LEVEL })
    const isSmaller = compressed.length < plain.length
    await this.#writeFrame(type, isSmaller ? compressed : plain, isSmaller)
  }

  async writeJson(type: FrameType, value: unknown): Promise<void> {
    await this.write(type, JSON.stringify(value))
  }

  /** Writes the digest. Returns it. */
  async end(): Promise<string> {
    const digest = this.#hash.copy().digest()
    await this.#writeFrame(FRAME_TYPES.digest, digest, false)
    return digest.toString('hex')
  }

  async #writeFrame(type: FrameType, payload: Uint8Array, isCompressed: boolean): Promise<void> {
    const head = Buffer.alloc(HEAD_BYTES)
    head.write(type, 'latin1')
    head.writeUInt8(isCompressed ? 1 : 0, 1)
    head.writeUInt32BE(payload.length, 2)
    await this.#write(head)
    await this.#write(payload)
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes)
    this.#bytes += bytes.length
    await this.sink(bytes)
  }
}

/** Reads the frames of a backup, up to the end of the source. Fails after the last frame if any byte differs from what was written. */
export async function* readFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  const reader = new FrameReader(source)
  try {
    await reader.readFirstLine()
    for (;;) {
      const frame = await reader.readFrame()
      if (!frame) return
      yield frame
    }
  } finally {
    await reader.close()
  }
}

/** Reads a whole backup and checks its digest. */
export async function checkFrames(source: AsyncIterable<Uint8Array>): Promise<void> {
  const reader = new FrameReader(source)
  try {
    await reader.readFirstLine()
    while (await reader.readFrame(false));
  } finally {
    await reader.close()
  }
}

/** Takes exact numbers of bytes from a stream, and hashes them. */
class FrameReader {
  readonly #hash: Hash = createHash('sha256')
  readonly #chunks: AsyncIterator<Uint8Array>
  #rest: Buffer = Buffer.alloc(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#chunks = source[Symbol.asyncIterator]()
  }

  /** Closes the source, also before its end. */
  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  async readFirstLine(): Promise<void> {
    const line = await this.#take(FIRST_LINE.length)
    if (line?.equals(FIRST_LINE)) {
      this.#hash.update(line)
      return
    }
    const isBackup = line?.subarray(0, BACKUP_NAME.length).toString('latin1') === BACKUP_NAME
    const format = line?.subarray(BACKUP_NAME.length, -1).toString('latin1') ?? ''
    throw new ConfigError(RESTORE_FAILED, [
      isBackup && /^\d\d$/.test(format)
        ? `the backup has format ${format}, but this release reads format ${FORMAT}: install the release that made the backup, or a later one; nothing was changed`
        : 'this is not a backup of Verso: name a file that verso backup has written; nothing was changed',
    ])
  }

  /** Undefined after the last frame. Without `isParsed` the payload stays compressed. */
  async readFrame(isParsed = true): Promise<Frame | undefined> {
    const expected = this.#hash.copy()
    const head = await this.#require(HEAD_BYTES)
    const [type, isCompressed, length] = [head.toString('latin1', 0, 1), head[1], head.readUInt32BE(2)]
    if (!isFrameType(type) || length > MAX_FRAME_BYTES || (isCompressed !== 0 && isCompressed !== 1))
      throw createDamagedError()
    const payload = await this.#require(length)
    if (type === FRAME_TYPES.digest) {
      const isIntact = isCompressed === 0 && payload.equals(expected.digest())
      if (!isIntact || (await this.#take(1))) throw createDamagedError()
      return undefined
    }
    this.#hash.update(head)
    this.#hash.update(payload)
    if (!isParsed || isCompressed === 0) return { type, payload }
    return { type, payload: await decompress(payload) }
  }

  async #require(length: number): Promise<Buffer> {
    const bytes = await this.#take(length)
    if (!bytes)
      throw new ConfigError(RESTORE_FAILED, [
        'the backup is incomplete: its end is missing. Use another backup',
      ])
    return bytes
  }

  /** Undefined if the stream ends before. */
  async #take(length: number): Promise<Buffer | undefined> {
    const chunks: Uint8Array[] = [this.#rest]
    let size = this.#rest.length
    while (size < length) {
      const next = await this.#chunks.next()
      if (next.done) return undefined
      chunks.push(next.value)
      size += next.value.length
    }
    const all = chunks.length === 1 ? this.#rest : Buffer.concat(chunks)
    this.#rest = all.subarray(length)
    return all.subarray(0, length)
  }
}

async function decompress(payload: Buffer): Promise<Buffer> {
  try {
    return await inflate(payload, { maxOutputLength: MAX_FRAME_BYTES })
  } catch {
    throw createDamagedError()
  }
}

function isFrameType(type: string): type is FrameType {
  return (Object.values(FRAME_TYPES) as string[]).includes(type)
}

export function createDamagedError(): ConfigError {
  return new ConfigError(RESTORE_FAILED, [
    'the backup is damaged: its content does not match its checksum. Use another backup',
  ])
}
