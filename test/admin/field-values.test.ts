// Numbers, dates and texts of fields: nothing that a person typed or that the service stores changes on the way.
import { describe, expect, test } from 'vitest'
import {
  completeTime,
  findTimeOfDay,
  findToday,
  formatDate,
  formatDatetime,
  formatTime,
  toLocalInput,
  toUtcText,
} from '../../admin/fields/date-text.js'
import { findLinks } from '../../admin/fields/link-text.js'
import {
  completeScale,
  formatForInput,
  groupDigits,
  parseDecimal,
  parseInteger,
} from '../../admin/fields/number-text.js'
import { processorTimeOf } from '../processor-time.js'
import { inZone } from './time-zone.js'

const NARROW_SPACE = '\u202F'
const ZONES = ['Pacific/Kiritimati', 'Europe/Paris', 'UTC', 'America/St_Johns', 'Pacific/Pago_Pago']

describe('decimals', () => {
  test('all digits of a long decimal are shown, in groups of the language', () => {
    expect(groupDigits('123456789012345678.90', 'en')).toBe('123,456,789,012,345,678.90')
    expect(groupDigits('-1234567.5', 'fr')).toBe(`-1${NARROW_SPACE}234${NARROW_SPACE}567,5`)
    expect(groupDigits('123', 'en')).toBe('123')
    expect(groupDigits('0.10', 'en')).toBe('0.10')
  })

  test('a text that is no decimal is shown as it is', () => {
    for (const text of ['', 'abc', '1e5', '1.2.3', '.']) expect(groupDigits(text, 'en')).toBe(text)
  })

  test('a comma is the decimal separator in French', () => {
    expect(parseDecimal('1,5', 'fr')).toBe('1.5')
    expect(parseDecimal('1.5', 'fr')).toBe('1.5')
    expect(parseDecimal(` 1 234${NARROW_SPACE}567,50 `, 'fr')).toBe('1234567.50')
    expect(parseDecimal('1,2,3', 'fr')).toBeUndefined()
    expect(parseDecimal('1.234,5', 'fr')).toBeUndefined()
  })

  test('a comma separates groups in English, and is refused where it could mean a decimal separator', () => {
    expect(parseDecimal('1,234,567.50', 'en')).toBe('1234567.50')
    expect(parseDecimal('1,5', 'en')).toBeUndefined()
    expect(parseDecimal('1,2345', 'en')).toBeUndefined()
  })

  test('no digit of a typed decimal is lost or rounded', () => {
    const digits = '98765432109876543210.123456789012345678'
    expect(parseDecimal(digits, 'en')).toBe(digits)
    expect(parseDecimal('0.10', 'en')).toBe('0.10')
  })

  test('leading zeros, signs and bare points become one form', () => {
    expect(parseDecimal('007.50', 'en')).toBe('7.50')
    expect(parseDecimal('+3', 'en')).toBe('3')
    expect(parseDecimal('.5', 'en')).toBe('0.5')
    expect(parseDecimal('-0.00', 'en')).toBe('0.00')
    expect(parseDecimal('−2', 'en')).toBe('-2')
  })

  test('words, exponents and empty texts are no decimals', () => {
    for (const text of ['', '-', '.', 'abc', '1e5', '0x10', 'Infinity', 'NaN', '١'])
      expect(parseDecimal(text, 'en')).toBeUndefined()
  })

  test('missing digits are added up to the scale, and digits beyond it stay', () => {
    expect(completeScale('12.5', 2)).toBe('12.50')
    expect(completeScale('12', 2)).toBe('12.00')
    expect(completeScale('12', 0)).toBe('12')
    expect(completeScale('12.505', 2)).toBe('12.505')
  })

  test('a stored decimal that is shown in an input and read again is the same text', () => {
    for (const locale of ['en', 'fr'])
      for (const stored of ['0.00', '-12.50', '123456789012345678.90', '1']) {
        expect(parseDecimal(formatForInput(stored, locale), locale)).toBe(stored)
        expect(parseDecimal(groupDigits(stored, locale), locale)).toBe(stored)
      }
  })
})

describe('whole numbers', () => {
  test('a whole number within 53 bits is a number', () => {
    expect(parseInteger('9007199254740991', 'en')).toBe(9_007_199_254_740_991)
    expect(parseInteger('-1 234', 'fr')).toBe(-1234)
    expect(Object.is(parseInteger('-0', 'en'), 0)).toBe(true)
  })

  test('a number that would lose digits is not converted', () => {
    expect(parseInteger('9007199254740993', 'en')).toBeUndefined()
    expect(parseInteger('1.5', 'en')).toBeUndefined()
  })

  test('a text that is no number stays in the input as it was typed', () => {
    expect(formatForInput('abc', 'fr')).toBe('abc')
    expect(formatForInput(42, 'fr')).toBe('42')
    expect(formatForInput(null, 'fr')).toBe('')
  })
})

describe('dates', () => {
  test('a date is the same day in every time zone', () => {
    for (const zone of ZONES)
      inZone(zone, () => {
        expect(formatDate('2024-02-29', 'en')).toBe('Feb 29, 2024')
        expect(formatDate('1000-01-01', 'fr')).toContain('1000')
      })
  })

  test('a year below 100 is not a year of the last century', () => {
    expect(formatDate('0024-01-31', 'en')).not.toContain('1924')
  })

  test('a text that is no date is shown as it is', () => {
    expect(formatDate('soon', 'en')).toBe('soon')
    expect(formatDatetime('soon', 'en')).toBe('soon')
  })

  test('a moment is shown in the time zone of the person, with seconds', () => {
    inZone('America/New_York', () =>
      expect(formatDatetime('2024-01-01T02:03:04.000Z', 'en').replaceAll(NARROW_SPACE, ' ')).toBe(
        'Dec 31, 2023, 9:03:04 PM',
      ),
    )
  })

  test('a moment in an input and back is the same moment, to the millisecond, in every time zone', () => {
    const moments = [
      '2024-01-31T12:45:00.000Z',
      '2024-06-15T23:59:59.999Z',
      '1969-12-31T23:59:59.007Z',
      '0099-03-01T10:00:00.000Z',
    ]
    for (const zone of ZONES)
      inZone(zone, () => {
        for (const moment of moments) expect(toUtcText(toLocalInput(moment))).toBe(moment)
      })
  })

  test('an input shows milliseconds only if there are any', () => {
    inZone('Europe/Paris', () => {
      expect(toLocalInput('2024-01-31T12:45:00.000Z')).toBe('2024-01-31T13:45:00')
      expect(toLocalInput('2024-07-31T12:45:00.120Z')).toBe('2024-07-31T14:45:00.120')
    })
  })

  test('an hour that exists twice is the one of the value before the edit', () => {
    inZone('Europe/Paris', () => {
      expect(toUtcText('2024-10-27T02:31', '2024-10-27T00:30:00.000Z')).toBe('2024-10-27T00:31:00.000Z')
      expect(toUtcText('2024-10-27T02:31', '2024-10-27T01:30:00.000Z')).toBe('2024-10-27T01:31:00.000Z')
      expect(toUtcText('2024-10-27T05:31', '2024-07-01T01:30:00.000Z')).toBe('2024-10-27T04:31:00.000Z')
    })
  })

  test('an hour that clocks skip is a moment all the same', () => {
    inZone('Europe/Paris', () => expect(toUtcText('2024-03-31T02:30')).toBe('2024-03-31T01:30:00.000Z'))
  })

  test('an incomplete text is no moment', () => {
    for (const text of ['', '2024-01-31', 'T12:00', '2024-01-31T', '2024-1-31T12:00'])
      expect(toUtcText(text)).toBeUndefined()
    expect(toLocalInput('')).toBe('')
  })

  test('seconds of a time that has none are zero', () => {
    expect(completeTime('13:45')).toBe('13:45:00')
    expect(completeTime('13:45:30')).toBe('13:45:30')
    expect(formatTime('13:45:00')).toBe('13:45')
    expect(formatTime('13:45:30')).toBe('13:45:30')
  })

  test('today is the day of the clock of the person', () => {
    const now = new Date('2024-02-29T23:30:15.000Z')
    inZone('Pacific/Kiritimati', () => expect(findToday(now)).toBe('2024-03-01'))
    inZone('Pacific/Pago_Pago', () => {
      expect(findToday(now)).toBe('2024-02-29')
      expect(findTimeOfDay(now)).toBe('12:30:15')
    })
  })
})

describe('links in texts', () => {
  test('web and e-mail addresses are links, without the punctuation around them', () => {
    expect(findLinks('see (https://example.org/a?b=c), or ada@example.org.')).toEqual([
      { text: 'see (' },
      { text: 'https://example.org/a?b=c', href: 'https://example.org/a?b=c' },
      { text: '), or ' },
      { text: 'ada@example.org', href: 'mailto:ada@example.org' },
      { text: '.' },
    ])
  })

  test('other schemes are no links', () => {
    for (const text of [
      'javascript:alert(1)//@example.org',
      'javascript:alert(1)',
      'data:text/html,https://a.example',
      'file:///etc/passwd',
      'ftp://a@example.org/',
      '@example',
    ])
      expect(findLinks(text).filter(({ href }) => href !== undefined)).toEqual([])
  })

  test('the parts of any text together are the text', () => {
    for (const text of [
      '',
      ' a\n\nb ',
      '«https://a.example»\n',
      '<x@y.example>',
      'https://',
      '((((',
      '@@ @ a@b',
    ])
      expect(
        findLinks(text)
          .map((part) => part.text)
          .join(''),
      ).toBe(text)
  })

  test('a megabyte without a space is read in less than a second', () => {
    const ms = processorTimeOf(() => {
      findLinks(`${'a'.repeat(500_000)}@${'.'.repeat(500_000)}`)
      findLinks('https://'.repeat(100_000))
    })
    expect(ms).toBeLessThan(1000)
  })
})
