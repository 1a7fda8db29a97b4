// A file of lines, each a JSON object: read as a stream, whatever its length.
import { createReadStream } from 'node:fs'
import { FieldError } from '../../model/values/field-types.js'
import type { RawLine } from '../../service/transfer/import-source.js'

/** More than a record can hold, with all its texts at their longest. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024
/** How much is handed on at once: lines, or bytes if they are long. */
export const PORTION_LINES = 1_000
export const PORTION_BYTES = 4 * 1024 * 1024
const NEWLINE = 0x0a
const CHUNK_BYTES = 256 * 1024
const BOM = '\uFEFF'

export type OnBytes = (bytes: number) => void

/** The text of a line, or what keeps it from being one. */
type Text = string | FieldError

/** Empty lines are passed over. A line at fault is told with its number, and the next one is read. */
export async function* readLines(
  file: string,
  onBytes: OnBytes,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<readonly RawLine[]> {
  let portion: RawLine[] = []
  let [line, length] = [0, 0]
  for await (const texts of splitLines(file, onBytes, maxLineBytes)) {
    for (const text of texts) {
      line++
      const raw = typeof text === 'string' ? readLine(line, text) : { line, fault: text.message }
      if (!raw) continue
      portion.push(raw)
      length += typeof text === 'string' ? text.length : 0
      if (portion.length < PORTION_LINES && length < PORTION_BYTES) continue
      yield portion
      portion = []
      length = 0
    }
  }
  if (portion.length > 0) yield portion
}

/** Undefined for an empty line. */
function readLine(line: number, text: string): RawLine | undefined {
  const json = line === 1 && text.startsWith(BOM) ? text.slice(1) : text
  if (json.trim() === '') return undefined
  try {
    return { line, input: JSON.parse(json) as unknown }
  } catch (error) {
    const what = error instanceof Error ? error.message.replace(/,? \.{0,3}".*$/s, '') : 'it cannot be read'
    return { line, fault: `is no JSON: ${what}` }
  }
}

/** The lines of a file without their ends, some at once. Of one that is too long nothing is kept. */
async function* splitLines(
  file: string,
  onBytes: OnBytes,
  maxLineBytes: number,
): AsyncGenerator<readonly Text[]> {
  let pieces: Buffer[] = []
  let length = 0
  const add = (piece: Buffer) => {
    length += piece.length
    if (length > maxLineBytes) pieces = []
    else pieces.push(piece)
  }
  const take = (): Text => {
    const text = length > maxLineBytes ? tooLong(maxLineBytes) : decode(Buffer.concat(pieces))
    pieces = []
    length = 0
    return text
  }
  for await (const chunk of createReadStream(file, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>) {
    const [first, last] = [chunk.indexOf(NEWLINE), chunk.lastIndexOf(NEWLINE)]
    if (first !== -1) {
      add(chunk.subarray(0, first))
      yield [take()]
    }
    if (last > first) yield linesOf(chunk.subarray(first + 1, last), maxLineBytes)
    if (last + 1 < chunk.length) add(chunk.subarray(last + 1))
    onBytes(chunk.length)
  }
  if (length > 0) yield [take()]
}

/** Whole lines. They are decoded together: one by one that takes longer than to parse them. */
function linesOf(bytes: Buffer, maxLineBytes: number): readonly Text[] {
  const whole = bytes.length > maxLineBytes ? undefined : decode(bytes)
  if (typeof whole === 'string') return whole.split('\n')
  const lines: Text[] = []
  for (let start = 0; start <= bytes.length;) {
    const found = bytes.indexOf(NEWLINE, start)
    const end = found === -1 ? bytes.length : found
    lines.push(end - start > maxLineBytes ? tooLong(maxLineBytes) : decode(bytes.subarray(start, end)))
    start = end + 1
  }
  return lines
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Buffer): Text {
  try {
    return decoder.decode(bytes)
  } catch {
    return new FieldError('is not valid UTF-8')
  }
}

function tooLong(maxLineBytes: number): FieldError {
  return new FieldError(`is longer than ${maxLineBytes} bytes`)
}
