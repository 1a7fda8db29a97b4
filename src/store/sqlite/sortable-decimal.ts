// SQLite has no exact decimals. This encoding as text has the same order, byte by byte, as the numbers, for any precision and scale:
//   a sign (`-`, `0` for zero, `1`), the number of digits before the point (two digits), those digits, and the digits after the
//   point without trailing zeros. In a negative number, every digit is replaced by 9 − digit and a `~` follows, so that the
//   larger magnitude comes first.

const END_OF_NEGATIVE = '~'

export function encodeDecimal(decimal: string): string {
  const [integer = '', fraction = ''] = decimal.replace('-', '').split('.')
  const digits = integer.replace(/^0+/, '')
  const rest = fraction.replace(/0+$/, '')
  if (digits === '' && rest === '') return '0'
  const body = String(digits.length).padStart(2, '0') + digits + rest
  return decimal.startsWith('-') ? `-${complement(body)}${END_OF_NEGATIVE}` : `1${body}`
}

/** The number without trailing zeros after the point; the caller pads it to the scale of the field. */
export function decodeDecimal(encoded: string): string {
  if (encoded === '0') return '0'
  const isNegative = encoded.startsWith('-')
  const body = isNegative ? complement(encoded.slice(1, -END_OF_NEGATIVE.length)) : encoded.slice(1)
  const point = 2 + Number(body.slice(0, 2))
  const [integer, fraction] = [body.slice(2, point), body.slice(point)]
  const number = (integer === '' ? '0' : integer) + (fraction === '' ? '' : `.${fraction}`)
  return isNegative ? `-${number}` : number
}

function complement(digits: string): string {
  return digits.replace(/\d/g, (digit) => String(9 - Number(digit)))
}
