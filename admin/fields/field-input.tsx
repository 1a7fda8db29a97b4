// The input of a field of any kind.
import type { FieldInputProps } from './field-props.js'
import { OwnedListInput } from './owned-list-input.js'
import { ValueInput } from './value-input.js'

export function FieldInput(props: FieldInputProps) {
  const { kind, isReadonly } = props.field
  return kind === 'owned-list' && !isReadonly ? <OwnedListInput {...props} /> : <ValueInput {...props} />
}
