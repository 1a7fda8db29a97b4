// How requests are read and refusals answered: as the contract has it, or as existing clients of the protocol expect it.
import type { Model } from '../../model/definition/model.js'
import type { QueryParameterSet } from '../../model/query/parameters.js'
import type { SearchRequest } from '../../model/query/search.js'
import type { FieldSelection } from '../../model/query/selection.js'
import type { Principal } from '../../service/context/principal.js'
import type { SearchOptions } from '../../wire.js'

export const COMPATIBILITIES = ['none', 'axelor'] as const
export type Compatibility = (typeof COMPATIBILITIES)[number]

export interface Habits {
  /** What was sent for a record. */
  readonly record: (by: Principal, model: Model, data: unknown) => unknown
  /** What an answer is to show of a record. */
  readonly wanted: (by: Principal, model: Model, wanted: FieldSelection) => FieldSelection
  /** What a query string says. Parameters that are left and unknown are refused. */
  readonly parameters: <T extends object>(query: T, parameters: QueryParameterSet) => T
  readonly search: (by: Principal, model: Model, request: unknown) => Asked
  /** The binary field that an upload names. */
  readonly uploadField: (model: Model, named: string | undefined) => string | undefined
  /** A create of a record that has an id is an update. */
  readonly createsSave: boolean
  /** What is refused about records is an answer like others, with a status of its own: HTTP 200 and -1. */
  readonly refusalsAreAnswers: boolean
}

export interface Asked {
  readonly request: SearchRequest | undefined
  readonly options?: SearchOptions
}

export const CONTRACT: Habits = {
  record: (_by, _model, data) => data,
  wanted: (_by, _model, wanted) => wanted,
  parameters: (query) => query,
  search: (_by, _model, request) => ({ request: request as SearchRequest | undefined }),
  uploadField: (_model, named) => named,
  createsSave: false,
  refusalsAreAnswers: false,
}
