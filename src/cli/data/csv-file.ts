// A file of CSV with a line of field names, as `verso export` writes it or a spreadsheet does: read as a stream.
import { createReadStream } from 'node:fs'
import { Transform, type TransformCallback } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { CsvError, parse, type Parser } from 'csv-parse'
import { pluralize } from '../../model/values/plural.js'
import { parseCell, parseWholeCell } from '../../formats/csv.js'
import type { Model } from '../../model/definition/model.js'
import { LineReader } from '../../formats/ndjson.js'
import type { RawLine } from '../../service/transfer/import-source.js'
import { MAX_LINE_BYTES, PORTION_BYTES, PORTION_LINES, type OnBytes } from './ndjson-file.js'

/** Stands for a cell with a line end that is none here. */
const LONE_RETURN = Symbol('a carriage return without a line feed')
const LINE_ENDS = 'lines end in a line feed, not in a carriage return alone'

type Cells = readonly (string | null | typeof LONE_RETURN)[]

interface Parsed {
  readonly record: Cells
  /** Lines that were read when the record was complete, and characters. */
  readonly info: { readonly lines: number; readonly empty_lines: number; readonly bytes: number }
}

class NotUtf8 extends Error {}

/** A fault of the file itself ends it: where the next record begins, nobody knows. */
export async function* readCsv(
  file: string,
  model: Model,
  onBytes: OnBytes,
): AsyncGenerator<readonly RawLine[]> {
  const parser = openParser()
  const checker = new Utf8Check(onBytes)
  // Its end is told by the parser, which is destroyed with the same error.
  pipeline(createReadStream(file), checker, parser).catch(() => undefined)
  const reader = new LineReader(model)
  let portion: RawLine[] = []
  let header: readonly string[] | undefined
  let [line, empty, bytes] = [1, 0, 0]
  try {
    for await (const { record, info } of parser as AsyncIterable<Parsed>) {
      line += info.empty_lines - empty
      empty = info.empty_lines
      if (!header) {
        header = record.map((name) => (name === LONE_RETURN ? '' : (name ?? '')))
        const fault = headerFault(header, record)
        if (fault !== undefined) {
          yield [{ line, fault }]
          return
        }
        portion.push(...strangersIn(reader, header, line))
      } else {
        const fault = recordFault(header, record)
        portion.push(fault === undefined ? { line, input: inputOf(reader, header, record) } : { line, fault })
      }
      const isFull = portion.length >= PORTION_LINES || info.bytes - bytes >= PORTION_BYTES
      line = info.lines + 1
      if (!isFull) continue
      bytes = info.bytes
      yield portion
      portion = []
    }
  } catch (error) {
    portion.push(faultOf(error, line, checker.lines))
  }
  if (portion.length > 0) yield portion
}

function openParser(): Parser {
  return parse({
    bom: true,
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    record_delimiter: ['\r\n', '\n'],
    max_record_size: MAX_LINE_BYTES,
    cast: (cell, { quoting }) => (quoting ? cell : readBare(cell)),
  })
}

/** What needs quotes has them: a carriage return without them was meant to end a line. */
function readBare(cell: string): Cells[number] {
  return cell === '' ? null : cell.includes('\r') ? LONE_RETURN : cell
}

function faultOf(error: unknown, line: number, linesBefore: number): RawLine {
  if (error instanceof NotUtf8)
    return { line: Math.max(line, linesBefore), fault: 'is not valid UTF-8; nothing after it was read' }
  if (!(error instanceof CsvError)) throw error
  return { line, fault: `is no CSV: ${error.message}; nothing after it was read` }
}

function headerFault(header: readonly string[], record: Cells): string | undefined {
  if (record.includes(LONE_RETURN)) return LINE_ENDS
  if (header.some((name) => /[;\t]/.test(name))) return 'cells are separated by commas'
  const twice = header.find((name, index) => header.indexOf(name) !== index)
  if (twice !== undefined) return `the heading has "${twice}" twice`
  return header.includes('') ? 'the heading has a column without a name' : undefined
}

/** Told once: the records are read without these columns. */
function strangersIn(reader: LineReader, header: readonly string[], line: number): RawLine[] {
  const faults: RawLine[] = []
  reader.reportUnknownKeys(header, (place, what) => faults.push({ line, fault: `${place} ${what}` }))
  return faults
}

function recordFault(header: readonly string[], record: Cells): string | undefined {
  if (record.includes(LONE_RETURN)) return LINE_ENDS
  if (record.length === header.length) return undefined
  return `has ${pluralize(record.length, 'cell')}, but the heading has ${header.length}`
}

/** The record as a line of JSON would have it. */
function inputOf(
  reader: LineReader,
  header: readonly string[],
  record: Cells,
): Readonly<Record<string, unknown>> {
  const input: Record<string, unknown> = {}
  for (const [index, name] of header.entries()) {
    const cell = record[index] ?? null
    if (!reader.hasKey(name) || cell === LONE_RETURN) continue
    const field = reader.model.fields.get(name)
    input[name] = field ? parseCell(field, cell) : cell === null ? null : parseWholeCell(cell)
  }
  return input
}

/** The parser would replace what is no UTF-8, and nobody would notice. */
class Utf8Check extends Transform {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  lines = 1

  constructor(private readonly onBytes: OnBytes) {
    super()
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.onBytes(chunk.length)
    this.#check(
      chunk,
      true,
      () => {
        for (let at = chunk.indexOf(0x0a); at !== -1; at = chunk.indexOf(0x0a, at + 1)) this.lines++
        done(null, chunk)
      },
      done,
    )
  }

  override _flush(done: TransformCallback): void {
    this.#check(Buffer.alloc(0), false, done, done)
  }

  #check(chunk: Buffer, isMore: boolean, go: () => void, done: TransformCallback): void {
    try {
      this.#decoder.decode(chunk, { stream: isMore })
    } catch {
      done(new NotUtf8('not UTF-8'))
      return
    }
    go()
  }
}
