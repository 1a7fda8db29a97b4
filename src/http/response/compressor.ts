// Compresses response bodies in the threads of libuv, so that the event loop stays free. docs/decisions/compression.md has the measurements.
import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import { Semaphore } from '../../store/engine/semaphore.js'
import type { Coding } from './content-coding.js'

/** A smaller body fits into a few packets, and compressing it takes longer than sending it. */
export const MIN_COMPRESSED_BYTES = 8_192

/** libuv has four threads. The others are for files, password hashes and names of hosts. */
const MAX_CONCURRENT_BODIES = 2
/** A body that waits longer for its turn is sent uncompressed. */
const MAX_WAIT_MS = 1_000
/** A slow client holds the memory of its encoder, about 0.4 MB, until it has read everything. Further streams are sent uncompressed. */
const MAX_STREAMS = 8
/** For a smaller body the tables of a high quality cost more than the compression itself. */
const MIN_QUALITY_BYTES = 32 * 1024
const [SMALL_QUALITY, QUALITY] = [1, 4]
/** One job of the thread pool fills one part of the result. Large parts mean fewer jobs, but the memory of a part costs time, too. */
const [SMALL_PART_BYTES, PART_BYTES] = [16 * 1024, 64 * 1024]

const BROTLI_PARAMS = {
  [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  [constants.BROTLI_PARAM_QUALITY]: QUALITY,
  // A window of 256 KiB. The default of 4 MiB takes more memory and saves nothing on records.
  [constants.BROTLI_PARAM_LGWIN]: 18,
}
const GZIP_LEVEL = 1

const brotliBody = promisify(brotliCompress)
const gzipBody = promisify<Buffer | string, { level: number; chunkSize: number }, Buffer>(gzip)

const BODY_ENCODERS: Readonly<Record<Coding, (body: Buffer | string, bytes: number) => Promise<Buffer>>> = {
  br: (body, bytes) =>
    brotliBody(body, {
      chunkSize: choosePartBytes(bytes),
      params: {
        ...BROTLI_PARAMS,
        [constants.BROTLI_PARAM_QUALITY]: bytes < MIN_QUALITY_BYTES ? SMALL_QUALITY : QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes,
      },
    }),
  gzip: (body, bytes) => gzipBody(body, { chunkSize: choosePartBytes(bytes), level: GZIP_LEVEL }),
}

const STREAM_ENCODERS: Readonly<Record<Coding, () => Transform>> = {
  br: () => createBrotliCompress({ chunkSize: PART_BYTES, params: BROTLI_PARAMS }),
  gzip: () => createGzip({ chunkSize: PART_BYTES, level: GZIP_LEVEL }),
}

/** Records compress to a fifth or less, so most results are one part. */
function choosePartBytes(bytes: number): number {
  return bytes <= 5 * SMALL_PART_BYTES ? SMALL_PART_BYTES : PART_BYTES
}

export class Compressor {
  readonly #bodies = new Semaphore(
    MAX_CONCURRENT_BODIES,
    MAX_WAIT_MS,
    () => new Error('too many bodies wait for compression'),
  )
  #streams = 0

  /** Bodies and streams that are being compressed, or wait for it. */
  get pending(): number {
    return this.#bodies.pending + this.#streams
  }

  /** Rejects if the body waits too long or zlib fails. The caller then sends the body as it is. */
  async compress(body: Buffer | string, coding: Coding, bytes: number): Promise<Buffer> {
    return this.#bodies.run(() => BODY_ENCODERS[coding](body, bytes))
  }

  /** Undefined if too many streams are open. The caller must destroy the stream, or read it to its end. */
  openStream(coding: Coding): Transform | undefined {
    if (this.#streams >= MAX_STREAMS) return undefined
    this.#streams++
    return STREAM_ENCODERS[coding]().once('close', () => {
      this.#streams--
    })
  }
}
