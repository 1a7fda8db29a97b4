// Finds as many records as asked for. The service lowers a `limit` that is larger than its page size, so one request may not be enough.
import type { CallOptions } from '../client/call-scope.js'
import type { Client } from '../client/client-types.js'
import type { WireRecord } from '../wire.js'

/** A find of a model that is only known at run time. */
export interface AnyQuery {
  readonly fields?: readonly string[] | undefined
  /** A condition in the filter language. */
  readonly filter?: string | undefined
  readonly sortBy?: readonly string[] | undefined
  readonly q?: string | undefined
  readonly archived?: boolean | undefined
  readonly asOf?: string | undefined
  readonly count?: 'none' | undefined
  readonly offset?: number | undefined
  readonly limit?: number | undefined
}

export interface FoundRecords {
  readonly data: readonly WireRecord[]
  /** Absent with `count: 'none'`. */
  readonly total?: number | undefined
  readonly hasNext: boolean
}

/** Finds records from `offset` on, at most `limit` of them. Without a limit, the service decides how many. */
export async function findRecords(
  client: Client,
  model: string,
  query: AnyQuery,
  options: CallOptions,
): Promise<FoundRecords> {
  const first = await client.model(model).find(query, options)
  const data = [...first.data]
  let { next } = first
  while (next && query.limit !== undefined && data.length < query.limit) {
    // A cursor neither repeats nor skips a record when others write. The total is already known.
    const rest = { ...query, ...next, limit: query.limit - data.length, count: 'none' as const }
    const page = await client.model(model).find(rest, options)
    data.push(...page.data)
    next = page.next
  }
  return { data, total: first.total, hasNext: next !== undefined }
}
