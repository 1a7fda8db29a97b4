// Streams records from a CSV file with a header line, as written by `verso export` or a spreadsheet.
import { createReadStream } from 'node:fs'
import { Transform, type TransformCallback } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { CsvError, parse, type Parser } from 'csv-parse'
import { pluralize } from '../../model/values/plural.js'
import { parseCell, parseWholeCell } from '../../formats/csv.js'
import type { Model } from '../../model/definition/model.js'
import { LineReader } from '../../formats/ndjson.js'
import type { RawLine } from '../../service/transfer/import-source.js'
import { MAX_LINE_BYTES, MAX_BATCH_BYTES, MAX_BATCH_LINES, type BytesListener } from './ndjson-file.js'

/** Marks a cell that contains a carriage return without a line feed. */
const LONE_CARRIAGE_RETURN = Symbol('a carriage return without a line feed')
const LINE_ENDING_ERROR = 'a line must end in a line feed, not in a carriage return alone'

type CsvCells = readonly (string | null | typeof LONE_CARRIAGE_RETURN)[]

interface CsvRow {
  readonly record: CsvCells
  /** Counters of the parser after the record: lines and bytes. */
  readonly info: { readonly lines: number; readonly empty_lines: number; readonly bytes: number }
}

class InvalidUtf8Error extends Error {}

/** Yields batches of lines. An invalid file ends the stream, because the start of the next record is unknown. */
export async function* readCsv(
  file: string,
  model: Model,
  onBytes: BytesListener,
): AsyncGenerator<readonly RawLine[]> {
  const parser = createCsvParser()
  const checker = new Utf8Validator(onBytes)
  // The parser is destroyed with the same error and reports it.
  pipeline(createReadStream(file), checker, parser).catch(() => undefined)
  const reader = new LineReader(model)
  let batch: RawLine[] = []
  let header: readonly string[] | undefined
  let [line, empty, bytes] = [1, 0, 0]
  try {
    for await (const { record, info } of parser as AsyncIterable<CsvRow>) {
      line += info.empty_lines - empty
      empty = info.empty_lines
      if (!header) {
        header = record.map((name) => (name === LONE_CARRIAGE_RETURN ? '' : (name ?? '')))
        const error = checkHeader(header, record)
        if (error !== undefined) {
          yield [{ line, error }]
          return
        }
        batch.push(...findUnknownColumns(reader, header, line))
      } else {
        const error = checkRow(header, record)
        batch.push(
          error === undefined ? { line, input: buildInput(reader, header, record) } : { line, error },
        )
      }
      const isFull = batch.length >= MAX_BATCH_LINES || info.bytes - bytes >= MAX_BATCH_BYTES
      line = info.lines + 1
      if (!isFull) continue
      bytes = info.bytes
      yield batch
      batch = []
    }
  } catch (error) {
    batch.push(toErrorLine(error, line, checker.lines))
  }
  if (batch.length > 0) yield batch
}

function createCsvParser(): Parser {
  return parse({
    bom: true,
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    record_delimiter: ['\r\n', '\n'],
    max_record_size: MAX_LINE_BYTES,
    cast: (cell, { quoting }) => (quoting ? cell : parseUnquotedCell(cell)),
  })
}

/** A legitimate carriage return is quoted; an unquoted one was meant as the end of a line. */
function parseUnquotedCell(cell: string): CsvCells[number] {
  return cell === '' ? null : cell.includes('\r') ? LONE_CARRIAGE_RETURN : cell
}

function toErrorLine(error: unknown, line: number, linesBefore: number): RawLine {
  if (error instanceof InvalidUtf8Error)
    return {
      line: Math.max(line, linesBefore),
      error: 'is not valid UTF-8; the rest of the file was not read',
    }
  if (!(error instanceof CsvError)) throw error
  return { line, error: `is not valid CSV: ${error.message}; the rest of the file was not read` }
}

function checkHeader(header: readonly string[], record: CsvCells): string | undefined {
  if (record.includes(LONE_CARRIAGE_RETURN)) return LINE_ENDING_ERROR
  if (header.some((name) => /[;\t]/.test(name))) return 'the cells must be separated by commas'
  const twice = header.find((name, index) => header.indexOf(name) !== index)
  if (twice !== undefined) return `the header has the column "${twice}" twice`
  return header.includes('') ? 'the header has a column without a name' : undefined
}

/** Reports each unknown column once; the records are read without it. */
function findUnknownColumns(reader: LineReader, header: readonly string[], line: number): RawLine[] {
  const errors: RawLine[] = []
  reader.reportUnknownKeys(header, (path, error) => errors.push({ line, error: `${path} ${error}` }))
  return errors
}

function checkRow(header: readonly string[], record: CsvCells): string | undefined {
  if (record.includes(LONE_CARRIAGE_RETURN)) return LINE_ENDING_ERROR
  if (record.length === header.length) return undefined
  return `has ${pluralize(record.length, 'cell')}, but the header has ${header.length}`
}

/** Builds the record as an NDJSON line would have it. */
function buildInput(
  reader: LineReader,
  header: readonly string[],
  record: CsvCells,
): Readonly<Record<string, unknown>> {
  const input: Record<string, unknown> = {}
  for (const [index, name] of header.entries()) {
    const cell = record[index] ?? null
    if (!reader.hasKey(name) || cell === LONE_CARRIAGE_RETURN) continue
    const field = reader.model.fields.get(name)
    input[name] = field ? parseCell(field, cell) : cell === null ? null : parseWholeCell(cell)
  }
  return input
}

/** Rejects invalid UTF-8, which the parser would silently replace. */
class Utf8Validator extends Transform {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  lines = 1

  constructor(private readonly onBytes: BytesListener) {
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
      done(new InvalidUtf8Error('not UTF-8'))
      return
    }
    go()
  }
}
