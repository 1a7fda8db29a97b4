// The public API of the package.
export { VersoError, ConfigError, type ErrorDetails, type ErrorKind } from './errors.js'
export { defineModel, type ModelDefinition } from './model/definition/define-model.js'
export type { FieldDefinition } from './model/definition/field-definition.js'
export type {
  CreateOf,
  InputOf,
  RecordOf,
  Reference,
  RelatedRecordInput,
  StateOf,
  UpdateOf,
  UserReference,
} from './model/definition/record-types.js'
export type { AnyRecord } from './model/definition/untyped-definition.js'
export { defineHooks, extendModel, type ModelExtension } from './model/definition/extend-model.js'
export type {
  CommitCall,
  CommitHook,
  FieldMessages,
  HooksOf,
  UserSummary,
  PendingSaveCall,
  RemoveCall,
  SaveCall,
} from './model/definition/hooks.js'
export type { FieldComparison, RecordConditions, RecordFilter } from './model/definition/record-filter.js'
export type {
  HistoryRange,
  ModelRecords,
  RecordChange,
  SelectedPage,
  RecordQuery,
  RecordsHandle,
  RemoveTarget,
  SelectedRecordOf,
  TransactionModelRecords,
  TransactionRecords,
  VersionedUpdate,
} from './model/definition/typed-records.js'
export type { ModelSource } from './model/catalog/catalog.js'
export type { FindQuery, SearchRequest } from './model/query/search.js'
export type { FieldSelection } from './model/query/selection.js'
export type { Json, Value, Values } from './model/values/value.js'
export type { FieldMerge, Merge, Verdict } from './model/write/merge.js'
export type {
  Account,
  BatchOptions,
  ByteRange,
  Change,
  ConflictData,
  Download,
  DownloadOptions,
  MassUpdate,
  Page,
  Records,
  RemovedRecord,
  RemoveOptions,
  SaveOptions,
  SearchOptions,
  Uncounted,
  UncountedPage,
  UpdateOptions,
  Upload,
  WireRecord,
  WriteOptions,
  WriteResult,
} from './wire.js'
export { isConflict, type VersionConflict } from './embedding/version-conflict.js'
export type { UserIdentity } from './service/context/identity.js'
export type { Clock } from './service/context/app.js'
export type { NewUser } from './service/auth/accounts.js'
export type { Settings } from './service/context/settings.js'
export type { Credentials } from './service/auth/throttle.js'
export type { LoginRequest, LoginResult } from './service/auth/sessions.js'
export { every, type Schedule, type ScheduleCall, type ScheduledWork } from './service/background/schedule.js'
export type { FailedHook } from './service/background/commit-status.js'
export {
  defineRoutes,
  type RouteAccess,
  type RoutePlugin,
  type VersoRequest,
} from './http/ext/route-plugin.js'
export type { HttpSettings } from './http/settings.js'
export { createTestVerso, createVerso } from './embedding/create-verso.js'
export type {
  DefinedExtension,
  ModelInput,
  TestVerso,
  Verso,
  VersoOptions,
  VersoRecords,
} from './embedding/verso.js'
