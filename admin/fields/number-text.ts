// Numbers as people type and read them. Decimals stay text, because a number of JavaScript would change their digits.

const GROUP = 3
/** Spaces that separate groups of digits: people type a plain one, and copy the others. */
const SPACES = /[\s\u00A0\u202F]/g
const PLAIN = /^[+-]?(\d+([.]\d*)?|[.]\d+)$/
const WITH_COMMAS = /^[+-]?\d{1,3}(,\d{3})+([.]\d*)?$/
const DECIMAL = /^([+-]?)(\d+)(?:\.(\d+))?$/

interface Separators {
  readonly group: string
  readonly decimal: string
}

function findSeparators(locale: string): Separators {
  const parts = new Intl.NumberFormat(locale).formatToParts(-1234567.5)
  const find = (type: string) => parts.find((part) => part.type === type)?.value
  return { group: find('group') ?? '', decimal: find('decimal') ?? '.' }
}

/** Groups the digits of a decimal, and keeps each of them. A text that is no decimal stays as it is. */
export function groupDigits(text: string, locale: string): string {
  const match = DECIMAL.exec(text)
  if (!match) return text
  const [, sign = '', whole = '', fraction] = match
  const { group, decimal } = findSeparators(locale)
  const groups: string[] = []
  for (let end = whole.length; end > 0; end -= GROUP)
    groups.unshift(whole.slice(Math.max(0, end - GROUP), end))
  return sign + groups.join(group) + (fraction === undefined ? '' : decimal + fraction)
}

/** Reads a decimal as a person types it: `1,5` and `1 234,5` in French, `1.5` and `1,234.5` in English. Undefined if it is none. */
export function parseDecimal(typed: string, locale: string): string | undefined {
  const { decimal } = findSeparators(locale)
  const text = typed.trim().replaceAll('−', '-').replaceAll(SPACES, '')
  if (decimal === ',') {
    const [whole = '', ...rest] = text.split(',')
    return rest.length > 1 || (rest.length === 1 && whole.includes('.'))
      ? undefined
      : readPlain(text.replace(',', '.'))
  }
  return readPlain(WITH_COMMAS.test(text) ? text.replaceAll(',', '') : text)
}

function readPlain(text: string): string | undefined {
  if (!PLAIN.test(text)) return undefined
  const [whole = '', fraction = ''] = text.replace(/^[+-]/, '').split('.')
  const digits = whole.replace(/^0+(?=\d)/, '') || '0'
  const number = digits + (fraction === '' ? '' : `.${fraction}`)
  return text.startsWith('-') && /[1-9]/.test(number) ? `-${number}` : number
}

/** The service has decimals with exactly as many digits as their scale. A number with more digits stays as it is, and is refused. */
export function completeScale(decimal: string, scale: number): string {
  const [whole = '', fraction = ''] = decimal.split('.')
  return scale === 0 && fraction === '' ? whole : `${whole}.${fraction.padEnd(scale, '0')}`
}

export function countFractionDigits(decimal: string): number {
  return decimal.split('.')[1]?.length ?? 0
}

/** Reads a whole number. Undefined if it is none, or if a number of JavaScript cannot hold all its digits. */
export function parseInteger(typed: string, locale: string): number | undefined {
  const text = parseDecimal(typed, locale)
  if (text === undefined || text.includes('.')) return undefined
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : undefined
}

/** The text of a number in an input: with the decimal separator of the language, without groups. */
export function formatForInput(value: unknown, locale: string): string {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return ''
  return DECIMAL.test(value) ? value.replace('.', findSeparators(locale).decimal) : value
}
