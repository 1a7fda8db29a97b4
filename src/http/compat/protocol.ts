// A protocol converts requests and decides how errors are sent: strictly as documented, or as existing clients expect it.
import type { Model } from '../../model/definition/model.js'
import type { QueryParameterSet } from '../../model/query/parameters.js'
import type { SearchRequest } from '../../model/query/search.js'
import type { FieldSelection } from '../../model/query/selection.js'
import type { Principal } from '../../service/context/principal.js'
import type { SearchOptions } from '../../wire.js'

export const COMPATIBILITIES = ['none', 'axelor'] as const
export type Compatibility = (typeof COMPATIBILITIES)[number]

export interface Protocol {
  /** Converts the values that a client sent for a record. */
  readonly convertRecord: (principal: Principal, model: Model, data: unknown) => unknown
  /** Converts the selection of the fields that the response contains. */
  readonly convertFields: (principal: Principal, model: Model, fields: FieldSelection) => FieldSelection
  /** Removes query parameters that the protocol ignores. The route rejects unknown parameters that remain. */
  readonly filterParameters: <T extends object>(query: T, parameters: QueryParameterSet) => T
  readonly convertSearch: (principal: Principal, model: Model, request: unknown) => ProtocolSearch
  /** Chooses the binary field that receives an upload. */
  readonly chooseUploadField: (model: Model, fieldName: string | undefined) => string | undefined
  /** A create with an id is an update. */
  readonly createMayUpdate: boolean
  /** Sends errors about records as HTTP 200 with the body status -1. */
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
  chooseUploadField: (_model, fieldName) => fieldName,
  createMayUpdate: false,
  sendsErrorsAs200: false,
}
