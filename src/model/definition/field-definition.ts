// The options of fields, in TypeScript or JSON of the same shape.
import type { FormatName } from '../values/field-rules.js'
import type { Json, Value, Values } from '../values/value.js'

type ChoiceDefinition<T> = T | { readonly value: T; readonly title?: string }

interface CommonFieldOptions {
  /** The label for people; derived from the name by default. */
  readonly title?: string
  readonly help?: string
  /** Writes without a value, or with null, are rejected. */
  readonly required?: boolean
  /** The former name of this field. The migration renames its column and keeps its data. */
  readonly renamedFrom?: string
  /** False if a copy of a record does not take over this value. */
  readonly copy?: boolean
}

interface ComputedOptions {
  /** A function of the other fields, or a template such as `{firstName} {lastName}`. Computed on every write and stored. */
  readonly computed?: string | ((record: Readonly<Values>) => Value | undefined)
}

interface UniqueOptions {
  /** No two records have the same value. Any number of records may have null. */
  readonly unique?: boolean
}

interface RangeOptions<T> {
  readonly min?: T
  readonly max?: T
}

type LengthOption = number | { readonly min?: number; readonly max?: number }

/** A rule alone, or with the message for values that break it. The message continues a sentence that begins with the name of the field. */
type RuleOption<T extends string> = T | { readonly value: T; readonly message?: string }

interface TextOptions extends CommonFieldOptions, ComputedOptions {
  /** The maximum number of characters (code points), or minimum and maximum. */
  readonly length?: LengthOption
  /** A regular expression that a non-empty value must match as a whole, such as `[A-Z]{2}\\d{4}`. It has the flag `u`. */
  readonly pattern?: RuleOption<string>
  /** A non-empty value must be an e-mail address, or a URL that begins with http:// or https://. */
  readonly format?: RuleOption<FormatName>
  /** Write-only: never returned. `"password"` is stored as a hash. */
  readonly secret?: boolean | 'password'
  readonly default?: string
}

interface SequenceOptions {
  readonly prefix?: string
  readonly suffix?: string
  /** Minimum number of digits; shorter numbers are padded with zeros. */
  readonly padding?: number
  /** The first number; 1 by default. */
  readonly next?: number
}

interface RelationOptions extends CommonFieldOptions {
  /** Name of the related model. */
  readonly target: string
}

interface ListOrderOptions {
  /** Sort keys of the list: fields of the target such as `['sequence', '-createdOn']`, where `-` is descending. By id by default. */
  readonly orderBy?: readonly string[]
}

export type FieldDefinition =
  | (TextOptions &
      UniqueOptions & {
        readonly type: 'string'
        readonly selection?: readonly ChoiceDefinition<string>[]
        /** The service assigns the next number to each new record. Values that a client sends are ignored. */
        readonly sequence?: SequenceOptions
      })
  | (TextOptions & { readonly type: 'text' })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions & {
        readonly type: 'enum'
        readonly selection: readonly ChoiceDefinition<string>[]
        readonly default?: string
      })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions &
      RangeOptions<number> & {
        readonly type: 'integer' | 'long'
        readonly selection?: readonly ChoiceDefinition<number>[]
        readonly default?: number
      })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions &
      RangeOptions<string | number> & {
        readonly type: 'decimal'
        /** Total number of digits, at most 38; 20 by default. */
        readonly precision?: number
        /** Digits after the decimal point; 2 by default. */
        readonly scale?: number
        readonly default?: string | number
      })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions & { readonly type: 'boolean'; readonly default?: boolean })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions &
      RangeOptions<string> & {
        readonly type: 'date' | 'time' | 'datetime'
        /** A value, or `"now"`. */
        readonly default?: string
      })
  | (CommonFieldOptions &
      ComputedOptions &
      UniqueOptions & { readonly type: 'uuid'; readonly default?: string })
  | (CommonFieldOptions & ComputedOptions & { readonly type: 'json'; readonly default?: Json })
  | (CommonFieldOptions & { readonly type: 'binary' })
  | (RelationOptions & UniqueOptions & { readonly type: 'many-to-one' })
  | (RelationOptions & {
      readonly type: 'one-to-one'
      /** The target's field that stores the relation. This field is then its inverse and read-only. */
      readonly mappedBy?: string
    })
  | (Omit<RelationOptions, 'required'> &
      ListOrderOptions & {
        readonly type: 'one-to-many'
        /** The target's many-to-one field that points back to this model. */
        readonly mappedBy: string
        /** True if the list is part of the record: read, replaced and deleted with it. Otherwise it is a read-only inverse relation. */
        readonly owned?: boolean
      })
  | (Omit<RelationOptions, 'required'> &
      ListOrderOptions & {
        readonly type: 'many-to-many'
        /** The target's many-to-many field that stores the relation. This field is then its inverse and read-only. */
        readonly mappedBy?: string
      })
