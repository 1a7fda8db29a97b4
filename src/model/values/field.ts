import type { FieldRule, FormatName } from './field-rules.js'
import type { Value, Values } from './value.js'

export type FieldTypeName =
  | 'string'
  | 'text'
  | 'integer'
  | 'long'
  | 'decimal'
  | 'boolean'
  | 'date'
  | 'time'
  | 'datetime'
  | 'uuid'
  | 'enum'
  | 'json'
  | 'binary'
  | RelationTypeName

export type RelationTypeName = 'many-to-one' | 'one-to-one' | 'one-to-many' | 'many-to-many'

/** The kind of column that stores a type. Each dialect maps it to a column type of its engine. */
export type Storage =
  | 'text'
  | 'integer'
  | 'boolean'
  | 'decimal'
  | 'date'
  | 'time'
  | 'datetime'
  | 'uuid'
  | 'json'
  | 'file'
  | 'none'

export interface Choice {
  readonly value: string | number
  readonly title: string
}

/** A field of a checked model. Model files declare it as a `FieldDefinition`. */
export interface Field {
  readonly name: string
  readonly type: FieldTypeName
  readonly title: string
  readonly help: string | undefined
  readonly required: boolean
  readonly unique: boolean
  readonly min: string | number | undefined
  readonly max: string | number | undefined
  readonly minLength: number
  readonly maxLength: number
  /** A non-empty text must match this regular expression as a whole. */
  readonly pattern: FieldRule | undefined
  readonly format: FieldRule<FormatName> | undefined
  readonly precision: number
  readonly scale: number
  readonly default: Value | undefined
  readonly selection: readonly Choice[] | undefined
  /** Write-only. A password is hashed before it is stored. */
  readonly secret: 'hidden' | 'password' | undefined
  readonly computed: ((record: Readonly<Values>) => unknown) | undefined
  /** A system field: only the service sets it, values that a client sends are ignored. */
  readonly isSystem: boolean
  /** The former name of this field; a migration renames its column. */
  readonly renamedFrom: string | undefined
  /** A copy of a record takes over this value. */
  readonly copied: boolean
  /** The service assigns consecutive numbers to this field. */
  readonly sequence: Sequence | undefined
  readonly relation: Relation | undefined
}

/** The options of a field whose definition gives only its type. */
export const FIELD_DEFAULTS: Omit<Field, 'name' | 'type' | 'title'> = {
  help: undefined,
  required: false,
  unique: false,
  min: undefined,
  max: undefined,
  minLength: 0,
  maxLength: 0,
  pattern: undefined,
  format: undefined,
  precision: 0,
  scale: 0,
  default: undefined,
  selection: undefined,
  secret: undefined,
  computed: undefined,
  isSystem: false,
  renamedFrom: undefined,
  copied: true,
  sequence: undefined,
  relation: undefined,
}

export interface Sequence {
  readonly prefix: string
  readonly suffix: string
  /** Minimum number of digits; shorter numbers are padded with zeros. */
  readonly padding: number
  /** The first number. */
  readonly next: number
}

/** The type of the field that `mappedBy` names, by the type of the inverse relation. */
export const MAPPED_BY_TYPES: Readonly<Record<string, string>> = {
  'one-to-one': 'one-to-one',
  'one-to-many': 'many-to-one',
  'many-to-many': 'many-to-many',
}

/** Connects the records of two models. */
export interface Relation {
  /** Name of the related model. */
  readonly target: string
  readonly isList: boolean
  /** The target's field that stores the relation; undefined if this field stores it. */
  readonly mappedBy: string | undefined
  /** The list is part of the record: reads return it and writes replace it. */
  readonly owned: boolean
  /** Sort keys of a list as the definition spells them. The id breaks ties. */
  readonly orderBy?: readonly string[]
}

/** An error in the value of one field. The message continues a sentence that starts with the field's name. */
export class FieldError {
  constructor(readonly message: string) {}
}
