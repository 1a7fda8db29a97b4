// Values of fields as plain text.
import { getRecordName, type FieldInfo, type FieldKind } from '../service/model-info.js'
import { getLocale, getTexts } from '../texts/texts.js'
import { formatDate, formatDatetime, formatTime } from './date-text.js'
import { isInvalidInput, isPendingFile } from './field-props.js'
import { groupDigits } from './number-text.js'

type Formatter = (value: unknown, field: FieldInfo) => string

const BYTES_PER_STEP = 1024
const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte'] as const

const FORMATTERS: Readonly<Record<FieldKind, Formatter>> = {
  string: showAsIs,
  text: showAsIs,
  integer: formatNumber,
  long: formatNumber,
  decimal: (value) => groupDigits(String(value), getLocale()),
  boolean: (value) => (typeof value === 'boolean' ? formatBoolean(value) : showAsIs(value)),
  date: (value) => formatDate(String(value), getLocale()),
  time: (value) => formatTime(String(value)),
  datetime: (value) => formatDatetime(String(value), getLocale()),
  uuid: showAsIs,
  enum: showAsIs,
  json: (value) => JSON.stringify(value, undefined, 2),
  file: formatFile,
  reference: (value, field) => formatRelated(value, field),
  'owned-list': formatList,
  links: formatList,
  inverse: formatList,
}

/** A text for any value, without markup. Empty for a field without a value. */
export function formatValue(field: FieldInfo, value: unknown): string {
  if (isEmptyValue(value)) return ''
  if (isInvalidInput(value)) return value.$invalid
  const choice = field.choices?.find((each) => each.value === value)
  return choice ? choice.title : FORMATTERS[field.kind](value, field)
}

export function isEmptyValue(value: unknown): boolean {
  return value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
}

/** The name of a related record: of its name field, or its number. A new member of a list has no number yet. */
export function formatRelated(value: unknown, { targetName }: FieldInfo): string {
  if (typeof value !== 'object' || value === null) return showAsIs(value)
  const record = value as Readonly<Record<string, unknown>>
  const name = targetName === undefined ? undefined : record[targetName]
  if (record['id'] === undefined && isEmptyValue(name)) return getTexts().fields.newLine
  return getRecordName(record, targetName)
}

export function formatBytes(bytes: number): string {
  const step = Math.min(
    UNITS.length - 1,
    bytes < 1 ? 0 : Math.floor(Math.log(bytes) / Math.log(BYTES_PER_STEP)),
  )
  return new Intl.NumberFormat(getLocale(), {
    style: 'unit',
    unit: UNITS[step],
    unitDisplay: step === 0 ? 'long' : 'short',
    maximumFractionDigits: 1,
  }).format(bytes / BYTES_PER_STEP ** step)
}

function showAsIs(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function formatBoolean(value: boolean): string {
  const { common } = getTexts()
  return value ? common.yes : common.no
}

/** Ids and versions are no quantities: their digits are not grouped. */
function formatNumber(value: unknown, field: FieldInfo): string {
  if (typeof value !== 'number' || field.isSystem) return showAsIs(value)
  return groupDigits(String(value), getLocale())
}

function formatList(value: unknown, field: FieldInfo): string {
  return Array.isArray(value) ? value.map((each) => formatRelated(each, field)).join(', ') : showAsIs(value)
}

function formatFile(value: unknown): string {
  if (isPendingFile(value)) return value.pendingFile?.name ?? ''
  if (typeof value !== 'object' || value === null || !('name' in value)) return showAsIs(value)
  const size = 'size' in value && typeof value.size === 'number' ? ` (${formatBytes(value.size)})` : ''
  return String(value.name) + size
}
