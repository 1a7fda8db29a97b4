import { describe, expect, test } from 'vitest'
import {
  parseConditionJson,
  MAX_CONDITION_DEPTH,
  MAX_CONDITION_ERRORS,
  MAX_TERMS,
  OPERATORS,
  type Condition,
} from '../../src/model/query/condition.js'

interface Read {
  readonly condition: Condition | undefined
  readonly faults: readonly string[]
}

function read(data: unknown): Read {
  const faults: string[] = []
  return { condition: parseConditionJson(data, faults), faults }
}

function faultsOf(data: unknown): readonly string[] {
  const { condition, faults } = read(data)
  expect(condition).toBeUndefined()
  return faults
}

const isA = { fieldName: 'a', operator: '=', value: 1 }
const isB = { fieldName: 'b', operator: '=', value: 2 }
const term = (path: string, value: number, at: string) => ({ kind: 'term', path, operator: '=', value, at })

/** Nests a condition in `levels` groups. */
function nested(levels: number): unknown {
  let node: unknown = isA
  for (let level = 0; level < levels; level++) node = { operator: 'or', criteria: [node] }
  return node
}

function times(count: number, node: unknown): { criteria: unknown[] } {
  return { criteria: Array.from({ length: count }, () => node) }
}

describe('spellings of operators', () => {
  const spellings: readonly (readonly [word: string, spelling: string])[] = [
    ['=', 'equals'],
    ['!=', 'notEqual'],
    ['<', 'lessThan'],
    ['>', 'greaterThan'],
    ['<=', 'lessOrEqual'],
    ['>=', 'greaterOrEqual'],
    ['like', 'LIKE'],
    ['notLike', 'NOT LIKE'],
    ['isNull', 'IS NULL'],
    ['notNull', 'IS NOT NULL'],
    ['in', 'IN'],
    ['notIn', 'NOT IN'],
    ['between', 'BETWEEN'],
    ['notBetween', 'NOT BETWEEN'],
    ['isEmpty', 'IS EMPTY'],
    ['notEmpty', 'IS NOT EMPTY'],
  ]

  test('the table of spellings contains every operator', () => {
    expect(spellings.map(([word]) => word).sort()).toEqual([...OPERATORS].sort())
  })

  test.each(spellings)('the operator %s can be spelled %s', (word, spelling) => {
    for (const operator of [word, spelling]) {
      const { condition, faults } = read({ criteria: [{ fieldName: 'a', operator, value: 1, value2: 2 }] })
      expect(faults).toEqual([])
      expect(condition).toMatchObject({
        conditions: [{ kind: 'term', path: 'a', operator: word, value: 1, value2: 2 }],
      })
    }
  })

  test.each([
    ['and', 'AND'],
    ['or', 'OR'],
    ['not', 'NOT'],
  ])('the group operator %s can be spelled %s', (word, spelling) => {
    for (const operator of [word, spelling]) {
      expect(read({ operator, criteria: [isA] }).condition).toMatchObject({ kind: 'group', operator: word })
    }
  })
})

describe('tree of criteria', () => {
  test('each part of a parsed tree has its path', () => {
    expect(read({ operator: 'or', criteria: [isA, { operator: 'not', criteria: [isB, isA] }] })).toEqual({
      condition: {
        kind: 'group',
        operator: 'or',
        at: 'data',
        conditions: [
          term('a', 1, 'data.criteria[0]'),
          {
            kind: 'group',
            operator: 'not',
            at: 'data.criteria[1]',
            conditions: [
              term('b', 2, 'data.criteria[1].criteria[0]'),
              term('a', 1, 'data.criteria[1].criteria[1]'),
            ],
          },
        ],
      },
      faults: [],
    })
  })

  test('criteria without an operator are joined by "and", at the root and nested', () => {
    expect(read({ criteria: [{ criteria: [isA] }] }).condition).toMatchObject({
      operator: 'and',
      conditions: [{ operator: 'and', conditions: [{ path: 'a' }] }],
    })
    expect(read({ operator: null, criteria: [isA] }).condition).toMatchObject({ operator: 'and' })
  })

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['an empty object', {}],
    ['no criteria', { criteria: [] }],
    ['criteria that are null', { operator: 'or', criteria: null }],
    ['other keys', { _domain: 'self.a = 1', _archived: true }],
  ])('data with %s is no condition and no error', (_, data) => {
    expect(read(data)).toEqual({ condition: undefined, faults: [] })
  })

  test('criteria may have unknown keys', () => {
    const { condition, faults } = read({ hello: 1, criteria: [{ ...isA, title: 'A', criteria: null }] })
    expect(faults).toEqual([])
    expect(condition).toMatchObject({ conditions: [{ path: 'a', value: 1 }] })
  })

  test('a null value is distinct from a missing value', () => {
    const { condition } = read({ criteria: [{ fieldName: 'a', operator: '=', value: null }] })
    expect(condition).toMatchObject({ conditions: [{ value: null, value2: undefined }] })
  })

  test('criteria are read from own properties only, not from inherited ones', () => {
    const inherited = Object.create({ fieldName: 'a', operator: '=', value: 1 }) as unknown
    expect(faultsOf({ criteria: [inherited] })).toEqual([
      'data.criteria[0]: fieldName must name a field',
      'data.criteria[0]: operator must be text such as "="',
    ])
    expect(read(Object.create({ criteria: [isA] })).condition).toBeUndefined()
  })
})

describe('errors in criteria', () => {
  const cases: readonly (readonly [name: string, data: unknown, fault: string])[] = [
    ['data that is no object', 5, 'data: must be an object with criteria'],
    ['data that is a list', [isA], 'data: must be an object with criteria'],
    ['criteria that are no list', { criteria: isA }, 'data: criteria must be a list'],
    [
      'criteria that are no list further in',
      { criteria: [isA, { operator: 'or', criteria: 'a' }] },
      'data.criteria[1]: criteria must be a list',
    ],
    [
      'a node that is no object',
      { criteria: [{ criteria: [isA, isA, null] }] },
      'data.criteria[0].criteria[2]: must be an object with a fieldName or with criteria',
    ],
    [
      'a node that is a list',
      { criteria: [[isA]] },
      'data.criteria[0]: must be an object with a fieldName or with criteria',
    ],
    [
      'no fieldName',
      { criteria: [{ operator: '=', value: 1 }] },
      'data.criteria[0]: fieldName must name a field',
    ],
    [
      'an empty fieldName',
      { criteria: [{ ...isA, fieldName: '' }] },
      'data.criteria[0]: fieldName must name a field',
    ],
    [
      'a fieldName that is no text',
      { criteria: [{ ...isA, fieldName: ['a'] }] },
      'data.criteria[0]: fieldName must name a field',
    ],
    ['a fieldName at the root', isA, 'data: fieldName must be inside one of the criteria'],
    [
      'both a fieldName and criteria',
      { criteria: [{ ...isA, criteria: [isB] }] },
      'data.criteria[0]: has both a fieldName and criteria',
    ],
    ['an empty group', { criteria: [{ criteria: [] }] }, 'data.criteria[0]: criteria must not be empty'],
    [
      'a group of nothing',
      { criteria: [{ operator: 'not' }] },
      'data.criteria[0]: criteria must not be empty',
    ],
    [
      'no operator',
      { criteria: [{ fieldName: 'a', value: 1 }] },
      'data.criteria[0]: operator must be text such as "="',
    ],
    [
      'an operator that is no text',
      { criteria: [{ ...isA, operator: 5 }] },
      'data.criteria[0]: operator must be text such as "="',
    ],
    [
      'an unknown operator',
      { criteria: [{ ...isA, operator: 'startsWith' }] },
      'data.criteria[0]: "startsWith" is not an operator',
    ],
    [
      'an operator in other letters',
      { criteria: [{ ...isA, operator: 'Like' }] },
      'data.criteria[0]: "Like" is not an operator (did you mean "like"?)',
    ],
    [
      'a group operator in other letters',
      { operator: 'And', criteria: [isA] },
      'data: "And" is not one of "and", "or", "not" (did you mean "and"?)',
    ],
    [
      'a misspelled group operator without criteria',
      { operator: 'And', criteria: [] },
      'data: "And" is not one of "and", "or", "not" (did you mean "and"?)',
    ],
    [
      'a group operator at a field',
      { criteria: [{ ...isA, operator: 'or' }] },
      'data.criteria[0]: "or" is not an operator',
    ],
    [
      'a comparison as group operator',
      { operator: '=', criteria: [isA] },
      'data: "=" is not one of "and", "or", "not"',
    ],
    [
      'the name of a property of every object as group operator',
      { operator: 'constructor', criteria: [isA] },
      'data: "constructor" is not one of "and", "or", "not"',
    ],
  ]
  test.each(cases)('a condition with %s is rejected with its path', (_, data, fault) => {
    const [first, ...others] = faultsOf(data)
    expect(first?.startsWith(fault)).toBe(true)
    expect(others).toEqual([])
  })

  test('all errors in criteria are reported at once', () => {
    expect(faultsOf({ operator: 'xor', criteria: [5, { criteria: [] }, { fieldName: 'a' }] })).toEqual([
      expect.stringMatching(/^data: "xor" is not one of "and", "or", "not"/),
      expect.stringMatching(/^data\.criteria\[0\]: must be an object/),
      expect.stringMatching(/^data\.criteria\[1\]: criteria must not be empty/),
      expect.stringMatching(/^data\.criteria\[2\]: operator must be/),
    ])
  })

  test('an error message truncates a long operator', () => {
    const [fault = ''] = faultsOf({ criteria: [{ ...isA, operator: 'x'.repeat(100_000) }] })
    expect(fault.length).toBeLessThan(200)
  })
})

describe('limits of criteria', () => {
  test(`criteria take ${MAX_CONDITION_DEPTH} levels, and reject one more`, () => {
    expect(MAX_CONDITION_DEPTH).toBe(16)
    expect(read(nested(MAX_CONDITION_DEPTH)).faults).toEqual([])
    expect(faultsOf(nested(MAX_CONDITION_DEPTH + 1))).toEqual([
      `data${'.criteria[0]'.repeat(MAX_CONDITION_DEPTH)}: must not be nested deeper than ${MAX_CONDITION_DEPTH} levels`,
    ])
  })

  test('criteria nested 100,000 levels deep are rejected with one error', () => {
    expect(faultsOf(nested(100_000))).toHaveLength(1)
  })

  test(`criteria take ${MAX_TERMS} conditions, and reject one more`, () => {
    expect(MAX_TERMS).toBe(64)
    expect(read(times(MAX_TERMS, isA)).faults).toEqual([])
    expect(faultsOf(times(MAX_TERMS + 1, isA))).toEqual([
      `data.criteria[${MAX_TERMS}]: a search can have at most ${MAX_TERMS} conditions`,
    ])
  })

  test('the limit of conditions counts all groups, and parsing stops there', () => {
    const half = { operator: 'or', ...times(MAX_TERMS / 2, isA) }
    expect(read({ criteria: [half, half] }).faults).toEqual([])
    expect(faultsOf({ criteria: [half, half, isA, ...times(100_000, 5).criteria] })).toEqual([
      `data.criteria[2]: a search can have at most ${MAX_TERMS} conditions`,
    ])
  })

  test('parsing stops at the limit of reported errors', () => {
    expect(faultsOf(times(MAX_CONDITION_ERRORS, 5))).toHaveLength(MAX_CONDITION_ERRORS)
    expect(faultsOf(times(100_000, 5))).toHaveLength(MAX_CONDITION_ERRORS)
    expect(faultsOf(times(100_000, { criteria: [] }))).toHaveLength(MAX_CONDITION_ERRORS)
  })
})
