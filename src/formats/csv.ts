// Records as lines of CSV (RFC 4180). What is not there is an empty cell, an empty text is `""`.
import { isFile, isLink, isUser, usernamesIn } from './transfer-fields.js'
import type { Field } from '../model/values/field-types.js'
import { isObject } from '../model/values/value.js'

const CSV_LINE_END = '\r\n'
export const BOM = '\uFEFF'
const LIST_MARK = '|'

/** One line, with its end. */
export function csvLine(cells: readonly string[]): string {
  return cells.join(',') + CSV_LINE_END
}

/** A text as a cell that reads as the same text. */
export function quoteCell(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** What a spreadsheet would take for a formula. Dates and numbers are none. */
const FORMULA = /^[=+\-@＝＋－＠\t\r\n]/

/** A text that a spreadsheet shows and does not work out. */
function safeText(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text
}

const TEXTS: readonly string[] = ['string', 'text', 'enum', 'json']

/** A value of a record that is transferred, exactly: `fromCell` gives it back. */
export function exactCell(field: Field, value: unknown, isForSpreadsheet = false): string {
  if (value === null || value === undefined) return ''
  if (isLink(field) && (value as readonly unknown[]).length === 0) return ''
  const text = isLink(field) ? membersOf(field, value).join(LIST_MARK) : textOf(field, value)
  const isText = TEXTS.includes(field.type) || isUser(field)
  return quoteCell(isForSpreadsheet && isText ? safeText(text) : text)
}

function textOf(field: Field, value: unknown): string {
  return isJson(field) ? JSON.stringify(value) : String(value)
}

function membersOf(field: Field, value: unknown): readonly (string | number)[] {
  return isUser(field) ? usernamesIn(value) : (value as readonly { readonly id: number }[]).map(idOf)
}

function idOf({ id }: { readonly id: number }): number {
  return id
}

/** A cell → what would stand in a line of JSON; null is an empty cell. What it cannot read stays text, to be refused. */
export function fromCell(field: Field, cell: string | null): unknown {
  if (cell === null) return null
  if (isLink(field)) return cell.split(LIST_MARK).map((member) => referenceFrom(field, member))
  if (field.relation) return referenceFrom(field, cell)
  if (field.type === 'boolean') return cell === 'true' ? true : cell === 'false' ? false : cell
  if (field.type === 'integer' || field.type === 'long') return wholeFrom(cell)
  return isJson(field) ? jsonFrom(cell) : cell
}

/** What a file is stands in a cell as in a line. */
function isJson(field: Field): boolean {
  return field.type === 'json' || isFile(field)
}

/** Digits → a number; anything else stays as it is. */
export function wholeFrom(cell: string): unknown {
  return /^-?\d{1,16}$/.test(cell) ? Number(cell) : cell
}

function referenceFrom(field: Field, cell: string): unknown {
  return isUser(field) ? { username: cell } : { id: wholeFrom(cell) }
}

function jsonFrom(cell: string): unknown {
  try {
    return JSON.parse(cell)
  } catch {
    // Not any value that JSON has: the check says what is wrong with it.
    return undefinedJson
  }
}

/** Stands for a cell that is no JSON; no check accepts it. */
const undefinedJson = Symbol('no JSON')

/** A value as people read it: neighbours by their names, lists joined. */
export function shownCell(field: Field, value: unknown): string {
  if (value === null || value === undefined) return ''
  if (field.relation) {
    const neighbours = [value].flat().map(nameOf)
    return quoteCell(safeText(neighbours.join(' | ')))
  }
  const text = textOf(field, value)
  return quoteCell(TEXTS.includes(field.type) ? safeText(text) : text)
}

/** `{id, $version, <name field>}` → the name, or the id where there is none. */
function nameOf(neighbour: unknown): string {
  if (!isObject(neighbour)) return ''
  const [name] = Object.entries(neighbour).flatMap(([key, value]) =>
    key === 'id' || key === '$version' || value === null ? [] : [value],
  )
  return String(name ?? neighbour['id'])
}
