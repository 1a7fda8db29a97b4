// Keeps what a person types beside the value that it means, so that an input never rewrites itself under the cursor.
import { useState } from 'react'

interface TypedTextOptions {
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  readonly parse: (text: string) => unknown
  readonly format: (value: unknown) => string
}

export interface TypedText {
  /** The typed text while it means the value; otherwise the text of the value, which then came from elsewhere. */
  readonly text: string
  readonly isFocused: boolean
  readonly change: (text: string) => void
  readonly focus: () => void
  /** Shows the value as it was understood. */
  readonly blur: () => void
}

export function useTypedText({ value, onChange, parse, format }: TypedTextOptions): TypedText {
  const [typed, setTyped] = useState<string>()
  const [isFocused, setFocused] = useState(false)
  return {
    text: typed !== undefined && isSame(parse(typed), value) ? typed : format(value),
    isFocused,
    change: (text) => {
      setTyped(text)
      onChange(parse(text))
    },
    focus: () => setFocused(true),
    blur: () => {
      setFocused(false)
      setTyped(undefined)
    },
  }
}

function isSame(left: unknown, right: unknown): boolean {
  return Object.is(left, right) || JSON.stringify(left) === JSON.stringify(right)
}
