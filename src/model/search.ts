import { Refusal } from '../errors.js'

const DEFAULT_LIMIT = 40
export const MAX_LIMIT = 1_000

export interface Sort {
  readonly field: string
  readonly descending: boolean
}

/** What a find asks for. Nothing past this value sees a query string. */
export interface Search {
  readonly offset: number
  readonly limit: number
  /** `id` comes last, always: pages never overlap. */
  readonly sort: readonly Sort[]
  /** Whether archived records are shown too. */
  readonly archived: boolean
}

export interface Paging {
  readonly offset?: unknown
  readonly limit?: unknown
  readonly archived?: unknown
}

/** A larger limit is lowered to the greatest; anything but whole numbers from 0 is refused, all faults at once. */
export function searchFrom(paging: Paging, maxLimit: number): Search {
  const faults: string[] = []
  const offset = count('offset', paging.offset, 0, faults)
  const limit = count('limit', paging.limit, Math.min(DEFAULT_LIMIT, maxLimit), faults)
  if (faults.length > 0) throw new Refusal('bad-request', faults.join('; '))
  const archived = paging.archived === true || paging.archived === 'true'
  return { offset, limit: Math.min(limit, maxLimit), sort: [], archived }
}

function count(name: string, input: unknown, otherwise: number, faults: string[]): number {
  if (input === undefined) return otherwise
  const isSpelled = typeof input === 'string' && /^\d{1,16}$/.test(input)
  const value = isSpelled ? Number(input) : input
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  faults.push(`${name} must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`)
  return otherwise
}
