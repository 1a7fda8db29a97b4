// Formats and parses records as CSV (RFC 4180). Null is an empty cell, an empty text is `""`.
import { isFileField, isOwnLink, isUserReference, listUsernames } from './transfer-fields.js'
import type { Field } from '../model/values/field.js'
import { isObject } from '../model/values/value.js'

const CSV_LINE_END = '\r\n'
export const UTF8_BOM = '\uFEFF'
const LIST_SEPARATOR = '|'

/** Joins the cells and adds the line end. */
export function formatCsvLine(cells: readonly string[]): string {
  return cells.join(',') + CSV_LINE_END
}

/** Quotes a text if necessary, so that parsing the cell returns it unchanged. */
export function quoteCell(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** The beginning of a cell that a spreadsheet would execute as a formula. */
const FORMULA_START = /^[=+\-@＝＋－＠\t\r\n]/

/** Makes a spreadsheet show the text instead of executing it. */
function escapeFormula(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text
}

const TEXT_CELL_TYPES: readonly string[] = ['string', 'text', 'enum', 'json']

/** Formats a value without loss, unless it is for a spreadsheet: `parseCell` returns the same value. */
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
    : (value as readonly { readonly id: number }[]).map(getId)
}

function getId({ id }: { readonly id: number }): number {
  return id
}

/** Converts a cell to the value of an NDJSON line. An invalid cell stays text, which the check of the line rejects. */
export function parseCell(field: Field, cell: string | null): unknown {
  if (cell === null) return null
  if (isOwnLink(field)) return cell.split(LIST_SEPARATOR).map((member) => parseReferenceCell(field, member))
  if (field.relation) return parseReferenceCell(field, cell)
  if (field.type === 'boolean') return cell === 'true' ? true : cell === 'false' ? false : cell
  if (field.type === 'integer' || field.type === 'long') return parseWholeCell(cell)
  return isJsonCell(field) ? parseJsonCell(cell) : cell
}

/** File metadata has the same JSON in a cell as in an NDJSON line. */
function isJsonCell(field: Field): boolean {
  return field.type === 'json' || isFileField(field)
}

/** Converts digits to a number; returns any other text unchanged. */
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
    // The check of the line reports the error.
    return INVALID_JSON
  }
}

/** The value of a cell with invalid JSON. No field accepts it. */
const INVALID_JSON = Symbol('no JSON')

/** Formats a value for people: related records by name, lists joined. */
export function formatReadableCell(field: Field, value: unknown): string {
  if (value === null || value === undefined) return ''
  if (field.relation) {
    const related = [value].flat().map(getRelatedName)
    return quoteCell(escapeFormula(related.join(' | ')))
  }
  const text = formatCellText(field, value)
  return quoteCell(TEXT_CELL_TYPES.includes(field.type) ? escapeFormula(text) : text)
}

/** Returns the name of a related record `{id, $version, <name field>}`, or its id if it has none. */
function getRelatedName(related: unknown): string {
  if (!isObject(related)) return ''
  const [name] = Object.entries(related).flatMap(([key, value]) =>
    key === 'id' || key === '$version' || value === null ? [] : [value],
  )
  return String(name ?? related['id'])
}
