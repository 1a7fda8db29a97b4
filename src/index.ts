// The package face.
export { Refusal, StartFaults, type RefusalKind } from './errors.js'
export {
  defineModel,
  type FieldDefinition,
  type InputOf,
  type ModelDefinition,
  type NeighbourInput,
  type RecordOf,
  type Reference,
  type UserReference,
} from './model/definition.js'
export { extendModel, type ModelExtension } from './model/extension.js'
export type { Source } from './model/catalog.js'
export type { Query, SearchRequest } from './model/search.js'
export type { Wanted } from './model/selection.js'
export type { Json, Value, Values } from './model/value.js'
export type { FieldMerge, Merge, Verdict } from './model/merge.js'
export type {
  Account,
  BatchOptions,
  Change,
  ConflictData,
  Download,
  MassUpdate,
  Page,
  Records,
  Removed,
  RemoveOptions,
  SaveOptions,
  SearchOptions,
  UpdateOptions,
  Upload,
  WireRecord,
  WriteOptions,
  Written,
} from './wire.js'
export type { Actor } from './service/actor.js'
export type { App, Clock } from './service/app.js'
export { createApp, type AppOptions } from './service/create-app.js'
export { authenticateKey } from './service/accounts/key-logins.js'
export { recordsFor } from './service/records.js'
export type { Settings } from './service/settings.js'
export type { Credentials } from './service/accounts/password-proof.js'
export { authenticate, login, logout, type LoggedIn } from './service/accounts/sessions.js'
export { createServer, type Server, type ServerOptions } from './http/server.js'
export { DEFAULT_HTTP_SETTINGS, type HttpSettings } from './http/settings.js'
