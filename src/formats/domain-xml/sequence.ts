import type { XmlAttributes } from './declarations.js'

const MAX_DOMAIN_SEQUENCE_PADDING = 15

/** Converts a `<sequence>` to the option of a field. Reports attributes that it cannot convert. */
export function convertSequence(
  sequence: XmlAttributes,
  report: (detail: string) => void,
): Readonly<Record<string, unknown>> {
  const number = (name: string, usual: number): number => {
    const text = sequence.get(name)
    if (text === undefined || text.trim() === '') return usual
    if (/^\d{1,15}$/.test(text.trim())) return Number(text)
    report(`${name} ${text}`)
    return usual
  }
  const [padding, next, increment] = [number('padding', 0), number('initial', 1), number('increment', 1)]
  if (increment !== 1) report(`its numbers follow each other by 1, not by ${increment}`)
  if (padding > MAX_DOMAIN_SEQUENCE_PADDING)
    report(`it is padded to ${MAX_DOMAIN_SEQUENCE_PADDING} digits, not to ${padding}`)
  const [prefix = '', suffix = ''] = [sequence.get('prefix'), sequence.get('suffix')]
  return {
    ...(prefix === '' ? {} : { prefix }),
    ...(suffix === '' ? {} : { suffix }),
    ...(padding === 0 ? {} : { padding: Math.min(padding, MAX_DOMAIN_SEQUENCE_PADDING) }),
    ...(next === 1 ? {} : { next }),
  }
}
