// How requests are read and refusals answered: as the contract has it, or as existing clients of the protocol expect it.
import type { Model } from '../../model/definition/model.js'
import type { QueryParameterSet } from '../../model/query/parameters.js'
import type { SearchRequest } from '../../model/query/search.js'
import type { FieldSelection } from '../../model/query/selection.js'
import type { Principal } from '../../service/context/principal.js'
import type { SearchOptions } from '../../wire.js'

export const COMPATIBILITIES = ['none', 'axelor'] as const
export type Compatibility = (typeof COMPATIBILITIES)[number]

export interface Protocol {
  /** What was sent for a record. */
  readonly convertRecord: (principal: Principal, model: Model, data: unknown) => unknown
  /** What an answer is to show of a record. */
  readonly convertFields: (principal: Principal, model: Model, fields: FieldSelection) => FieldSelection
  /** What a query string says. Parameters that are left and unknown are refused. */
  readonly filterParameters: <T extends object>(query: T, parameters: QueryParameterSet) => T
  readonly convertSearch: (principal: Principal, model: Model, request: unknown) => ProtocolSearch
  /** The binary field that an upload names. */
  readonly chooseUploadField: (model: Model, fieldName: string | undefined) => string | undefined
  /** A create of a record that has an id is an update. */
  readonly createMayUpdate: boolean
  /** What is refused about records is an answer like others, with a status of its own: HTTP 200 and -1. */
  readonly sendsErrorsAs200: boolean
}

export interface ProtocolSearch {
  readonly request: SearchRequest | undefined
  readonly options?: SearchOptions
}

export const STRICT: Protocol = {
  convertRecord: (_principal, _model, data) => data,
  convertFields: (_principal, _model, fields) => fields,
  filterParameters: (query) => query,
  convertSearch: (_principal, _model, request) => ({ request: request as SearchRequest | undefined }),
  chooseUploadField: (_model, named) => named,
  createMayUpdate: false,
  sendsErrorsAs200: false,
}
