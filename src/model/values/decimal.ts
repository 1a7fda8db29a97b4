// Exact decimals are texts with exactly `scale` digits after the decimal point. They never pass through binary floating point.

export const MAX_PRECISION = 38
const MAX_DECIMAL_CHARACTERS = 100
const EXACT_NUMBER_DIGITS = 15

export type DecimalResult = { readonly text: string } | { readonly error: string }

/** Converts a client's number or text to the canonical text, or returns an error message. */
export function parseDecimal(input: unknown, precision: number, scale: number): DecimalResult {
  const spelled = toDecimalText(input)
  if ('error' in spelled) return spelled
  const match = /^([+-]?)(\d+)(?:\.(\d+))?$/.exec(spelled.text)
  if (!match) return { error: 'must be a decimal number such as "12.50"' }
  const [, sign, integer = '', fraction = ''] = match
  if (fraction.length > scale) return { error: `must have at most ${scale} digits after the decimal point` }
  const digits = integer.replace(/^0+/, '')
  if (digits.length > precision - scale) {
    return { error: `must have at most ${precision - scale} digits before the decimal point` }
  }
  const padded = fraction.padEnd(scale, '0')
  const text = (digits === '' ? '0' : digits) + (scale > 0 ? `.${padded}` : '')
  return { text: sign === '-' && /[1-9]/.test(text) ? `-${text}` : text }
}

function toDecimalText(input: unknown): DecimalResult {
  if (typeof input === 'string') {
    return input.length > MAX_DECIMAL_CHARACTERS
      ? { error: `is too long: at most ${MAX_DECIMAL_CHARACTERS} characters` }
      : { text: input }
  }
  if (typeof input !== 'number' || !Number.isFinite(input))
    return { error: 'must be a number, or a number as text' }
  return numberToDecimalText(input)
}

/** A JSON number was parsed as binary floating point, so this accepts it only if no digit can have been lost. */
function numberToDecimalText(input: number): DecimalResult {
  const inexact = { error: 'has more digits than a JSON number can store exactly: send it as text' }
  if (Math.abs(input) >= 10 ** EXACT_NUMBER_DIGITS) return inexact
  const [mantissa = '', exponent] = String(input).split('e')
  const digits = mantissa.replace(/[-.]/g, '').replace(/^0+/, '').replace(/0+$/, '')
  if (!Number.isInteger(input) && digits.length > EXACT_NUMBER_DIGITS) return inexact
  if (exponent === undefined) return { text: mantissa }
  // The exponent is negative: the check above rejected large numbers.
  const zeros = '0'.repeat(-Number(exponent) - 1)
  return { text: `${input < 0 ? '-' : ''}0.${zeros}${mantissa.replace(/[-.]/g, '')}` }
}

/** Compares two canonical texts; returns −1, 0 or 1. */
export function compareDecimals(a: string, b: string): number {
  const [negativeA, negativeB] = [a.startsWith('-'), b.startsWith('-')]
  if (negativeA !== negativeB) return negativeA ? -1 : 1
  const [left, right] = negativeA ? [b.slice(1), a.slice(1)] : [a, b]
  return compareMagnitudes(left, right)
}

function compareMagnitudes(a: string, b: string): number {
  const [integerA = '', fractionA = ''] = a.split('.')
  const [integerB = '', fractionB = ''] = b.split('.')
  const width = Math.max(integerA.length, integerB.length)
  const scale = Math.max(fractionA.length, fractionB.length)
  const left = integerA.padStart(width, '0') + fractionA.padEnd(scale, '0')
  const right = integerB.padStart(width, '0') + fractionB.padEnd(scale, '0')
  if (left === right) return 0
  return left < right ? -1 : 1
}
