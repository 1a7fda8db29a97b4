// The input of a field, by its kind: all kinds except lists that are part of the record, whose lines have these inputs, too.
import type { ComponentType } from 'react'
import type { FieldInfo, FieldKind } from '../service/model-info.js'
import { BooleanInput, ChoiceInput } from './choice-inputs.js'
import { DateInput, DatetimeInput, TimeInput } from './date-inputs.js'
import type { FieldInputProps } from './field-props.js'
import { FileInput } from './file-input.js'
import { InverseList } from './inverse-list.js'
import { NumberInput } from './number-input.js'
import { ReadonlyField } from './readonly-field.js'
import { LinksInput, ReferenceInput } from './relation-inputs.js'
import { JsonInput, SecretInput, StringInput, UuidInput } from './text-inputs.js'

const INPUTS: Readonly<Record<Exclude<FieldKind, 'owned-list'>, ComponentType<FieldInputProps>>> = {
  string: StringInput,
  text: StringInput,
  integer: NumberInput,
  long: NumberInput,
  decimal: NumberInput,
  boolean: BooleanInput,
  date: DateInput,
  time: TimeInput,
  datetime: DatetimeInput,
  uuid: UuidInput,
  enum: ChoiceInput,
  json: JsonInput,
  file: FileInput,
  reference: ReferenceInput,
  links: LinksInput,
  inverse: InverseList,
}

function findInput({
  kind,
  choices,
  isReadonly,
  isComputed,
  isSecret,
}: FieldInfo): ComponentType<FieldInputProps> {
  if (kind === 'inverse') return InverseList
  if (isReadonly || isComputed || kind === 'owned-list') return ReadonlyField
  if (isSecret) return SecretInput
  return choices ? ChoiceInput : INPUTS[kind]
}

export function ValueInput(props: FieldInputProps) {
  const Input = findInput(props.field)
  return <Input {...props} />
}
