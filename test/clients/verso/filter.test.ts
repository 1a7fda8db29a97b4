// Filter objects: the text says what the object says, whatever its values contain.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, type FilterObject } from 'verso-records/client'
import { formatFilter } from '../../../src/client/filter.js'
import type { Condition } from '../../../src/model/query/condition.js'
import { parseFilter } from '../../../src/model/query/filter.js'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../../targets.js'

const parse = (filter: FilterObject) => parseFilter(formatFilter(filter) ?? '', {}, 'filter')

/** Terms of a condition without their places. */
function listTerms(condition: Condition): unknown {
  if (condition.kind === 'group')
    return { [condition.operator]: condition.conditions.map((each) => listTerms(each)) }
  const { path, operator, value, value2 } = condition
  return value2 === undefined ? [path, operator, value] : [path, operator, value, value2]
}

/** Texts that look like the language itself, and any other text. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    "'",
    "''",
    "' or id > 0 --",
    '\\',
    '"',
    ':parameter',
    "x') or ('1' = '1",
    '%',
    '\u0000',
    '\n',
  ),
)

describe('a value stays one literal', () => {
  test('of a text: nothing in it ends the literal', () => {
    fc.assert(
      fc.property(text, text, (first, second) => {
        expect(listTerms(parse({ name: first, 'company.name': { '!=': second } }))).toEqual({
          and: [
            ['name', '=', first],
            ['company.name', '!=', second],
          ],
        })
      }),
    )
  })

  test('which a formatter that does not double quotes would end', () => {
    const isOneLiteral = fc.property(text, (value) => {
      expect(listTerms(parseFilter(`name = '${value}'`, {}, 'filter'))).toEqual(['name', '=', value])
    })
    expect(fc.check(isOneLiteral).failed).toBe(true)
  })

  test('of a number: its digits are those of JavaScript', () => {
    const number = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
      fc.maxSafeInteger(),
      fc.constantFrom(1e21, -1.5e-7, 5e-324, -0, Number.MAX_VALUE),
    )
    fc.assert(
      fc.property(number, (value) => {
        const term = listTerms(parse({ amount: value })) as readonly [string, string, string | number]
        expect(term.slice(0, 2)).toEqual(['amount', '='])
        expect(Number(term[2]) + 0).toBe(value + 0)
      }),
    )
  })

  test('of a list and of a range', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 5 }), text, text, (list, low, high) => {
        expect(listTerms(parse({ name: list, code: { between: [low, high] } }))).toEqual({
          and: [
            ['name', 'in', list],
            ['code', 'between', low, high],
          ],
        })
      }),
    )
  })
})

test.each([
  [{ name: null }, ['name', 'isNull', undefined]],
  [{ name: { '!=': null } }, ['name', 'notNull', undefined]],
  [{ name: { notNull: false } }, ['name', 'isNull', undefined]],
  [{ members: { isEmpty: false } }, ['members', 'notEmpty', undefined]],
  [{ owner: { id: 7, $version: 3, name: 'x' } }, ['owner', '=', 7]],
  [{ isOpen: true }, ['isOpen', '=', true]],
  [{ count: 12n }, ['count', '=', 12]],
  [{ on: new Date(0) }, ['on', '=', '1970-01-01T00:00:00.000Z']],
  [
    { like: { like: 'a%' }, 'self.or': 1 },
    {
      and: [
        ['like', 'like', 'a%'],
        ['or', '=', 1],
      ],
    },
  ],
  [
    { name: ['a', null] },
    {
      or: [
        ['name', 'in', ['a']],
        ['name', 'isNull', undefined],
      ],
    },
  ],
  [
    { name: { notIn: ['a', null] } },
    {
      and: [
        ['name', 'notIn', ['a']],
        ['name', 'notNull', undefined],
      ],
    },
  ],
  [
    { or: [{ a: 1, b: 2 }, "c = 'x' or d = 1"], not: { e: 3 } },
    {
      and: [
        {
          or: [
            {
              and: [
                ['a', '=', 1],
                ['b', '=', 2],
              ],
            },
            {
              or: [
                ['c', '=', 'x'],
                ['d', '=', 1],
              ],
            },
          ],
        },
        { not: [['e', '=', 3]] },
      ],
    },
  ],
  [{ or: [] }, ['id', 'in', []]],
  [{ not: {} }, { not: [['id', 'notIn', []]] }],
] as readonly (readonly [FilterObject, unknown])[])('%o is a filter', (filter, terms) => {
  expect(listTerms(parse(filter))).toEqual(terms)
})

test('an empty filter has no condition, and a text stays as it is', () => {
  expect([formatFilter({}), formatFilter(undefined), formatFilter('a = 1')]).toEqual([
    undefined,
    undefined,
    'a = 1',
  ])
})

test.each([
  [{ name: undefined }, /compare self\.name with undefined/],
  [{ name: { '>': null } }, /null works with =, != and in lists/],
  [{ name: Number.NaN }, /with NaN/],
  [{ name: { contains: 'x' } }, /"contains" is not an operator of a filter: use =/],
  [{ name: {} }, /no operator for name/],
  [{ name: { in: 'x' } }, /needs a list/],
  [{ name: { between: [1] } }, /two values/],
  [{ name: { isNull: 1 } }, /true or false/],
  [{ or: { a: 1 } }, /"or" needs a list/],
  [{ not: 'a = 1' }, /not must be an object/],
] as readonly (readonly [FilterObject, RegExp])[])('%o is refused', (filter, message) => {
  expect(() => formatFilter(filter)).toThrow(message)
})

test('a key that is not a path is refused, and a path means itself', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.constantFrom('a = 1 or b', 'a.', '.a', 'a..b', "a'", 'a b')),
      (key) => {
        fc.pre(!['and', 'or', 'not'].includes(key))
        if (/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/.test(key))
          expect(listTerms(parse({ [key]: 1 }))).toEqual([key.replace(/^self\.(?=.)/, ''), '=', 1])
        else if (!key.includes('[]')) expect(() => formatFilter({ [key]: 1 })).toThrow(/is not a path/)
      },
    ),
  )
})

onEngineOfTier((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  /** JavaScript's own answer for the operators that both have. */
  function matches(filter: FilterObject, record: Readonly<Record<string, unknown>>): boolean {
    return Object.entries(filter).every(([key, condition]) => {
      if (key === 'or') return (condition as FilterObject[]).some((each) => matches(each, record))
      const value = record[key] as number | null
      if (condition === null) return value === null
      if (Array.isArray(condition)) return condition.includes(value)
      if (typeof condition !== 'object') return value === condition
      return Object.entries(condition as Record<string, number>).every(
        ([operator, operand]) => value !== null && (operator === '<' ? value < operand : value >= operand),
      )
    })
  }

  test('a find by a filter object returns the records that JavaScript would choose', async () => {
    const verso = connect(service.url, { username: USERNAME, password: PASSWORD })
    const everything = verso.model('test.Everything')
    const labels = ["it's", '"', "' or 1=1 --", '\\', 'a%', '😀', 'ümlaut', '', null]
    await verso.batch(
      labels.map((label, index) => ({
        op: 'create' as const,
        model: 'test.Everything',
        data: { label, whole: index % 3 === 0 ? null : index - 4 },
      })),
    )
    const records = (await everything.find({ fields: ['label', 'whole'], limit: 100 })).data
    const label = fc.constantFrom(...labels)
    const term: fc.Arbitrary<FilterObject> = fc.oneof(
      fc.record({ label }),
      fc.record({ label: fc.array(label, { maxLength: 3 }) }),
      fc.record({ whole: fc.record({ '<': fc.integer({ min: -5, max: 5 }) }) }),
      fc.record({
        whole: fc.record({ '>=': fc.integer({ min: -5, max: 5 }), '<': fc.integer({ min: -5, max: 5 }) }),
      }),
    )
    const filter = fc.oneof(
      term,
      fc.record({ or: fc.array(term, { maxLength: 3 }) }),
      fc.tuple(term, term).map(([a, b]) => ({ ...a, or: [b, { whole: null }] })),
    )
    await fc.assert(
      fc.asyncProperty(filter, async (each) => {
        const { data } = await everything.find({ filter: each as object, limit: 100 })
        expect(data.map(({ id }) => id)).toEqual(
          records.filter((record) => matches(each, record)).map(({ id }) => id),
        )
      }),
      { numRuns: 100 },
    )
  })
})
