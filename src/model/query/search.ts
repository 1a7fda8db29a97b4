// What a find or a search asks for. Nothing past these values sees a query string or a body.
import { Refusal } from '../../errors.js'
import { conditionFrom, MAX_TERMS, MAX_VALUES, type Condition } from './condition.js'
import { bind, countTerms, countValues } from './bind-condition.js'
import type { Criteria } from './criteria.js'
import { parseFilter } from './filter.js'
import type { Model } from '../definition/model.js'
import { MOMENT_FORM, parseMoment } from '../values/date-time.js'
import { unknownParameters, type Parameters } from './parameters.js'
import { positionFrom, type Position } from './cursor.js'
import { selectionForPage, type Selection } from './selection.js'
import type { Sight } from './visibility.js'
import { sortFrom } from './sort.js'
import type { SortKey } from './sort-key.js'
import { isObject } from '../values/value.js'
import { conditionOfWords } from './search-words.js'

export const DEFAULT_LIMIT = 40
export const MAX_LIMIT = 1_000
/** Where a page shows lists, each of which may be long, it has so many times fewer records. */
const LISTS_FACTOR = 10

export interface Search {
  readonly offset: number
  readonly limit: number
  /** `id` comes last, always: pages never overlap. */
  readonly sort: readonly SortKey[]
  /** Where the page begins in this order; at the offset if undefined. */
  readonly after?: Position | undefined
  /** Whether archived records are shown too. */
  readonly archived: boolean
  readonly where: Criteria | undefined
  /** The records that whoever asks may see; all of them if undefined. */
  readonly seen?: Criteria | undefined
  /** What is shown; the list fields if undefined. */
  readonly selection: Selection | undefined
}

/** What a find may say. Lists may also be texts with commas, as in a query string. */
export interface Query {
  readonly offset?: unknown
  readonly limit?: unknown
  /** Behind which record the page begins, as the page before it said: `offset` is only answered then. */
  readonly after?: unknown
  readonly archived?: unknown
  readonly fields?: unknown
  readonly sortBy?: unknown
  /** A condition in the filter language. */
  readonly filter?: unknown
  /** Words, each of which is in one of the texts that a list shows. */
  readonly q?: unknown
  /** A moment of the past: RFC 3339, or a date for its beginning in UTC. */
  readonly asOf?: unknown
}

/** What a search may say. */
export interface SearchRequest {
  readonly offset?: unknown
  readonly limit?: unknown
  readonly fields?: unknown
  readonly sortBy?: unknown
  /** `criteria` and `operator`, `_domain` and `_domainContext`, `_domains`, `_archived`. */
  readonly data?: unknown
}

const FIND_WORDS = [
  'offset',
  'limit',
  'after',
  'fields',
  'sortBy',
  'filter',
  'q',
  'archived',
  'asOf',
] as const
export const FIND: Parameters = { known: FIND_WORDS satisfies readonly (keyof Query)[] }
export const PAGING: Parameters = { known: ['offset', 'limit'] satisfies (keyof Query)[] }

export function searchFromQuery(sight: Sight, model: Model, query: Query, maxLimit: number): Search {
  // Many APIs take a condition as `name=value`.
  const elsewhere = (name: string) =>
    sight.readable(model, name) ? `: to compare this field, send filter=${name}='…'` : undefined
  const faults = unknownParameters(query, FIND, elsewhere)
  const conditions = [filterFrom('filter', query.filter, {}, faults)]
  const words = conditionOfWords(sight, model, query.q, faults)
  const archived = isTrue('archived', query.archived, faults)
  if (query.asOf !== undefined && parseMoment(query.asOf) === undefined)
    faults.push(`asOf must be ${MOMENT_FORM}, or a date`)
  if (query.after !== undefined && query.asOf !== undefined)
    faults.push('after is no place in the past: pages of asOf have an offset')
  const { offset, limit, after } = query
  const [fields, sortBy] = [split(query.fields), split(query.sortBy)]
  const asked = { offset, limit, after, fields, sortBy, archived, conditions, words }
  return build(sight, model, asked, maxLimit, faults)
}

/** Which part of a list is asked for, where nothing else can be said. */
export function pageFromQuery(query: object, maxLimit: number): Pick<Search, 'offset' | 'limit'> {
  const faults = unknownParameters(query, PAGING)
  const { offset, limit } = query as Query
  const page = {
    offset: wholeNumber('offset', offset, 0, faults),
    limit: Math.min(wholeNumber('limit', limit, DEFAULT_LIMIT, faults), maxLimit),
  }
  if (faults.length > 0) throw new Refusal('bad-request', faults.slice(0, 20).join('; '))
  return page
}

const DATA_KEYS = ['criteria', 'operator', '_domain', '_domainContext', '_domains', '_archived']
/** What people write beside data, where it would have no effect, and where it belongs. */
const MISPLACED: readonly (readonly [key: string, place: string])[] = [
  ...DATA_KEYS.map((key) => [key, `data.${key}`] as const),
  ['archived', 'data._archived'],
  ['filter', 'data._domain'],
  ['q', 'a find'],
  ['after', 'a find (GET /ws/rest/:model?after=…): a search has an offset'],
  ['asOf', 'a find (GET /ws/rest/:model?asOf=…): a search knows no past'],
]

export function searchFromRequest(sight: Sight, model: Model, request: unknown, maxLimit: number): Search {
  if (request !== undefined && request !== null && !isObject(request))
    throw new Refusal('bad-request', 'The body of a search must be an object')
  const { offset, limit, fields, sortBy, data } = (request ?? {}) as SearchRequest
  const faults: string[] = []
  for (const [key, place] of MISPLACED)
    if (Object.hasOwn(request ?? {}, key)) faults.push(`${key} belongs into ${place}`)
  const asked = { offset: offset ?? undefined, limit: limit ?? undefined, fields, sortBy }
  return build(sight, model, { ...asked, ...readData(data, faults) }, maxLimit, faults)
}

function readData(data: unknown, faults: string[]): Pick<Asked, 'archived' | 'conditions'> {
  if (data === undefined || data === null) return { archived: false, conditions: [] }
  if (!isObject(data)) {
    faults.push('data must be an object')
    return { archived: false, conditions: [] }
  }
  // A condition that is not understood must not be left out: the answer would hold more than was asked for.
  const strange = Object.keys(data).filter((key) => !DATA_KEYS.includes(key))
  if (strange.length > 0)
    faults.push(
      `data has ${strange.slice(0, 5).join(', ').slice(0, 200)}, but a search knows ${DATA_KEYS.join(', ')}`,
    )
  const context = data['_domainContext'] ?? {}
  if (!isObject(context)) faults.push('_domainContext must be an object')
  const conditions = [
    conditionFrom(data, faults),
    filterFrom('_domain', data['_domain'] ?? undefined, isObject(context) ? context : {}, faults),
    domainsFrom(data, faults),
  ]
  return { archived: isTrue('_archived', data['_archived'], faults), conditions }
}

/** Several texts with parameters of their own, joined as the criteria are. */
function domainsFrom(data: Readonly<Record<string, unknown>>, faults: string[]): Condition | undefined {
  const domains = data['_domains'] ?? []
  if (!Array.isArray(domains)) {
    faults.push('_domains must be a list of objects with a domain')
    return undefined
  }
  const conditions = domains.slice(0, MAX_TERMS + 1).flatMap((each: unknown, index) => {
    const at = `_domains[${index}]`
    const { domain, context: given } = isObject(each) ? each : {}
    const context = given ?? {}
    if (!isObject(context)) faults.push(`${at}.context must be an object`)
    if (domain === undefined || domain === null) faults.push(`${at} must be an object with a domain`)
    return filterFrom(at, domain ?? undefined, isObject(context) ? context : {}, faults) ?? []
  })
  if (conditions.length === 0) return undefined
  const { operator } = data
  const isOr = typeof operator === 'string' && operator.toLowerCase() === 'or'
  return { kind: 'group', operator: isOr ? 'or' : 'and', conditions, at: '_domains' }
}

interface Asked {
  readonly offset?: unknown
  readonly limit?: unknown
  readonly after?: unknown
  readonly fields?: unknown
  readonly sortBy?: unknown
  readonly archived: boolean
  readonly conditions: readonly (Condition | undefined)[]
  /** Has limits of its own. */
  readonly words?: Condition | undefined
}

function build(sight: Sight, model: Model, asked: Asked, maxLimit: number, faults: string[]): Search {
  const offset = wholeNumber('offset', asked.offset, 0, faults)
  const limit = wholeNumber('limit', asked.limit, Math.min(DEFAULT_LIMIT, maxLimit), faults)
  const selection = selectionForPage(sight, model, asked.fields, faults)
  const faultsBefore = faults.length
  const sort = sortFrom(sight, model, asked.sortBy, faults)
  // Of an order that is not understood there is no position.
  const after = faults.length > faultsBefore ? undefined : positionFrom(sort, asked.after, faults)
  const conditions = asked.conditions.filter((condition) => condition !== undefined)
  const terms = conditions.reduce((sum, condition) => sum + countTerms(condition), 0)
  const values = conditions.reduce((sum, condition) => sum + countValues(condition), 0)
  if (terms > MAX_TERMS) faults.push(`a search has at most ${MAX_TERMS} conditions, not ${terms}`)
  if (values > MAX_VALUES)
    faults.push(`the lists of a search have at most ${MAX_VALUES} values, not ${values}`)
  const isTooMuch = terms > MAX_TERMS || values > MAX_VALUES
  const all = isTooMuch ? [] : [...conditions, ...(asked.words ? [asked.words] : [])]
  const criteria = all.map((each) => bind(sight, model, each, faults))
  if (faults.length > 0) throw new Refusal('bad-request', faults.slice(0, 20).join('; '))
  const bound = criteria.filter((each) => each !== undefined)
  const hasLists = selection?.entries.some((entry) => entry.field.relation?.isList) === true
  return {
    ...{ offset, sort, after, selection, archived: asked.archived },
    limit: Math.min(limit, hasLists ? Math.ceil(maxLimit / LISTS_FACTOR) : maxLimit),
    where: bound.length > 1 ? { kind: 'and', criteria: bound } : bound[0],
  }
}

function filterFrom(
  name: string,
  text: unknown,
  parameters: Readonly<Record<string, unknown>>,
  faults: string[],
): Condition | undefined {
  if (text === undefined) return undefined
  if (typeof text !== 'string') {
    faults.push(`${name} must be one text`)
    return undefined
  }
  try {
    return parseFilter(text, parameters, name)
  } catch (error) {
    // One fault among others: it must not hide what is wrong elsewhere, in its context for one.
    if (!(error instanceof Refusal)) throw error
    faults.push(error.message)
    return undefined
  }
}

function split(names: unknown): unknown {
  return typeof names === 'string' ? names.split(',').flatMap((name) => name.trim() || []) : names
}

function isTrue(name: string, input: unknown, faults: string[]): boolean {
  const isSaid = [undefined, null, true, false, 'true', 'false'].some((each) => each === input)
  if (!isSaid) faults.push(`${name} must be true or false`)
  return input === true || input === 'true'
}

/** A larger limit is lowered to the greatest; anything but whole numbers from 0 is refused. */
export function wholeNumber(name: string, input: unknown, otherwise: number, faults: string[]): number {
  if (input === undefined) return otherwise
  const isSpelled = typeof input === 'string' && /^\d{1,16}$/.test(input)
  const value = isSpelled ? Number(input) : input
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  faults.push(`${name} must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`)
  return otherwise
}
