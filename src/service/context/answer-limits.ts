// Answers have a limit of bytes. A page that is too large for memory waits in a file; one that is larger than the limit is refused with a
// `limit` that fits, before its records are read.
import { VersoError } from '../../errors.js'
import type { Search } from '../../model/query/search.js'
import type { Queryable } from '../../store/engine/database.js'
import {
  countRecordsWithin,
  takeWithinBytes,
  measurePage,
  readJsonSlices,
  measureRecord,
  type MeasuredPage,
  type RecordRead,
} from '../../store/find/large-pages.js'
import type { FoundPage } from '../../store/find/pages.js'
import type { ReadFilter } from '../../store/sql/point-read.js'
import type { Select } from '../../store/sql/select.js'
import type { StagedFile } from '../../store/engine/staging.js'
import type { Table } from '../../store/sql/table.js'
import type { App } from './app.js'
import type { Settings } from './settings.js'

const MAX_IN_MEMORY_BYTES = 4 * 1024 * 1024
/** Escapes make a text at most six times as long: what is read into memory is within the limit of an answer, whatever it holds. */
const MEMORY_SHARE = 8
/** What stands around records. */
const ENVELOPE_BYTES = 256
/** Of a value in JSON, with its marks and those of its name. */
const MOST_MARKS = 128
/** A character of a text, escaped in JSON. */
export const MOST_ESCAPED = 6

export type Limited = Pick<App, 'settings'>

/** What is larger is not held in memory as a whole. */
export function memoryBytes({ answerLimitBytes }: Settings): number {
  return Math.min(MAX_IN_MEMORY_BYTES, Math.floor(answerLimitBytes / MEMORY_SHARE))
}

/** How many bytes records may take in an answer. */
export function roomFor({ answerLimitBytes }: Settings): number {
  return answerLimitBytes - ENVELOPE_BYTES
}

/** A page whose texts are in a file. */
export type StagedPage = Omit<FoundPage, 'records'> & { readonly text: StagedFile | '' }

/** Reads a page in small parts, all of the same snapshot. No client is waited for while the snapshot is open. */
export async function stagePage(app: App, table: Table, search: Search, select: Select): Promise<StagedPage> {
  const { staging, settings } = app
  return staging.runSerially(async () => {
    let file: StagedFile | undefined
    try {
      return await app.db.queryPool.snapshot(async (db) => {
        const page = await measurePage(db, table, search, select)
        await refuseLargePage(settings, db, table, { page, select })
        const { total, seq, nextCursor, records } = page
        if (records.length === 0) return { total, seq, nextCursor, text: '' }
        // The work may be run again.
        file?.discard()
        file = staging.open()
        let count = 0
        for await (const texts of readJsonSlices(db, table, select, records)) {
          for (const text of texts) {
            const bytes = Buffer.from(count === 0 ? text : `,${text}`)
            if (file.size + bytes.length > roomFor(settings)) throw tooLarge(settings, count)
            file.append(bytes)
            count++
          }
        }
        return { total, seq, nextCursor, text: file }
      })
    } catch (error) {
      file?.discard()
      throw error
    }
  })
}

interface Weighed {
  readonly page: MeasuredPage
  readonly select: Select
}

export async function refuseLargePage(
  settings: Settings,
  db: Queryable,
  table: Table,
  { page, select }: Weighed,
): Promise<void> {
  const bytes = roomFor(settings)
  if (page.bytes <= bytes) return
  throw tooLarge(settings, await countRecordsWithin(db, table, select, { records: page.records, bytes }))
}

/** Says how many records fit. */
export function tooLarge({ answerLimitBytes }: Settings, fitting: number): VersoError {
  const most = spellBytes(answerLimitBytes)
  const what = `The answer would be larger than ${most}. `
  if (fitting === 0) return new VersoError('too-large', `${what}${CHOOSE}`, { data: { limit: 0 } })
  const message = `${what}Ask for at most ${fitting} records with "limit", or for fewer fields with "fields". Nothing was changed.`
  return new VersoError('too-large', message, { data: { limit: fitting } })
}

const CHOOSE = 'Its first record alone is too large: choose what to show with "fields". Nothing was changed.'

function recordTooLarge({ answerLimitBytes }: Settings): VersoError {
  return new VersoError(
    'too-large',
    `The record is larger than ${spellBytes(answerLimitBytes)}: choose what to show with "fields" (POST …/fetch). Nothing was changed.`,
  )
}

export function pastTooLarge({ answerLimitBytes }: Settings): VersoError {
  return new VersoError(
    'too-large',
    `The record as it was is larger than ${spellBytes(answerLimitBytes)}: read its Changes (GET …/history) instead. Nothing was changed.`,
  )
}

export function copyTooLarge({ answerLimitBytes }: Settings): VersoError {
  return new VersoError(
    'too-large',
    `A copy of the record would be larger than ${spellBytes(answerLimitBytes)}: create the record and those in its lists one by one. Nothing was changed.`,
  )
}

/** Where a record is read from. */
interface Place {
  readonly db: Queryable
  readonly table: Table
}

/** Whether no record of this kind can be too large. */
export function isLight({ settings }: Limited, { maxBytes }: Select): boolean {
  return maxBytes <= memoryBytes(settings)
}

/** Restricts a read to what fits an answer. The database weighs nothing where the model bounds the record. */
export function onlyWithin(app: Limited, { select, seen }: Omit<RecordRead, 'id'>): ReadFilter {
  if (isLight(app, select)) return { seen }
  return { seen, within: { weight: select.sizeSql.storedBytes, bytes: roomFor(app.settings) } }
}

/** Reads a record and weighs it in the same statement; undefined if it is not there or may not be seen. Refuses one that is larger than an answer. */
export async function readWithin<T>(
  { settings }: Limited,
  { db, table }: Place,
  record: RecordRead,
  read: (only: ReadFilter) => Promise<T | undefined>,
): Promise<T | undefined> {
  const { select, seen } = record
  const bytes = roomFor(settings)
  const found = await read({ seen, within: { weight: select.sizeSql.storedBytes, bytes } })
  if (found !== undefined) return found
  const weight = await measureRecord(db, table, record)
  if (weight > bytes) throw recordTooLarge(settings)
  // It may have come, or become smaller, between the two statements.
  return weight > 0 ? read({ seen }) : undefined
}

interface PastPage {
  readonly search: Search
  readonly select: Select
}

/** The same for a list as it was, whose records are not in their table. */
export async function refuseLargePast(
  settings: Settings,
  db: Queryable,
  table: Table,
  { search, select }: PastPage,
): Promise<void> {
  if (select.maxBytes * search.limit <= memoryBytes(settings)) return
  const { bytes, records } = await measurePage(db, table, search, select)
  const room = roomFor(settings)
  if (bytes > room) throw tooLarge(settings, takeWithinBytes(records, room).length)
}

/** The texts of records that are in memory, as a page. */
export function printRecords({ settings }: Limited, records: readonly unknown[]): string {
  const texts: string[] = []
  let bytes = 0
  for (const record of records) {
    const text = textIfFits(record, roomFor(settings))
    if (text === undefined || (bytes += Buffer.byteLength(text) + 1) > roomFor(settings))
      throw tooLarge(settings, texts.length)
    texts.push(text)
  }
  return texts.join()
}

/** Prints nothing that is too long for certain: strings have a greatest length. */
function textIfFits(data: unknown, bytes: number): string | undefined {
  return leastJsonBytes(data) <= bytes ? JSON.stringify(data) : undefined
}

/** The text of a record that was put together in memory. */
export function printWithin(app: Limited, record: unknown): string {
  const text = textIfFits(record, roomFor(app.settings))
  if (text === undefined) throw recordTooLarge(app.settings)
  return textWithin(app, text)
}

/** The weight of a record does not count escapes: its text may be longer than an answer. */
export function textWithin({ settings }: Limited, text: string): string {
  if (!fits(text, roomFor(settings))) throw recordTooLarge(settings)
  return text
}

/** Refuses a record that is larger than an answer, before it is printed. */
export function recordWithin<T>(app: Limited, record: T): T {
  if (!fitsAnswer(app, record)) throw recordTooLarge(app.settings)
  return record
}

/** A UTF-16 unit takes at most three bytes. */
export function fits(text: string | Uint8Array, bytes: number): boolean {
  return text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes
}

export function fitsAnswer({ settings }: Limited, data: unknown): boolean {
  const bytes = roomFor(settings)
  if (mostJsonBytes(data) <= bytes) return true
  const text = textIfFits(data, bytes)
  return text !== undefined && fits(text, bytes)
}

type Members = Readonly<Record<string, unknown>>

/** A quick upper bound. Names are counted, because those in a value of type json are as long as their client likes. */
function mostJsonBytes(value: unknown): number {
  if (typeof value === 'string') return MOST_ESCAPED * value.length + MOST_MARKS
  if (typeof value !== 'object' || value === null) return MOST_MARKS
  let bytes = MOST_MARKS
  if (Array.isArray(value)) for (const inner of value) bytes += mostJsonBytes(inner)
  else
    for (const key of Object.keys(value))
      bytes += MOST_ESCAPED * key.length + mostJsonBytes((value as Members)[key])
  return bytes
}

/** A quick lower bound. */
export function leastJsonBytes(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  let bytes = 2
  if (Array.isArray(value)) for (const inner of value) bytes += leastJsonBytes(inner)
  else for (const key of Object.keys(value)) bytes += key.length + leastJsonBytes((value as Members)[key])
  return bytes
}

export function spellBytes(bytes: number): string {
  return bytes >= 1024 ** 2 ? `${Math.floor(bytes / 1024 ** 2)} MB` : `${Math.floor(bytes / 1024)} KB`
}
