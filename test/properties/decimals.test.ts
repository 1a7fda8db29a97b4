import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareDecimals, parseDecimal } from '../../src/model/values/decimal.js'
import { decodeDecimal, encodeDecimal } from '../../src/store/sqlite/sortable-decimal.js'

const SCALE = 6n
/** Integers in units of a millionth, up to 38 digits: the oracle is integer arithmetic. */
const units = fc.oneof(
  fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n }),
  fc.bigInt({ min: -2_000_000n, max: 2_000_000n }),
  fc.integer({ min: 0, max: 37 }).map((power) => 10n ** BigInt(power)),
  fc.integer({ min: 0, max: 37 }).map((power) => -(10n ** BigInt(power)) + 1n),
)

function print(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(Number(SCALE) + 1, '0')
  return `${value < 0n ? '-' : ''}${digits.slice(0, -Number(SCALE))}.${digits.slice(-Number(SCALE))}`
}

test('the stored text of a decimal sorts byte by byte like the number', () => {
  fc.assert(
    fc.property(units, units, (a, b) => {
      const [left, right] = [encodeDecimal(print(a)), encodeDecimal(print(b))]
      expect(Math.sign(Buffer.compare(Buffer.from(left), Buffer.from(right)))).toBe(
        a === b ? 0 : a < b ? -1 : 1,
      )
      expect(compareDecimals(print(a), print(b))).toBe(a === b ? 0 : a < b ? -1 : 1)
    }),
    { numRuns: 20_000 },
  )
})

test('the stored text of a decimal decodes to the same number, with any scale', () => {
  fc.assert(
    fc.property(units, fc.integer({ min: 0, max: 8 }), (value, zeros) => {
      const text = print(value)
      expect(compareDecimals(decodeDecimal(encodeDecimal(text)), text)).toBe(0)
      expect(encodeDecimal(text + '0'.repeat(zeros))).toBe(encodeDecimal(text))
    }),
    { numRuns: 5_000 },
  )
})

test('a JSON number is accepted as a decimal only if its text is exact', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      const parsed = parseDecimal(number, 38, 20)
      if ('text' in parsed) expect(Number(parsed.text)).toBe(number + 0)
    }),
    { numRuns: 5_000 },
  )
  expect(parseDecimal(0.1, 10, 2)).toEqual({ text: '0.10' })
  expect(parseDecimal(1e-7, 10, 8)).toEqual({ text: '0.00000010' })
  expect(parseDecimal(-1.5e-7, 10, 8)).toEqual({ text: '-0.00000015' })
  expect(parseDecimal(0.1 + 0.2, 38, 20)).toHaveProperty('error')
  expect(parseDecimal(2 ** 64, 38, 2)).toHaveProperty('error')
  // These are whole numbers only after rounding.
  expect(parseDecimal(JSON.parse('999999999999999.96'), 20, 2)).toHaveProperty('error')
  expect(parseDecimal(JSON.parse('4503599627370496.30'), 20, 2)).toHaveProperty('error')
})
