// Downloads all records of a filter as CSV, which the service writes.
import { BASE_PATH } from '../service/base-path.js'
import { shortenName, type FieldKind, type ModelInfo } from '../service/model-info.js'
import { sessionFetch } from '../service/session.js'
import type { FilterObject } from './conditions.js'
import { splitWords } from '../fields/search-text.js'

interface ExportRequest {
  readonly model: ModelInfo
  readonly fields: readonly string[]
  readonly filter: FilterObject
}

/** A condition as the body of a search has it. */
type Criterion = Readonly<Record<string, unknown>>

const SEARCHED_KINDS: readonly FieldKind[] = ['string', 'text', 'enum']
const MAX_SEARCHED_FIELDS = 8
const OPPOSITES: Readonly<Record<string, string>> = {
  isNull: 'notNull',
  notNull: 'isNull',
  isEmpty: 'notEmpty',
  notEmpty: 'isEmpty',
}

export async function downloadRecords({ model, fields, filter }: ExportRequest): Promise<void> {
  const { q, ...conditions } = filter
  const criteria = [...listCriteria(conditions), ...buildWordCriteria(model, typeof q === 'string' ? q : '')]
  const response = await sessionFetch(`${BASE_PATH}/ws/rest/${encodeURIComponent(model.name)}/export`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ fields, data: { operator: 'and', criteria } }),
  })
  if (!response.ok) throw new Error(await readMessage(response))
  saveFile(await response.blob(), `${shortenName(model.name)}.csv`)
}

async function readMessage(response: Response): Promise<string> {
  const text = await response.text()
  try {
    const { data } = JSON.parse(text) as { data?: { message?: string } }
    return data?.message ?? text
  } catch {
    return `${response.status} ${response.statusText}`
  }
}

function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser still reads the URL after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

function listCriteria(filter: FilterObject): readonly Criterion[] {
  return Object.entries(filter).flatMap(([key, value]) => {
    if (key === 'and' || key === 'or')
      return { operator: key, criteria: (value as readonly FilterObject[]).map(buildGroup) }
    if (key === 'not') return { operator: key, criteria: listCriteria(value as FilterObject) }
    return listTerms(key, value)
  })
}

function buildGroup(filter: FilterObject): Criterion {
  return { operator: 'and', criteria: listCriteria(filter) }
}

function listTerms(fieldName: string, comparison: unknown): readonly Criterion[] {
  if (Array.isArray(comparison)) return [buildTerm(fieldName, 'in', comparison)]
  if (!isObject(comparison) || 'id' in comparison) return [buildTerm(fieldName, '=', comparison)]
  return Object.entries(comparison).map(([operator, value]) => buildTerm(fieldName, operator, value))
}

function buildTerm(fieldName: string, operator: string, value: unknown): Criterion {
  const opposite = OPPOSITES[operator]
  if (opposite !== undefined) return { fieldName, operator: value === false ? opposite : operator }
  if (value === null) return { fieldName, operator: operator === '=' ? 'isNull' : 'notNull' }
  if (operator === 'between' && Array.isArray(value))
    return { fieldName, operator, value: value[0], value2: value[1] }
  if (Array.isArray(value) && value.includes(null)) return buildMembership(fieldName, operator, value)
  return { fieldName, operator, value: isObject(value) ? value['id'] : value }
}

/** A null in a list means records without a value. */
function buildMembership(fieldName: string, operator: string, values: readonly unknown[]): Criterion {
  const isNegated = operator === 'notIn'
  const others = { fieldName, operator, value: values.filter((value) => value !== null) }
  return {
    operator: isNegated ? 'and' : 'or',
    criteria: [others, { fieldName, operator: isNegated ? 'notNull' : 'isNull' }],
  }
}

function isObject(value: unknown): value is FilterObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An export takes no search words, so they become conditions of the fields that a search of words looks into. */
function buildWordCriteria(model: ModelInfo, words: string): readonly Criterion[] {
  const fields = listSearchedFields(model)
  return splitWords(words).map((word) => {
    const value = `%${word.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
    return { operator: 'or', criteria: fields.map((fieldName) => ({ fieldName, operator: 'like', value })) }
  })
}

function listSearchedFields({ fields, nameField, listFields }: ModelInfo): readonly string[] {
  const texts = fields
    .filter(({ kind, isSecret, isWriteOnly }) => SEARCHED_KINDS.includes(kind) && !isSecret && !isWriteOnly)
    .map(({ name }) => name)
  const listed = [...new Set([nameField, ...listFields])].flatMap((name) =>
    name !== undefined && texts.includes(name) ? name : [],
  )
  return (listed.length > 0 ? listed : texts).slice(0, MAX_SEARCHED_FIELDS)
}
