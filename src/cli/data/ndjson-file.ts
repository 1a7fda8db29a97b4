// Streams records from an NDJSON file of any length.
import { createReadStream } from 'node:fs'
import { UTF8_BOM } from '../../formats/csv.js'
import { FieldError } from '../../model/values/field.js'
import type { RawLine } from '../../service/transfer/import-source.js'

/** Longer than any record with all its texts at their maximum. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024
/** Size limits of a batch, in lines and in bytes. */
export const MAX_BATCH_LINES = 1_000
export const MAX_BATCH_BYTES = 4 * 1024 * 1024
export const NEWLINE = 0x0a
const READ_CHUNK_BYTES = 256 * 1024

export type BytesListener = (bytes: number) => void

/** Text of a line, or the error that makes it unreadable. */
type LineText = string | FieldError

/**
 * Yields batches of lines. Empty lines are skipped; an invalid line is reported with its number and reading continues.
 */
export async function* readNdjson(
  file: string,
  onBytes: BytesListener,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<readonly RawLine[]> {
  let batch: RawLine[] = []
  let [line, length] = [0, 0]
  for await (const texts of splitLines(file, onBytes, maxLineBytes)) {
    for (const text of texts) {
      line++
      const raw = typeof text === 'string' ? parseNdjsonLine(line, text) : { line, error: text.message }
      if (!raw) continue
      batch.push(raw)
      length += typeof text === 'string' ? text.length : 0
      if (batch.length < MAX_BATCH_LINES && length < MAX_BATCH_BYTES) continue
      yield batch
      batch = []
      length = 0
    }
  }
  if (batch.length > 0) yield batch
}

/** Returns undefined for an empty line. */
function parseNdjsonLine(line: number, text: string): RawLine | undefined {
  const json = line === 1 && text.startsWith(UTF8_BOM) ? text.slice(1) : text
  if (json.trim() === '') return undefined
  try {
    return { line, input: JSON.parse(json) as unknown }
  } catch (error) {
    const what = error instanceof Error ? error.message.replace(/,? \.{0,3}".*$/s, '') : 'it cannot be parsed'
    return { line, error: `is not valid JSON: ${what}` }
  }
}

/** Yields lines without their terminators, in batches. The bytes of a line that is too long are dropped. */
async function* splitLines(
  file: string,
  onBytes: BytesListener,
  maxLineBytes: number,
): AsyncGenerator<readonly LineText[]> {
  let pieces: Buffer[] = []
  let length = 0
  const add = (piece: Buffer) => {
    length += piece.length
    if (length > maxLineBytes) pieces = []
    else pieces.push(piece)
  }
  const take = (): LineText => {
    const text = length > maxLineBytes ? createTooLongError(maxLineBytes) : decodeUtf8(Buffer.concat(pieces))
    pieces = []
    length = 0
    return text
  }
  for await (const chunk of createReadStream(file, {
    highWaterMark: READ_CHUNK_BYTES,
  }) as AsyncIterable<Buffer>) {
    const [first, last] = [chunk.indexOf(NEWLINE), chunk.lastIndexOf(NEWLINE)]
    if (first !== -1) {
      add(chunk.subarray(0, first))
      yield [take()]
    }
    if (last > first) yield decodeLines(chunk.subarray(first + 1, last), maxLineBytes)
    if (last + 1 < chunk.length) add(chunk.subarray(last + 1))
    onBytes(chunk.length)
  }
  if (length > 0) yield [take()]
}

/** Decodes complete lines together, because decoding them one by one takes longer than parsing them. */
function decodeLines(bytes: Buffer, maxLineBytes: number): readonly LineText[] {
  const whole = bytes.length > maxLineBytes ? undefined : decodeUtf8(bytes)
  if (typeof whole === 'string') return whole.split('\n')
  const lines: LineText[] = []
  for (let start = 0; start <= bytes.length;) {
    const found = bytes.indexOf(NEWLINE, start)
    const end = found === -1 ? bytes.length : found
    lines.push(
      end - start > maxLineBytes ? createTooLongError(maxLineBytes) : decodeUtf8(bytes.subarray(start, end)),
    )
    start = end + 1
  }
  return lines
}

const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeUtf8(bytes: Buffer): LineText {
  try {
    return utf8Decoder.decode(bytes)
  } catch {
    return new FieldError('is not valid UTF-8')
  }
}

function createTooLongError(maxLineBytes: number): FieldError {
  return new FieldError(`is longer than ${maxLineBytes} bytes`)
}
