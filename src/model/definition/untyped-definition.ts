// The types of a model of which only the name is known.

/** A definition of which only the name is known. Its records have fields of any value. */
export interface UntypedDefinition {
  readonly name: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** True if only the name of the model is known. */
export type IsUntyped<M extends { readonly fields: object }> = string extends keyof M['fields'] ? true : false

/** A record of a model whose fields are not known. */
export interface AnyRecord {
  readonly id: number
  readonly version: number
  readonly [field: string]: unknown
}
