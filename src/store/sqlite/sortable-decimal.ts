// SQLite has no exact decimals. This text sorts and compares byte by byte as the number does, whatever its precision and scale:
//   a sign (`-`, `0` for zero, `1`), the count of digits before the point (two digits), those digits, the digits behind the
//   point without trailing zeros. A negative number has every digit replaced by 9 − digit and ends in `~`, so that the
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

/** The number without trailing zeros behind the point; its field knows how many to print. */
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
