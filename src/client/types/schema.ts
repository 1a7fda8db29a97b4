// The types of all models of a service. They come from definitions (`typeof models`), or from the interface that `verso types` writes.
import type { MarkedExtension } from '../../model/definition/extend-model.js'
import type {
  AnyDefinition,
  CreateOf,
  FileFieldOf,
  JsonFieldOf,
  ListFieldOf,
  RecordOf,
  Reference,
  ReferenceOf,
  ToManyOf,
  ToOneOf,
  UpdateOf,
  UserReference,
} from '../../model/definition/record-types.js'
import type { WireRecord } from '../../wire.js'
import type { SystemModels } from './system-models.js'

/** The types of one model. `verso types` writes one for each model. */
export interface ModelTypes {
  /** A full record. */
  readonly read: object
  /** The values of a new record; `never` if clients cannot create one. */
  readonly create: object
  /** The values of an update; `never` if clients cannot change a record. */
  readonly update: object
  /** A related record of this model in an answer. */
  readonly reference: object
  /** The names of the fields that a find returns by default, besides `id` and `version`. */
  readonly list: string
  /** The references, inverse ones included, with the names of their targets. */
  readonly one: object
  /** The lists, inverse ones included, with the names of their targets. */
  readonly many: object
  /** The names of the fields that hold a file. */
  readonly files: string
  /** The names of the fields that hold JSON. */
  readonly json: string
}

/** The models of a client without types: every name is a model, and the values of its fields are unknown. */
export interface AnyModels {
  readonly [model: string]: {
    readonly read: WireRecord
    readonly create: { readonly [field: string]: unknown }
    readonly update: { readonly [field: string]: unknown }
    readonly reference: Reference
    readonly list: string
    readonly one: { readonly [field: string]: string }
    readonly many: { readonly [field: string]: string }
    readonly files: string
    readonly json: never
  }
}

/** Users for somebody who may not read them: as related records they have a name. */
interface NamedUser {
  readonly read: { readonly id: number; readonly version: number; readonly name: string | null }
  readonly create: never
  readonly update: never
  readonly reference: UserReference
  readonly list: 'name'
  readonly one: unknown
  readonly many: unknown
  readonly files: never
  readonly json: never
}

/** The name of a model; never for other exports of a module. */
type NameOf<M> = M extends MarkedExtension ? never : M extends AnyDefinition ? M['name'] : never

type ExtensionsOf<S> = Extract<S[keyof S], MarkedExtension>

type Intersect<Union> = (Union extends unknown ? (member: Union) => void : never) extends (
  member: infer T,
) => void
  ? T
  : never

type OptionOf<Option extends string, M, E> = [E] extends [{ readonly [K in Option]: infer V }]
  ? { readonly [K in Option]: V }
  : M extends { readonly [K in Option]: infer V }
    ? { readonly [K in Option]: V }
    : unknown

type FieldsOf<E> = E extends { readonly fields: infer Fields } ? Fields : object
type FieldNameOf<E> = E extends { readonly fields: infer Fields } ? keyof Fields : never

interface ExtendedDefinition<M extends AnyDefinition, E> {
  readonly name: M['name']
  readonly fields: Omit<M['fields'], FieldNameOf<E>> & Intersect<FieldsOf<E>>
}

type WithExtensions<M extends AnyDefinition, E> = [E] extends [never]
  ? M
  : ExtendedDefinition<M, E> &
      OptionOf<'archived', M, unknown> &
      OptionOf<'nameField', M, E> &
      OptionOf<'listFields', M, E>

/** A definition with the extensions of its model. */
type DefinitionIn<S, K extends keyof S> = S[K] extends AnyDefinition
  ? WithExtensions<S[K], Extract<ExtensionsOf<S>, { readonly name: S[K]['name'] }>>
  : never

type ReferencesOf<S> = {
  readonly [K in keyof S as NameOf<S[K]>]: ReferenceOf<DefinitionIn<S, K>>
} & { readonly [N in keyof SystemModels]: SystemModels[N]['reference'] }

/** A record of the model that the module exports as K. */
export type ModelRecord<S, K extends keyof S> = {
  [F in keyof RecordOf<DefinitionIn<S, K>, ReferencesOf<S>>]: RecordOf<DefinitionIn<S, K>, ReferencesOf<S>>[F]
}
/** The values of a new record of the model that the module exports as K. */
export type ModelCreate<S, K extends keyof S> = {
  [F in keyof CreateOf<DefinitionIn<S, K>>]: CreateOf<DefinitionIn<S, K>>[F]
}
/** The values of an update of the model that the module exports as K. */
export type ModelUpdate<S, K extends keyof S> = {
  [F in keyof UpdateOf<DefinitionIn<S, K>>]: UpdateOf<DefinitionIn<S, K>>[F]
}

interface InferredTypes<S, K extends keyof S> {
  readonly read: ModelRecord<S, K>
  readonly create: ModelCreate<S, K>
  readonly update: ModelUpdate<S, K>
  readonly reference: ReferenceOf<DefinitionIn<S, K>>
  readonly list: ListFieldOf<DefinitionIn<S, K>>
  readonly one: ToOneOf<DefinitionIn<S, K>>
  readonly many: ToManyOf<DefinitionIn<S, K>>
  readonly files: FileFieldOf<DefinitionIn<S, K>>
  readonly json: JsonFieldOf<DefinitionIn<S, K>>
}

/** The compiler evaluates a property only if a program uses its model. */
type InferredModels<S> = { readonly [K in keyof S as NameOf<S[K]>]: InferredTypes<S, K> } & SystemModels

/** The types of the models by name. */
export type SchemaOf<S> = S[keyof S] extends { readonly read: object } ? S : InferredModels<S>

/** The names of the models. */
export type ModelName<S> = SchemaOf<S> extends infer T ? keyof T & string : never

/** The types of one model. A lookup by name is cheaper than `keyof`, which lists all models. */
export type TypesOf<S, N> = string extends keyof S
  ? S[keyof S]
  : SchemaOf<S> extends { readonly [K in N & string]: infer T }
    ? T
    : N extends 'verso.auth.User'
      ? NamedUser
      : never

/** A full record of the model. */
export type ReadOf<S, N> = TypesOf<S, N> extends { readonly read: infer T } ? T : never
/** The values of a new record of the model. */
export type CreateValues<S, N> = TypesOf<S, N> extends { readonly create: infer T } ? T : never
/** The values of an update of the model. */
export type UpdateValues<S, N> = TypesOf<S, N> extends { readonly update: infer T } ? T : never
/** The names of the fields of the model that hold a file. */
export type FileFieldName<S, N> = TypesOf<S, N> extends { readonly files: infer T extends string } ? T : never
