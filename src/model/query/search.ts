// Parses the query string of a find and the body of a search into a Search. Later code sees neither of them.
import { VersoError } from '../../errors.js'
import { parseConditionJson, MAX_TERMS, MAX_LIST_VALUES, type Condition } from './condition.js'
import { bindCondition, countTerms, countListValues } from './bind-condition.js'
import type { Criteria } from './criteria.js'
import { parseFilter } from './filter.js'
import type { Model } from '../definition/model.js'
import { TIMESTAMP_RULE, parseTimestamp } from '../values/date-time.js'
import { listUnknownParameters, type QueryParameterSet } from './parameters.js'
import { parseCursor, type PageCursor } from './cursor.js'
import { parsePageSelection, type Selection } from './selection.js'
import type { Visibility } from './visibility.js'
import { parseSort, type SortKey } from './sort.js'
import { isObject, type JsonObject } from '../values/value.js'
import { buildTextCondition, parseTextSearch } from './search-words.js'

export const DEFAULT_PAGE_RECORDS = 40
export const MAX_PAGE_RECORDS = 1_000
/** A page that includes lists has a limit that is lower by this factor, because each list may be long. */
const LIST_PAGE_DIVISOR = 10

export interface Search {
  readonly offset: number
  readonly limit: number
  /** The sort keys without the final `id`, which every order ends with so that pages never overlap. */
  readonly sort: readonly SortKey[]
  /** The page begins after this cursor; at the offset if undefined. */
  readonly after?: PageCursor | undefined
  /** Includes archived records. */
  readonly archived: boolean
  /** The page has no total, so that the database need not count the matches. */
  readonly uncounted?: boolean
  readonly isInTransaction?: boolean
  readonly where: Criteria | undefined
  /** The records that the user may see; undefined means all. */
  readonly visible?: Criteria | undefined
  /** The selected fields; undefined means the list fields of the model. */
  readonly selection: Selection | undefined
}

/** The parameters of a find. Lists may be texts with commas, as in a query string. */
export interface FindQuery {
  readonly offset?: unknown
  readonly limit?: unknown
  /** The cursor from the link of the previous page. With it, `offset` only appears in the answer. */
  readonly after?: unknown
  readonly archived?: unknown
  readonly fields?: unknown
  readonly sortBy?: unknown
  /** A condition in the filter language. */
  readonly filter?: unknown
  /** Search words. Each must occur in at least one text field that a list shows. */
  readonly q?: unknown
  /** A point in time: RFC 3339, or a date, which means midnight UTC. */
  readonly asOf?: unknown
}

/** Any request for a page. Not part of `FindQuery` and `SearchRequest`, because it decides the type of the page: see `Uncounted` in wire.ts. */
export interface CountOption {
  /** `none` omits the total, so that the database need not count the matches. */
  readonly count?: unknown
}

/** The body of a search. */
export interface SearchRequest {
  readonly offset?: unknown
  readonly limit?: unknown
  readonly fields?: unknown
  readonly sortBy?: unknown
  /** `criteria` and `operator`, `_domain` and `_domainContext`, `_domains`, `_archived`. */
  readonly data?: unknown
}

const FIND_PARAMETER_NAMES = [
  'offset',
  'limit',
  'after',
  'fields',
  'sortBy',
  'filter',
  'q',
  'archived',
  'asOf',
  'count',
] as const
export const FIND_PARAMETERS: QueryParameterSet = {
  known: FIND_PARAMETER_NAMES satisfies readonly (keyof FindQuery | keyof CountOption)[],
}
export const PAGING_PARAMETERS: QueryParameterSet = {
  known: ['offset', 'limit'] satisfies (keyof FindQuery)[],
}

export function parseFindQuery(
  visibility: Visibility,
  model: Model,
  query: FindQuery & CountOption,
  maxPageSize: number,
): Search {
  // Many other APIs have conditions of the form `name=value`.
  const elsewhere = (name: string) =>
    visibility.findReadable(model, name) ? `: to compare this field, send filter=${name}='…'` : undefined
  const errors = listUnknownParameters(query, FIND_PARAMETERS, elsewhere)
  const conditions = [parseFilterText('filter', query.filter, {}, errors)]
  const search = query.q === undefined ? undefined : parseTextSearch(visibility, model, query.q, errors)
  const words = search && buildTextCondition(search)
  const archived = parseFlag('archived', query.archived, errors)
  if (query.asOf !== undefined && parseTimestamp(query.asOf) === undefined)
    errors.push(`asOf must be ${TIMESTAMP_RULE}, or a date`)
  if (query.after !== undefined && query.asOf !== undefined)
    errors.push('after cannot be combined with asOf: use offset for further pages')
  const { offset, limit, after, count } = query
  const [fields, sortBy] = [splitNames(query.fields), splitNames(query.sortBy)]
  const input = { offset, limit, maxPageSize, after, fields, sortBy, archived, count, conditions, words }
  return buildSearch(visibility, model, input, errors)
}

/** Parses the query of a list that has no parameters except offset and limit. */
export function parsePageQuery(query: object, maxPageSize: number): Pick<Search, 'offset' | 'limit'> {
  const errors = listUnknownParameters(query, PAGING_PARAMETERS)
  const { offset, limit } = query as FindQuery
  const page = {
    offset: parseWholeParameter('offset', offset, 0, errors),
    limit: Math.min(parseWholeParameter('limit', limit, DEFAULT_PAGE_RECORDS, errors), maxPageSize),
  }
  if (errors.length > 0) throw new VersoError('bad-request', errors.slice(0, 20).join('; '))
  return page
}

const SEARCH_DATA_KEYS = ['criteria', 'operator', '_domain', '_domainContext', '_domains', '_archived']
/** Keys that are not allowed beside `data`, and the replacement for each. */
const MISPLACED_KEYS: readonly (readonly [key: string, place: string])[] = [
  ...SEARCH_DATA_KEYS.map((key) => [key, `data.${key}`] as const),
  ['archived', 'data._archived'],
  ['filter', 'data._domain'],
  ['q', 'a find (GET /ws/rest/:model?q=…)'],
  ['after', 'offset, or a find (GET /ws/rest/:model?after=…)'],
  ['asOf', 'a find (GET /ws/rest/:model?asOf=…)'],
]

export function parseSearchRequest(
  visibility: Visibility,
  model: Model,
  request: unknown,
  maxPageSize: number,
): Search {
  if (request !== undefined && request !== null && !isObject(request))
    throw new VersoError('bad-request', 'The body of a search must be an object')
  const { offset, limit, fields, sortBy, count, data } = (request ?? {}) as SearchRequest & CountOption
  const errors: string[] = []
  for (const [key, path] of MISPLACED_KEYS)
    if (Object.hasOwn(request ?? {}, key)) errors.push(`${key} is not a key of this request: use ${path}`)
  const { archived, conditions } = parseSearchData(data, errors)
  const page = {
    offset: offset ?? undefined,
    limit: limit ?? undefined,
    count: count ?? undefined,
    maxPageSize,
  }
  return buildSearch(visibility, model, { ...page, fields, sortBy, archived, conditions }, errors)
}

function parseSearchData(data: unknown, errors: string[]): Pick<RawSearch, 'archived' | 'conditions'> {
  if (data === undefined || data === null) return { archived: false, conditions: [] }
  if (!isObject(data)) {
    errors.push('data must be an object')
    return { archived: false, conditions: [] }
  }
  // Ignoring an unknown condition would return more records than requested.
  const unknown = Object.keys(data).filter((key) => !SEARCH_DATA_KEYS.includes(key))
  if (unknown.length > 0)
    errors.push(
      `data has unknown keys: ${unknown.slice(0, 5).join(', ').slice(0, 200)} (known keys: ${SEARCH_DATA_KEYS.join(', ')})`,
    )
  const context = data['_domainContext'] ?? {}
  if (!isObject(context)) errors.push('_domainContext must be an object')
  const conditions = [
    parseConditionJson(data, errors),
    parseFilterText('_domain', data['_domain'] ?? undefined, isObject(context) ? context : {}, errors),
    parseDomains(data, errors),
  ]
  return { archived: parseFlag('_archived', data['_archived'], errors), conditions }
}

/** Parses several filter texts, each with its own parameters, and joins them with the operator of the criteria. */
function parseDomains(data: JsonObject, errors: string[]): Condition | undefined {
  const domains = data['_domains'] ?? []
  if (!Array.isArray(domains)) {
    errors.push('_domains must be a list of objects with a domain')
    return undefined
  }
  const conditions = domains.slice(0, MAX_TERMS + 1).flatMap((each: unknown, index) => {
    const at = `_domains[${index}]`
    const { domain, context: sentContext } = isObject(each) ? each : {}
    const context = sentContext ?? {}
    if (!isObject(context)) errors.push(`${at}.context must be an object`)
    if (domain === undefined || domain === null) errors.push(`${at} must be an object with a domain`)
    return parseFilterText(at, domain ?? undefined, isObject(context) ? context : {}, errors) ?? []
  })
  if (conditions.length === 0) return undefined
  const { operator } = data
  const isOr = typeof operator === 'string' && operator.toLowerCase() === 'or'
  return { kind: 'group', operator: isOr ? 'or' : 'and', conditions, at: '_domains' }
}

interface RawSearch {
  readonly offset?: unknown
  readonly limit?: unknown
  readonly maxPageSize: number
  readonly after?: unknown
  readonly fields?: unknown
  readonly sortBy?: unknown
  readonly archived: boolean
  readonly count?: unknown
  readonly conditions: readonly (Condition | undefined)[]
  /** The condition for `q`, which has limits of its own. */
  readonly words?: Condition | undefined
}

function buildSearch(visibility: Visibility, model: Model, input: RawSearch, errors: string[]): Search {
  const { maxPageSize, count } = input
  if (count !== undefined && count !== 'none')
    errors.push('count must be none, which omits the total: to set the number of records, use limit')
  const offset = parseWholeParameter('offset', input.offset, 0, errors)
  const limit = parseWholeParameter('limit', input.limit, Math.min(DEFAULT_PAGE_RECORDS, maxPageSize), errors)
  const [fields, sortBy] = [input.fields ?? undefined, input.sortBy ?? undefined]
  const selection = fields === undefined ? undefined : parsePageSelection(visibility, model, fields, errors)
  const errorsBefore = errors.length
  const sort = sortBy === undefined ? [] : parseSort(visibility, model, sortBy, errors)
  // A cursor cannot be checked against an invalid order.
  const hasCursor = input.after !== undefined && errors.length === errorsBefore
  const after = hasCursor ? parseCursor(sort, input.after, errors) : undefined
  const conditions = input.conditions.filter((condition) => condition !== undefined)
  const terms = conditions.reduce((sum, condition) => sum + countTerms(condition), 0)
  const values = conditions.reduce((sum, condition) => sum + countListValues(condition), 0)
  if (terms > MAX_TERMS) errors.push(`a search can have at most ${MAX_TERMS} conditions, not ${terms}`)
  if (values > MAX_LIST_VALUES)
    errors.push(`the lists of a search can have at most ${MAX_LIST_VALUES} values in total, not ${values}`)
  const isTooMuch = terms > MAX_TERMS || values > MAX_LIST_VALUES
  const all = isTooMuch ? [] : [...conditions, ...(input.words ? [input.words] : [])]
  const criteria = all.map((each) => bindCondition(visibility, model, each, errors))
  if (errors.length > 0) throw new VersoError('bad-request', errors.slice(0, 20).join('; '))
  const bound = criteria.filter((each) => each !== undefined)
  const hasLists = selection?.entries.some((entry) => entry.field.relation?.isList) === true
  return {
    offset,
    sort,
    after,
    selection,
    archived: input.archived,
    ...(count === undefined ? {} : { uncounted: true }),
    limit: Math.min(limit, hasLists ? Math.ceil(maxPageSize / LIST_PAGE_DIVISOR) : maxPageSize),
    where: bound.length > 1 ? { kind: 'and', criteria: bound } : bound[0],
  }
}

function parseFilterText(
  name: string,
  text: unknown,
  parameters: JsonObject,
  errors: string[],
): Condition | undefined {
  if (text === undefined) return undefined
  if (typeof text !== 'string') {
    errors.push(`${name} must be a single text`)
    return undefined
  }
  try {
    return parseFilter(text, parameters, name)
  } catch (error) {
    // Collects the error, so that the answer lists the other errors of the request, too.
    if (!(error instanceof VersoError)) throw error
    errors.push(error.message)
    return undefined
  }
}

function splitNames(names: unknown): unknown {
  return typeof names === 'string' ? names.split(',').flatMap((name) => name.trim() || []) : names
}

function parseFlag(name: string, input: unknown, errors: string[]): boolean {
  const isSaid = [undefined, null, true, false, 'true', 'false'].some((each) => each === input)
  if (!isSaid) errors.push(`${name} must be true or false`)
  return input === true || input === 'true'
}

/** Accepts whole numbers from 0, also as text. */
export function parseWholeParameter(
  name: string,
  input: unknown,
  defaultValue: number,
  errors: string[],
): number {
  if (input === undefined) return defaultValue
  const isSpelled = typeof input === 'string' && /^\d{1,16}$/.test(input)
  const value = isSpelled ? Number(input) : input
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  errors.push(`${name} must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`)
  return defaultValue
}
