// Turns the parameters of react-admin's lists into a query of the client.
import { isJsonObject } from '../client/answer.js'
import { formatFilter, isFilterGroup, isFilterOperator } from '../client/filter.js'
import { toId, type AdminValues } from './changes.js'
import type { AnyQuery } from './find-pages.js'

/** The keys of `meta` in a call. */
export interface ProviderMeta {
  /** The fields of the response, such as `['fullName', 'company.name']`. By default a list has the list fields of the model. */
  readonly fields?: readonly string[]
  /** A further condition, in the filter language or as a filter object of the client. */
  readonly filter?: string | Readonly<Record<string, unknown>>
  /** Includes archived records. */
  readonly archived?: boolean
  /** A time: the list or the record as it was then. */
  readonly asOf?: string
  /** Leaves out the total, which the service need not count then. */
  readonly count?: 'none'
  /** For updateMany and deleteMany: the versions of the records by id. The call is rejected if one of them has changed. */
  readonly versions?: Readonly<Record<string, number>>
  /** For writes: repeats an earlier write, which takes effect at most once. */
  readonly idempotencyKey?: string
}

/** The parameters of getList and getManyReference. */
export interface ListParams {
  readonly pagination?: { readonly page: number; readonly perPage: number } | undefined
  readonly sort?: { readonly field: string; readonly order: string } | undefined
  readonly filter?: unknown
  readonly meta?: unknown
  readonly signal?: AbortSignal | undefined
  /** The field that refers to the record `id`. */
  readonly target?: string
  readonly id?: unknown
}

export function readMeta(meta: unknown): ProviderMeta {
  return isJsonObject(meta) ? meta : {}
}

export function buildQuery({ pagination, sort, filter, meta, target, id }: ListParams): AnyQuery {
  const { fields, archived, asOf, count, filter: further } = readMeta(meta)
  const { q, ...conditions } = isJsonObject(filter) ? filter : {}
  const parts = [
    flattenConditions(conditions),
    further,
    target === undefined ? undefined : { [target]: toId(id) },
  ]
  const page = pagination
    ? { offset: (pagination.page - 1) * pagination.perPage, limit: pagination.perPage }
    : {}
  return {
    fields,
    archived,
    asOf,
    count,
    ...page,
    filter: joinFilters(parts),
    q: typeof q === 'string' && q !== '' ? q : undefined,
    sortBy: sort?.field ? [`${sort.order === 'DESC' ? '-' : ''}${sort.field}`] : undefined,
  }
}

/** `{ company: { id: 5 } }` becomes `{ 'company.id': 5 }`: an input with the source `company.id` makes nested objects. */
function flattenConditions(conditions: AdminValues, path = ''): AdminValues {
  const entries = Object.entries(conditions).flatMap(([key, value]): (readonly [string, unknown])[] => {
    if (value === undefined) return []
    const isPath =
      isJsonObject(value) &&
      !(value instanceof Date) &&
      !Object.keys(value).some((each) => isFilterOperator(each))
    if (isPath && !(path === '' && isFilterGroup(key)))
      return Object.entries(flattenConditions(value, `${path}${key}.`))
    return [[`${path}${key}`, value]]
  })
  return Object.fromEntries(entries)
}

function joinFilters(parts: readonly (string | AdminValues | undefined)[]): string | undefined {
  const texts = parts
    .map((part) => (typeof part === 'string' ? part : part && formatFilter(part)))
    .filter((text) => text !== undefined && text.trim() !== '')
  return texts.length > 1 ? texts.map((text) => `(${text})`).join(' and ') : texts[0]
}
