// The public face of the client: `verso-records/client`.
export { connect } from './connect.js'
export type { CallOptions } from './call-scope.js'
export type * from './client-types.js'
export type { FileContent, FileDownload, FileRange } from './files.js'
export type { FilterInput, FilterObject } from './filter.js'
export type { Filter } from './types/filter.js'
export type { FieldComparison } from '../model/definition/record-filter.js'
export type { AnyModels, CreateValues, ModelName, ModelTypes, ReadOf, UpdateValues } from './types/schema.js'
export type { SystemModels } from './types/system-models.js'
export type { Conflict, ConflictingField } from './types/write.js'
export type { ClientCredentials } from './session.js'
export type { ConnectOptions } from './transport.js'
export type { Account, Change, WireRecord } from '../wire.js'
export {
  BadRequestError,
  BusyError,
  ConflictError,
  DuplicateError,
  ForbiddenError,
  GoneError,
  InvalidError,
  NetworkError,
  NotFoundError,
  RequestError,
  StillReferencedError,
  TimeoutError,
  TooLargeError,
  UnauthenticatedError,
  type FailureDetails,
  type FieldSides,
} from './errors.js'
