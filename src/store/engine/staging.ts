// Stages responses that are too large for memory on disk until the client has read them. The files are unlinked after opening, so the
// system removes them when the process ends.
import { close, read, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { VersoError } from '../../errors.js'
import { Semaphore } from './semaphore.js'
import { translateFileError } from './file-errors.js'
import { openUnlinkedSync } from './private-files.js'

const STAGED_CHUNK_BYTES = 256 * 1024
const readFromDescriptor = promisify(read)

export interface StagingLimits {
  /** The limit for all staged files together. */
  readonly totalBytes: number
  /** How long a large response waits for the one before it. */
  readonly queueTimeoutMs: number
}

export class StagingArea {
  #bytes = 0
  readonly #semaphore: Semaphore

  constructor(
    private readonly limits: StagingLimits,
    private readonly folder = tmpdir(),
  ) {
    this.#semaphore = new Semaphore(1, limits.queueTimeoutMs, createStagingFullError)
  }

  /** The size of all staged files. */
  get bytes(): number {
    return this.#bytes
  }

  /** Builds large responses one after the other, so that only parts of one are in memory. */
  async runSerially<T>(work: () => Promise<T>): Promise<T> {
    return this.#semaphore.run(work)
  }

  open(): StagedFile {
    return new StagedFile(openUnlinkedSync(this.folder), (bytes) => {
      if (bytes > 0 && this.#bytes + bytes > this.limits.totalBytes) throw createStagingFullError()
      this.#bytes += bytes
    })
  }

  /** Writes content from memory to a staged file. */
  stage(content: string | Uint8Array): StagedFile {
    const file = this.open()
    try {
      file.append(content)
      return file
    } catch (error) {
      file.discard()
      throw error
    }
  }
}

export class StagedFile {
  #size = 0
  #isOpen = true
  #reading: Promise<unknown> | undefined

  constructor(
    private readonly descriptor: number,
    /** Reserves bytes of the area; releases them if negative. */
    private readonly reserve: (bytes: number) => void,
  ) {}

  get size(): number {
    return this.#size
  }

  append(content: string | Uint8Array): void {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    this.reserve(bytes.length)
    this.#size += bytes.length
    try {
      for (let written = 0; written < bytes.length;)
        written += writeSync(this.descriptor, bytes, written, bytes.length - written)
    } catch (error) {
      throw translateFileError(error)
    }
  }

  /** Reads the file from its beginning to its end, at the speed of the consumer. */
  async *chunks(): AsyncGenerator<Buffer> {
    for (let position = 0; position < this.#size && this.#isOpen;) {
      const buffer = Buffer.allocUnsafe(Math.min(STAGED_CHUNK_BYTES, this.#size - position))
      const reading = readFromDescriptor(this.descriptor, buffer, 0, buffer.length, position)
      this.#reading = reading.catch(() => undefined)
      const { bytesRead } = await reading
      if (bytesRead === 0) throw new Error('a staged file is shorter than the content written to it')
      position += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  }

  /** Must be called when the consumer is done, even if it did not read everything. */
  discard(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.reserve(-this.#size)
    // After a close the system can reuse the descriptor for another file, so a running read must end first.
    void (this.#reading ?? Promise.resolve()).then(() => {
      // The system releases the descriptor even if it reports an error, and the content is not needed any more.
      close(this.descriptor, () => undefined)
    })
  }
}

function createStagingFullError(): VersoError {
  const message =
    'Too many large responses at the same time: retry after the seconds in Retry-After; nothing was changed'
  return new VersoError('busy', message, { retryAfterS: 5 })
}
