// Records as lines of CSV (RFC 4180). What is not there is an empty cell, an empty text is `""`.
import { isFileField, isOwnLink, isUserReference, listUsernames } from './transfer-fields.js'
import type { Field } from '../model/values/field-types.js'
import { isObject } from '../model/values/value.js'

const CSV_LINE_END = '\r\n'
export const UTF8_BOM = '\uFEFF'
const LIST_SEPARATOR = '|'

/** One line, with its end. */
export function formatCsvLine(cells: readonly string[]): string {
  return cells.join(',') + CSV_LINE_END
}

/** A text as a cell that reads as the same text. */
export function quoteCell(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** What a spreadsheet would take for a formula. Dates and numbers are none. */
const FORMULA_START = /^[=+\-@＝＋－＠\t\r\n]/

/** A text that a spreadsheet shows and does not work out. */
function escapeFormula(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text
}

const TEXT_CELL_TYPES: readonly string[] = ['string', 'text', 'enum', 'json']

/** A value of a record that is transferred, exactly: `fromCell` gives it back. */
export function formatExactCell(field: Field, value: unknown, isForSpreadsheet = false): string {
  if (value === null || value === undefined) return ''
  if (isOwnLink(field) && (value as readonly unknown[]).length === 0) return ''
  const text = isOwnLink(field)
    ? listMemberCells(field, value).join(LIST_SEPARATOR)
    : formatCellText(field, value)
  const isText = TEXT_CELL_TYPES.includes(field.type) || isUserReference(field)
  return quoteCell(isForSpreadsheet && isText ? escapeFormula(text) : text)
}

function formatCellText(field: Field, value: unknown): string {
  return isJsonCell(field) ? JSON.stringify(value) : String(value)
}

function listMemberCells(field: Field, value: unknown): readonly (string | number)[] {
  return isUserReference(field)
    ? listUsernames(value)
    : (value as readonly { readonly id: number }[]).map(getMemberId)
}

function getMemberId({ id }: { readonly id: number }): number {
  return id
}

/** A cell → what would stand in a line of JSON; null is an empty cell. What it cannot read stays text, to be refused. */
export function parseCell(field: Field, cell: string | null): unknown {
  if (cell === null) return null
  if (isOwnLink(field)) return cell.split(LIST_SEPARATOR).map((member) => parseReferenceCell(field, member))
  if (field.relation) return parseReferenceCell(field, cell)
  if (field.type === 'boolean') return cell === 'true' ? true : cell === 'false' ? false : cell
  if (field.type === 'integer' || field.type === 'long') return parseWholeCell(cell)
  return isJsonCell(field) ? parseJsonCell(cell) : cell
}

/** What a file is stands in a cell as in a line. */
function isJsonCell(field: Field): boolean {
  return field.type === 'json' || isFileField(field)
}

/** Digits → a number; anything else stays as it is. */
export function parseWholeCell(cell: string): unknown {
  return /^-?\d{1,16}$/.test(cell) ? Number(cell) : cell
}

function parseReferenceCell(field: Field, cell: string): unknown {
  return isUserReference(field) ? { username: cell } : { id: parseWholeCell(cell) }
}

function parseJsonCell(cell: string): unknown {
  try {
    return JSON.parse(cell)
  } catch {
    // Not any value that JSON has: the check says what is wrong with it.
    return INVALID_JSON
  }
}

/** Stands for a cell that is no JSON; no check accepts it. */
const INVALID_JSON = Symbol('no JSON')

/** A value as people read it: neighbours by their names, lists joined. */
export function formatReadableCell(field: Field, value: unknown): string {
  if (value === null || value === undefined) return ''
  if (field.relation) {
    const related = [value].flat().map(getRelatedName)
    return quoteCell(escapeFormula(related.join(' | ')))
  }
  const text = formatCellText(field, value)
  return quoteCell(TEXT_CELL_TYPES.includes(field.type) ? escapeFormula(text) : text)
}

/** `{id, $version, <name field>}` → the name, or the id where there is none. */
function getRelatedName(related: unknown): string {
  if (!isObject(related)) return ''
  const [name] = Object.entries(related).flatMap(([key, value]) =>
    key === 'id' || key === '$version' || value === null ? [] : [value],
  )
  return String(name ?? related['id'])
}
