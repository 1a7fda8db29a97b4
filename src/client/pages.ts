// Requests for pages of records, and the pages that come back.
import type { NextPage } from '../wire.js'
import { isJsonObject, type JsonAnswer } from './answer.js'
import type { FilterInput } from './filter.js'
import { formatFilter } from './filter.js'
import type { QueryValues } from './transport.js'

/** Parameters of a find, whatever the model. */
export interface LooseFindQuery {
  readonly fields?: string | readonly string[] | undefined
  readonly filter?: FilterInput | undefined
  readonly sortBy?: string | readonly string[] | undefined
  readonly q?: string | undefined
  readonly offset?: number | undefined
  readonly limit?: number | undefined
  readonly after?: string | undefined
  readonly archived?: boolean | undefined
  readonly asOf?: string | undefined
  readonly count?: 'none' | undefined
}

/** Parameters of a search, whatever the model. */
export interface LooseSearchQuery {
  readonly fields?: readonly string[] | undefined
  readonly sortBy?: readonly string[] | undefined
  readonly offset?: number | undefined
  readonly limit?: number | undefined
  readonly filter?: FilterInput | undefined
  readonly data?: Readonly<Record<string, unknown>> | undefined
}

export interface LoosePage {
  readonly data: readonly unknown[]
  readonly offset: number
  readonly total?: number | undefined
  readonly seq: number
  readonly next?: NextPage | undefined
}

export function toFindParameters(query: LooseFindQuery): QueryValues {
  const { fields, sortBy, filter, ...rest } = query
  return { ...rest, fields: joinNames(fields), sortBy: joinNames(sortBy), filter: formatFilter(filter) }
}

export function toSearchBody(query: LooseSearchQuery): object {
  const { filter, data, ...rest } = query
  const text = formatFilter(filter)
  if (text === undefined) return { ...rest, data }
  const { _domain: domain } = data ?? {}
  const both = typeof domain === 'string' ? `(${domain}) and (${text})` : text
  return { ...rest, data: { ...data, _domain: both } }
}

export function toRecordPage({ body, headers }: JsonAnswer): LoosePage {
  const { data, offset, total } = isJsonObject(body) ? body : {}
  const records: readonly unknown[] = Array.isArray(data) ? data : []
  const first = typeof offset === 'number' ? offset : 0
  const link = headers.get('link')
  const next = link === null ? guessNext(first + records.length, total, records) : parseNextLink(link)
  // The link of a long query has no room for the cursor.
  const after = next?.after ?? headers.get('x-next-after') ?? undefined
  return {
    data: records,
    offset: first,
    ...(typeof total === 'number' ? { total } : {}),
    seq: Number(headers.get('x-commit-seq') ?? 0),
    ...(next ? { next: { ...next, ...(after === undefined ? {} : { after }) } } : {}),
  }
}

/** Reads the parameters of `<…>; rel="next"`. */
function parseNextLink(link: string): NextPage | undefined {
  const target = /<([^>]*)>;\s*rel="?next\b/.exec(link)?.[1]
  if (target === undefined) return undefined
  const parameters = new URLSearchParams(target.slice(target.indexOf('?')))
  const after = parameters.get('after')
  return { offset: Number(parameters.get('offset')), ...(after === null ? {} : { after }) }
}

/** A search has no links, and neither has a page whose links would be too long. Without a total, the last page is the one without records. */
function guessNext(offset: number, total: unknown, records: readonly unknown[]): NextPage | undefined {
  if (records.length === 0 || (typeof total === 'number' && offset >= total)) return undefined
  return { offset }
}

function joinNames(names: string | readonly string[] | undefined): string | undefined {
  return typeof names === 'object' ? names.join(',') : names
}
