// Limits the bytes of an answer. An error about a page names a `limit` that fits.
import { VersoError } from '../../errors.js'
import type { Queryable } from '../../store/engine/database.js'
import { measureRecord, type RecordRead } from '../../store/find/large-pages.js'
import type { ReadFilter } from '../../store/sql/point-read.js'
import type { FoundRecord } from '../../store/sql/found.js'
import type { Select } from '../../store/sql/select.js'
import type { Table } from '../../store/sql/table.js'
import type { App } from './app.js'
import type { Settings } from './settings.js'

const MAX_IN_MEMORY_BYTES = 4 * 1024 * 1024
/** JSON escapes make a text at most six times as long, so the JSON of data within the memory limit stays within the answer limit. */
const ANSWER_TO_MEMORY_RATIO = 8
/** Reserved for the envelope around the records. */
const ENVELOPE_BYTES = 256
/** Upper bound for a JSON value without its text: punctuation, the quotes of its key, a number. */
const MAX_PUNCTUATION_BYTES = 128
/** JSON escapes make a character at most this many bytes long. */
export const MAX_ESCAPE_FACTOR = 6

export type AnswerLimitApp = Pick<App, 'settings'>

/** The largest page, in bytes, that is held in memory as a whole. */
export function computeMemoryLimit({ responseLimitBytes }: Settings): number {
  return Math.min(MAX_IN_MEMORY_BYTES, Math.floor(responseLimitBytes / ANSWER_TO_MEMORY_RATIO))
}

/** The number of bytes that the records of an answer may take. */
export function computeAnswerRoom({ responseLimitBytes }: Settings): number {
  return responseLimitBytes - ENVELOPE_BYTES
}

/** `fitting` is the number of records that fit into an answer. */
export function createPageTooLargeError({ responseLimitBytes }: Settings, fitting: number): VersoError {
  const limit = formatBytes(responseLimitBytes)
  const what = `The response would be larger than ${limit}. `
  if (fitting === 0)
    return new VersoError('too-large', `${what}${CHOOSE_FIELDS_HINT}`, { data: { limit: 0 } })
  const message = `${what}Request at most ${fitting} records with "limit", or fewer fields with "fields"; nothing was changed`
  return new VersoError('too-large', message, { data: { limit: fitting } })
}

const CHOOSE_FIELDS_HINT =
  'Its first record alone is too large: request fewer fields with "fields"; nothing was changed'

function createRecordTooLargeError({ responseLimitBytes }: Settings): VersoError {
  return new VersoError(
    'too-large',
    `The record is larger than ${formatBytes(responseLimitBytes)}: request fewer fields with "fields" (POST …/fetch); nothing was changed`,
  )
}

/** For records that a program or a hook finds in a transaction. */
export function createFoundTooLargeError({ responseLimitBytes }: Settings): VersoError {
  return new VersoError(
    'too-large',
    `The records are larger than ${formatBytes(responseLimitBytes)}: find fewer of them with "limit", or fewer fields with "fields"; nothing was changed`,
  )
}

export function createRecordAtTooLargeError({ responseLimitBytes }: Settings): VersoError {
  return new VersoError(
    'too-large',
    `The record at that time is larger than ${formatBytes(responseLimitBytes)}: read its Changes (GET …/history) instead; nothing was changed`,
  )
}

export function createCopyTooLargeError({ responseLimitBytes }: Settings): VersoError {
  return new VersoError(
    'too-large',
    `A copy of the record would be larger than ${formatBytes(responseLimitBytes)}: create the record and the records in its lists one by one; nothing was changed`,
  )
}

interface RecordLocation {
  readonly db: Queryable
  readonly table: Table
}

/** True if the declared lengths of the fields keep every record within the memory limit. */
export function isAlwaysInMemory({ settings }: AnswerLimitApp, { maxBytes }: Select): boolean {
  return maxBytes <= computeMemoryLimit(settings)
}

/** Restricts a read to records that fit into an answer. The database measures nothing if the model already bounds the size. */
export function limitToAnswer(app: AnswerLimitApp, { select, visible }: Omit<RecordRead, 'id'>): ReadFilter {
  if (isAlwaysInMemory(app, select)) return { visible }
  return { visible, within: { size: select.sizeSql.storedBytes, maxBytes: computeAnswerRoom(app.settings) } }
}

/**
 * Reads and measures a record in one statement. Returns undefined if the record does not exist or is not visible. Rejects a record that is
 * larger than an answer.
 */
export async function readWithinLimit<T>(
  { settings }: AnswerLimitApp,
  { db, table }: RecordLocation,
  record: RecordRead,
  read: (only: ReadFilter) => Promise<T | undefined>,
): Promise<T | undefined> {
  const { select, visible } = record
  const bytes = computeAnswerRoom(settings)
  const found = await read({ visible, within: { size: select.sizeSql.storedBytes, maxBytes: bytes } })
  if (found !== undefined) return found
  const size = await measureRecord(db, table, record)
  if (size > bytes) throw createRecordTooLargeError(settings)
  // Another transaction created or shrank the record between the two statements.
  return size > 0 ? read({ visible }) : undefined
}

/** Joins the JSON texts of records that are in memory. */
export function stringifyRecords({ settings }: AnswerLimitApp, records: readonly unknown[]): string {
  const texts: string[] = []
  let bytes = 0
  for (const record of records) {
    const text = stringifyIfFits(record, computeAnswerRoom(settings))
    if (text === undefined || (bytes += Buffer.byteLength(text) + 1) > computeAnswerRoom(settings))
      throw createPageTooLargeError(settings, texts.length)
    texts.push(text)
  }
  return texts.join()
}

/** Skips data that is certainly too large, because `JSON.stringify` fails beyond the maximum length of a string. */
function stringifyIfFits(data: unknown, bytes: number): string | undefined {
  return estimateMinJsonBytes(data) <= bytes ? JSON.stringify(data) : undefined
}

export function stringifyRecord({ settings }: AnswerLimitApp, record: unknown): string {
  const bytes = computeAnswerRoom(settings)
  const text = stringifyIfFits(record, bytes)
  if (text === undefined || !fitsBytes(text, bytes)) throw createRecordTooLargeError(settings)
  return text
}

/** Rejects a record whose JSON is larger than an answer. Measured sizes do not count JSON escapes. */
export function requireRecordFits(app: AnswerLimitApp, found: FoundRecord): FoundRecord {
  const fits = found.hasJson
    ? fitsBytes(found.json, computeAnswerRoom(app.settings))
    : fitsAnswer(app, found.record)
  if (!fits) throw createRecordTooLargeError(app.settings)
  return found
}

/** Skips the count if the text fits in any case: a UTF-16 code unit takes at most three bytes in UTF-8. */
export function fitsBytes(text: string | Uint8Array, bytes: number): boolean {
  return text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes
}

export function fitsAnswer({ settings }: AnswerLimitApp, data: unknown): boolean {
  const bytes = computeAnswerRoom(settings)
  if (estimateMaxJsonBytes(data) <= bytes) return true
  const text = stringifyIfFits(data, bytes)
  return text !== undefined && fitsBytes(text, bytes)
}

type JsonMembers = Readonly<Record<string, unknown>>

/** A quick upper bound. Keys are counted, because clients choose the keys of JSON values. */
function estimateMaxJsonBytes(value: unknown): number {
  if (typeof value === 'string') return MAX_ESCAPE_FACTOR * value.length + MAX_PUNCTUATION_BYTES
  if (typeof value !== 'object' || value === null) return MAX_PUNCTUATION_BYTES
  let bytes = MAX_PUNCTUATION_BYTES
  if (Array.isArray(value)) for (const inner of value) bytes += estimateMaxJsonBytes(inner)
  else
    for (const key of Object.keys(value)) {
      const inner = (value as JsonMembers)[key]
      bytes += MAX_ESCAPE_FACTOR * key.length
      bytes +=
        typeof inner === 'number' || inner === null ? MAX_PUNCTUATION_BYTES : estimateMaxJsonBytes(inner)
    }
  return bytes
}

/** A quick lower bound. */
export function estimateMinJsonBytes(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  let bytes = 2
  if (Array.isArray(value)) for (const inner of value) bytes += estimateMinJsonBytes(inner)
  else
    for (const key of Object.keys(value))
      bytes += key.length + estimateMinJsonBytes((value as JsonMembers)[key])
  return bytes
}

export function formatBytes(bytes: number): string {
  return bytes >= 1024 ** 2 ? `${Math.floor(bytes / 1024 ** 2)} MB` : `${Math.floor(bytes / 1024)} KB`
}
