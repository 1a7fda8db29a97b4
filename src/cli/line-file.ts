// A file of lines, each a JSON object: read as a stream, whatever its length.
import { createReadStream } from 'node:fs'
import type { RawLine } from '../service/transfer/import-source.js'

/** More than a record can hold, with all its texts at their longest. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024
/** How much is handed on at once: lines, or bytes if they are long. */
export const PORTION_LINES = 1_000
export const PORTION_BYTES = 4 * 1024 * 1024
const NEWLINE = 0x0a
const CHUNK_BYTES = 256 * 1024
const BOM = '\uFEFF'

export type OnBytes = (bytes: number) => void

/** Empty lines are passed over. A line at fault is told with its number, and the next one is read. */
export async function* readLines(
  file: string,
  onBytes: OnBytes,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<readonly RawLine[]> {
  let portion: RawLine[] = []
  let [line, bytes] = [0, 0]
  for await (const text of splitLines(file, onBytes, maxLineBytes)) {
    line++
    const raw = text ? readLine(line, text) : { line, fault: `is longer than ${maxLineBytes} bytes` }
    if (!raw) continue
    portion.push(raw)
    bytes += text?.length ?? 0
    if (portion.length < PORTION_LINES && bytes < PORTION_BYTES) continue
    yield portion
    portion = []
    bytes = 0
  }
  if (portion.length > 0) yield portion
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Undefined for an empty line. */
function readLine(line: number, bytes: Buffer): RawLine | undefined {
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    return { line, fault: 'is not valid UTF-8' }
  }
  if (line === 1 && text.startsWith(BOM)) text = text.slice(1)
  if (text.trim() === '') return undefined
  try {
    return { line, input: JSON.parse(text) as unknown }
  } catch (error) {
    const what = error instanceof Error ? error.message.replace(/,? \.{0,3}".*$/s, '') : 'it cannot be read'
    return { line, fault: `is no JSON: ${what}` }
  }
}

/** The bytes of each line without its end; undefined for one that is too long, of which nothing is kept. */
async function* splitLines(
  file: string,
  onBytes: OnBytes,
  maxLineBytes: number,
): AsyncGenerator<Buffer | undefined> {
  let pieces: Buffer[] = []
  let length = 0
  let isTooLong = false
  const add = (piece: Buffer) => {
    length += piece.length
    isTooLong ||= length > maxLineBytes
    if (isTooLong) pieces = []
    else pieces.push(piece)
  }
  const take = (): Buffer | undefined => {
    const [only] = pieces
    const whole = isTooLong ? undefined : pieces.length === 1 ? only : Buffer.concat(pieces)
    pieces = []
    length = 0
    isTooLong = false
    return whole
  }
  for await (const chunk of createReadStream(file, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end))
      yield take()
      start = end + 1
    }
    if (start < chunk.length) add(chunk.subarray(start))
    onBytes(chunk.length)
  }
  if (length > 0) yield take()
}
