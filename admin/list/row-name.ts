import { formatValue } from '../fields/format-value.js'
import type { FieldInfo } from '../service/model-info.js'
import { getTexts } from '../texts/texts.js'
import type { Row } from './use-shown-rows.js'

const MAX_CHARACTERS = 200

/** What stands for a row: the text of its first column, or its number. A list reads only its columns, so it may not know the name. */
export function getRowName(row: Row, [first]: readonly FieldInfo[]): string {
  const text = first ? formatValue(first, row[first.name]).slice(0, MAX_CHARACTERS) : ''
  return text.trim() === '' ? getTexts().list.unnamed(row.id) : text
}
