// The types of all models of a service. They come from definitions (`typeof models`) or from the interface that `verso types` writes.
import type { WireRecord } from '../wire.js'
import type {
  CreateOf,
  FileFieldOf,
  ListFieldOf,
  RecordOf,
  Reference,
  ReferenceOf,
  ToManyOf,
  ToOneOf,
  UpdateOf,
  UserReference,
} from '../model/definition/record-types.js'
import type { ModelDefinition } from '../model/definition/define-model.js'

/** The types of one model. `verso types` writes one for each model. */
export interface ModelTypes {
  /** A full record. */
  readonly read: object
  /** The values of a new record. */
  readonly create: object
  /** The values of an update. */
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
}

/** The models of a client without types: every name is a model, and every field has an unknown value. */
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
  }
}

/** A definition, checked only as far as needed to tell it from other exports of a module. */
interface NamedDefinition {
  readonly name: string
  readonly fields: object
}

/** Users inside other records: their names. */
interface UserTypes {
  readonly read: { readonly id: number; readonly version: number; readonly name: string | null }
  readonly create: never
  readonly update: never
  readonly reference: UserReference
  readonly list: 'name'
  readonly one: unknown
  readonly many: unknown
  readonly files: never
}

type NameOf<S, K extends keyof S> = S[K] extends NamedDefinition
  ? S[K]['name']
  : S[K] extends { readonly read: object }
    ? K
    : never

type ReferencesOf<S> = {
  readonly [K in keyof S as NameOf<S, K>]: S[K] extends ModelDefinition ? ReferenceOf<S[K]> : never
}

type TypesOfDefinition<M extends ModelDefinition, References> = {
  readonly read: RecordOf<M, References>
  readonly create: CreateOf<M>
  readonly update: UpdateOf<M>
  readonly reference: ReferenceOf<M>
  readonly list: ListFieldOf<M>
  readonly one: ToOneOf<M>
  readonly many: ToManyOf<M>
  readonly files: FileFieldOf<M>
}

/** The types of the models by name. A property is only evaluated when a program uses its model. */
export type SchemaOf<S> = {
  readonly [K in keyof S as NameOf<S, K>]: S[K] extends ModelDefinition
    ? TypesOfDefinition<S[K], ReferencesOf<S>>
    : S[K]
}

/** The names of the models. */
export type ModelName<S> = keyof SchemaOf<S> & string

/** The types of one model; those of users if the models do not include them. */
export type TypesOf<S, N> = N extends keyof SchemaOf<S>
  ? SchemaOf<S>[N]
  : N extends 'verso.auth.User'
    ? UserTypes
    : never

/** A full record of the model. */
export type ReadOf<S, N> = TypesOf<S, N> extends { readonly read: infer T } ? T : never
/** The values of a new record of the model. */
export type CreateValues<S, N> = TypesOf<S, N> extends { readonly create: infer T } ? T : never
/** The values of an update of the model. */
export type UpdateValues<S, N> = TypesOf<S, N> extends { readonly update: infer T } ? T : never
/** The names of the fields of the model that hold a file. */
export type FileField<S, N> = TypesOf<S, N> extends { readonly files: infer T extends string } ? T : never
