import { describe, expect, test } from 'vitest'
import { Catalog } from '../../src/model/catalog/catalog.js'
import {
  parseConditionJson,
  MAX_CONDITION_DEPTH,
  MAX_IN_VALUES,
  MAX_LIKE_CHARACTERS,
  MAX_CONDITION_ERRORS,
  MAX_TERMS,
  OPERATORS,
  type Condition,
  type Operator,
  type Term,
} from '../../src/model/query/condition.js'
import { bindCondition, countTerms } from '../../src/model/query/bind-condition.js'
import type { Criteria } from '../../src/model/query/criteria.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { MAX_OPERAND_CHARACTERS } from '../../src/model/query/operand.js'
import type { Value } from '../../src/model/values/value.js'
import { Everything } from '../models.js'

const Author = defineModel({
  name: 'lib.Author',
  fields: {
    name: { type: 'string' },
    books: { type: 'one-to-many', target: 'lib.Book', mappedBy: 'author' },
    profile: { type: 'one-to-one', target: 'lib.Profile', mappedBy: 'author' },
  },
})
const Profile = defineModel({
  name: 'lib.Profile',
  fields: { bio: { type: 'text' }, author: { type: 'one-to-one', target: 'lib.Author' } },
})
const Book = defineModel({
  name: 'lib.Book',
  fields: {
    title: { type: 'string', length: 5 },
    pages: { type: 'integer', min: 1, max: 10, selection: [1, 2] },
    price: { type: 'decimal', precision: 5, scale: 2 },
    author: { type: 'many-to-one', target: 'lib.Author' },
    year: { type: 'many-to-one', target: 'lib.Year' },
    tags: { type: 'many-to-many', target: 'lib.Tag' },
    cover: { type: 'binary' },
    draft: { type: 'string', secret: true },
  },
  nameField: 'title',
})
const Tag = defineModel({
  name: 'lib.Tag',
  fields: {
    name: { type: 'string' },
    books: { type: 'many-to-many', target: 'lib.Book', mappedBy: 'tags' },
  },
})
const Year = defineModel({ name: 'lib.Year', fields: { number: { type: 'integer' } }, nameField: 'number' })

const catalog = Catalog.from(
  [Author, Profile, Book, Tag, Year, Everything].map((definition) => ({ file: 'm.ts', definition })),
)

interface Bound {
  readonly criteria: Criteria | undefined
  readonly faults: readonly string[]
}

function bindTo(model: string, condition: Condition): Bound {
  const faults: string[] = []
  return { criteria: bindCondition(catalog, catalog.get(model), condition, faults), faults }
}

function term(path: string, operator: Operator, value?: unknown, value2?: unknown): Term {
  return { kind: 'term', path, operator, value, value2, at: 'here' }
}

function group(operator: 'and' | 'or' | 'not', conditions: readonly Condition[], at = 'there'): Condition {
  return { kind: 'group', operator, conditions, at }
}

/** The comparison in short: path, operator, values. */
function ask(model: string, ...asked: Parameters<typeof term>): readonly unknown[] {
  const { criteria, faults } = bindTo(model, term(...asked))
  expect(faults).toEqual([])
  if (criteria?.kind !== 'comparison') throw new Error('it is no comparison')
  const names = [...criteria.steps.map((step) => step.field), criteria.field].map((field) => field.name)
  return [names.join('.'), criteria.operator, ...criteria.values]
}

function faultsOf(model: string, ...asked: Parameters<typeof term>): readonly string[] {
  const { criteria, faults } = bindTo(model, term(...asked))
  expect(criteria).toBeUndefined()
  return faults
}

const EVERYTHING = 'test.Everything'

describe('operators by field type', () => {
  const equality = ['=', '!=', 'in', 'notIn'] as const
  const presence = ['isNull', 'notNull'] as const
  const order = ['<', '>', '<=', '>=', 'between', 'notBetween'] as const
  const emptiness = ['isEmpty', 'notEmpty'] as const
  const matched = [...equality, ...order, 'like', 'notLike'] as const
  const texts = [...matched, ...presence] as const
  const ordered = [...equality, ...presence, ...order] as const

  const cases: readonly (readonly [
    model: string,
    path: string,
    value: unknown,
    operators: readonly Operator[],
  ])[] = [
    [EVERYTHING, 'label', 'a', texts],
    [EVERYTHING, 'note', 'a', texts],
    [EVERYTHING, 'state', 'draft', texts],
    [EVERYTHING, 'whole', 1, ordered],
    [EVERYTHING, 'big', 1, ordered],
    [EVERYTHING, 'id', 1, ordered],
    [EVERYTHING, 'version', 1, ordered],
    [EVERYTHING, 'amount', '1.5', ordered],
    [EVERYTHING, 'day', '2024-01-31', ordered],
    [EVERYTHING, 'at', '13:45', ordered],
    [EVERYTHING, 'moment', '2024-01-31T13:45:00Z', ordered],
    [EVERYTHING, 'createdOn', '2024-01-31T13:45:00Z', ordered],
    [EVERYTHING, 'active', true, [...equality, ...presence]],
    [EVERYTHING, 'token', '8d3f5c9e-0c1b-4b60-9d53-0a4a6a3c1f10', [...equality, ...presence]],
    [EVERYTHING, 'extra', 1, presence],
    ['lib.Book', 'author', 1, [...equality, ...presence]],
    ['lib.Author', 'profile', 1, [...equality, ...presence]],
    ['lib.Author', 'books', 1, [...equality, ...emptiness]],
    ['lib.Tag', 'books', 1, [...equality, ...emptiness]],
    ['lib.Book', 'tags', 1, [...equality, ...emptiness]],
    // A relation compared with a text is compared by name.
    ['lib.Book', 'author', 'Ada', texts],
    ['lib.Book', 'tags', 'red', [...matched, ...emptiness]],
    ['lib.Book', 'year', '2024', ordered],
  ]
  test.each(cases)(
    '%s.%s with the value %j takes the operators of its type, and no others',
    (model, path, value, operators) => {
      for (const operator of OPERATORS) {
        const sent = operator === 'in' || operator === 'notIn' ? [value] : value
        const { criteria, faults } = bindTo(model, term(path, operator, sent, value))
        const suits = operators.includes(operator)
        expect([operator, criteria !== undefined]).toEqual([operator, suits])
        if (!suits)
          expect(faults).toEqual([
            expect.stringMatching(/^here: [a-zA-Z]+: ".+" does not apply to type [a-z-]+/),
          ])
      }
    },
  )

  test.each([
    [
      'lib.Author',
      'books',
      'isNull',
      'here: books: "isNull" does not apply to type one-to-many: use isEmpty',
    ],
    [
      'lib.Book',
      'tags',
      'notNull',
      'here: tags: "notNull" does not apply to type many-to-many: use notEmpty',
    ],
    [
      'lib.Book',
      'author',
      'isEmpty',
      'here: author: "isEmpty" does not apply to type many-to-one: use isNull',
    ],
    ['lib.Book', 'title', 'notEmpty', 'here: title: "notEmpty" does not apply to type string: use notNull'],
    ['lib.Book', 'pages', 'like', 'here: pages: "like" does not apply to type integer'],
  ] as const)('the error of %s.%s %s suggests the right operator', (model, path, operator, fault) => {
    expect(faultsOf(model, path, operator, 'x')).toEqual([fault])
  })
})

describe('values in criteria', () => {
  const cases: readonly (readonly [path: string, input: unknown, value: Value])[] = [
    ['label', 'a', 'a'],
    ['label', '', ''],
    ['label', ' a ', ' a '],
    ['note', 'é😀', 'é😀'],
    ['state', 'nobody has this state', 'nobody has this state'],
    ['whole', 7, 7],
    ['whole', -0, 0],
    ['whole', '-7', -7],
    ['whole', '007', 7],
    ['whole', 2 ** 31, 2 ** 31],
    ['big', Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    ['big', String(Number.MIN_SAFE_INTEGER), Number.MIN_SAFE_INTEGER],
    ['id', '12', 12],
    ['version', 0, 0],
    ['price', 1.5, `1.5${'0'.repeat(37)}`],
    ['price', '-0', `0.${'0'.repeat(38)}`],
    ['price', `${'9'.repeat(38)}.${'9'.repeat(38)}`, `${'9'.repeat(38)}.${'9'.repeat(38)}`],
    ['active', true, true],
    ['active', 'true', true],
    ['active', false, false],
    ['active', 'false', false],
    ['day', '2024-02-29', '2024-02-29'],
    ['at', '13:45', '13:45:00'],
    ['moment', '2024-01-31T13:45:00+01:00', '2024-01-31T12:45:00.000Z'],
    ['moment', '2024-01-31', '2024-01-31T00:00:00.000Z'],
    ['token', '8D3F5C9E-0C1B-4B60-9D53-0A4A6A3C1F10', '8d3f5c9e-0c1b-4b60-9d53-0a4a6a3c1f10'],
  ]
  test.each(cases)('the value of %s %j is normalized', (path, input, value) => {
    expect(ask(EVERYTHING, path, '=', input)).toEqual([path, '=', value])
    expect(ask(EVERYTHING, path, 'in', [input, input])).toEqual([path, 'in', value, value])
  })

  test('a value outside the limits of its field is accepted in criteria', () => {
    expect(ask('lib.Book', 'title', '=', 'longer than five')).toEqual(['title', '=', 'longer than five'])
    expect(ask('lib.Book', 'pages', '=', 99)).toEqual(['pages', '=', 99])
    expect(ask('lib.Book', 'price', '>', '123456.789')).toEqual(['price', '>', `123456.789${'0'.repeat(35)}`])
  })

  test.each([
    ['between', 'pages'],
    ['notBetween', 'pages'],
  ] as const)('both ends of %s are converted', (operator, path) => {
    expect(ask('lib.Book', path, operator, '3', 1)).toEqual([path, operator, 3, 1])
  })

  const faults: readonly (readonly [path: string, input: unknown, fault: string])[] = [
    ['label', 5, 'must be text'],
    ['label', ['a'], 'must be text'],
    ['label', 'a\0', 'must not contain the NUL character'],
    ['note', '\ud83d', 'must not contain half of a surrogate pair'],
    ['whole', 1.5, 'must be a whole number'],
    ['whole', '1.0', 'must be a whole number'],
    ['whole', '', 'must be a whole number'],
    ['whole', ' 1', 'must be a whole number'],
    ['whole', '0x10', 'must be a whole number'],
    ['whole', true, 'must be a whole number'],
    ['big', 2 ** 53, 'must be between -9007199254740991 and 9007199254740991'],
    ['big', '9007199254740992', 'must be between -9007199254740991 and 9007199254740991'],
    ['big', '9'.repeat(1000), 'must be between -9007199254740991 and 9007199254740991'],
    ['id', { id: '1.5' }, 'must be a whole number'],
    ['price', 'x', 'must be a decimal number such as "12.50"'],
    ['price', '9'.repeat(39), 'must have at most 38 digits before the decimal point'],
    ['price', `0.${'1'.repeat(39)}`, 'must have at most 38 digits after the decimal point'],
    ['price', 0.1 + 0.2, 'has more digits than a JSON number can store exactly: send it as text'],
    ['active', 1, 'must be true or false'],
    ['active', 'TRUE', 'must be true or false'],
    ['day', '2023-02-29', 'must be a date such as "2024-01-31"'],
    ['day', '2024-01-31T00:00:00Z', 'must be a date such as "2024-01-31"'],
    ['at', '24:00', 'must be a time such as "13:45:00"'],
    ['moment', '2023-02-29', 'must be a date and time with an offset, such as "2024-01-31T13:45:00Z"'],
    ['moment', 0, 'must be a date and time with an offset, such as "2024-01-31T13:45:00Z"'],
    ['token', 'x', 'must be a UUID'],
  ]
  test.each(faults)('the value of %s %j is rejected', (path, input, fault) => {
    expect(faultsOf(EVERYTHING, path, '=', input)).toEqual([`here: ${path}: value ${fault}`])
  })

  test(`a text of ${MAX_OPERAND_CHARACTERS} characters is accepted, and one more is rejected`, () => {
    const text = '😀'.repeat(MAX_OPERAND_CHARACTERS)
    expect(ask(EVERYTHING, 'label', '=', text)).toEqual(['label', '=', text])
    expect(faultsOf(EVERYTHING, 'label', '=', `${text}x`)).toEqual([
      `here: label: value must have at most ${MAX_OPERAND_CHARACTERS} characters`,
    ])
  })
})

describe('relations in criteria', () => {
  test.each([
    ['an id', 5, 5],
    ['an object with an id', { id: 5, version: 2, name: 'Ada' }, 5],
    ['an object with an id as text', { id: '5' }, 5],
    ['null', null, null],
  ])('a relation is compared with %s', (_, input, id) => {
    expect(ask('lib.Book', 'author', '=', input)).toEqual(['author.id', '=', id])
    expect(ask('lib.Author', 'books', '!=', input)).toEqual(['books.id', '!=', id])
    expect(ask('lib.Author', 'books.tags', '=', input)).toEqual(['books.tags.id', '=', id])
  })

  test('a relation is compared with several ids, or with none', () => {
    expect(ask('lib.Book', 'author', 'in', [1, { id: 2 }])).toEqual(['author.id', 'in', 1, 2])
    expect(ask('lib.Book', 'tags', 'notIn', [])).toEqual(['tags.id', 'notIn'])
  })

  test('a relation is compared by name if every value is a text', () => {
    expect(ask('lib.Book', 'author', '=', '5')).toEqual(['author.name', '=', '5'])
    expect(ask('lib.Book', 'author', 'like', 'ad%')).toEqual(['author.name', 'like', 'ad%'])
    expect(ask('lib.Book', 'author', 'between', 'a', 'b')).toEqual(['author.name', 'between', 'a', 'b'])
    expect(ask('lib.Author', 'books', 'in', ['x', 'y'])).toEqual(['books.title', 'in', 'x', 'y'])
    expect(ask('lib.Author', 'books.year', '>', '1999')).toEqual(['books.year.number', '>', 1999])
    expect(ask('lib.Book', 'createdBy', '=', 'Ada')).toEqual(['createdBy.name', '=', 'Ada'])
  })

  test('a relation is tested for null, and a list for emptiness', () => {
    expect(ask('lib.Book', 'author', 'isNull')).toEqual(['author.id', 'isNull'])
    expect(ask('lib.Author', 'profile', 'notNull')).toEqual(['profile.id', 'notNull'])
    expect(ask('lib.Author', 'books', 'isEmpty')).toEqual(['books.id', 'isEmpty'])
    expect(ask('lib.Author', 'books.tags', 'notEmpty', 'x')).toEqual(['books.tags.id', 'notEmpty'])
  })

  test.each([
    ['a number with a fraction', '=', 1.5, 'value must be a whole number'],
    ['true', '=', true, 'value must be an id, an object with an id, or a name'],
    ['an object without an id', '=', { name: 'x' }, 'value must be an id, an object with an id, or a name'],
    ['an object that inherits an id', '=', Object.create({ id: 1 }), 'value must be an id'],
    ['an object with another id', '=', { id: 'x' }, 'value must be a whole number'],
    ['nothing', '=', undefined, 'value is required'],
    [
      'a name among ids',
      'in',
      [1, 'Ada'],
      'value[1] must be an id, because the other values of the list are ids',
    ],
    ['null among ids', 'in', [1, null], 'value[1] must not be null: use isNull to find missing values'],
  ] as const)('a relation compared with %s is rejected', (_, operator, value, fault) => {
    const [first, ...others] = faultsOf('lib.Book', 'author', operator, value)
    expect(first?.startsWith(`here: author: ${fault}`)).toBe(true)
    expect(others).toEqual([])
  })

  test('a relation to a model without a name field is not compared by name', () => {
    const fault = 'here: profile: lib.Profile has no name field: compare the id or another field'
    expect(faultsOf('lib.Author', 'profile', '=', 'x')).toEqual([fault])
    expect(ask('lib.Author', 'profile.bio', '=', 'x')).toEqual(['profile.bio', '=', 'x'])
  })

  test('a relation compared by name has the type of the name field', () => {
    expect(faultsOf('lib.Book', 'year', '=', 'soon')).toEqual(['here: year: value must be a whole number'])
    expect(faultsOf('lib.Book', 'year', 'like', '20%')).toEqual([
      'here: year: "like" does not apply to type integer',
    ])
  })
})

describe('null and missing values', () => {
  const single = ['=', '!=', '<', '>', '<=', '>='] as const
  const noNull = 'must not be null: use isNull to find missing values'

  test.each(single)('%s accepts null', (operator) => {
    expect(ask('lib.Book', 'pages', operator, null)).toEqual(['pages', operator, null])
  })

  test.each([
    ['title', 'like', null, undefined, [`value ${noNull}`]],
    ['title', 'notLike', null, undefined, [`value ${noNull}`]],
    ['pages', 'between', null, 1, [`value ${noNull}`]],
    ['pages', 'notBetween', 1, null, [`value2 ${noNull}`]],
    ['pages', 'in', [1, null], undefined, [`value[1] ${noNull}`]],
    ['pages', 'notIn', [null, 1, null], undefined, [`value[0] ${noNull}`, `value[2] ${noNull}`]],
    ['pages', 'between', 1, undefined, ['value2 is required']],
    ['pages', 'notBetween', undefined, undefined, ['value is required', 'value2 is required']],
    ['title', 'like', undefined, undefined, ['value is required']],
    ['pages', 'in', undefined, undefined, ['value must be a list']],
    ['pages', 'notIn', null, undefined, ['value must be a list']],
    ['pages', 'in', 1, undefined, ['value must be a list']],
    ['pages', 'in', { 0: 1 }, undefined, ['value must be a list']],
    ...single.map((operator) => ['pages', operator, undefined, 1, ['value is required']] as const),
  ] as const)(
    '%s %s %j %j is rejected for a null or missing value',
    (path, operator, value, value2, faults) => {
      expect(faultsOf('lib.Book', path, operator, value, value2)).toEqual(
        faults.map((fault) => `here: ${path}: ${fault}`),
      )
    },
  )

  test('isNull and notNull ignore their values', () => {
    expect(ask('lib.Book', 'pages', 'isNull', { any: 'thing' }, [])).toEqual(['pages', 'isNull'])
    expect(ask('lib.Book', 'pages', 'notNull')).toEqual(['pages', 'notNull'])
  })
})

describe('limits of bound criteria', () => {
  test(`a list takes ${MAX_IN_VALUES} values, and rejects one more`, () => {
    const values = Array.from({ length: MAX_IN_VALUES }, (_, index) => index)
    expect(ask('lib.Book', 'pages', 'in', values)).toHaveLength(2 + MAX_IN_VALUES)
    expect(faultsOf('lib.Book', 'pages', 'notIn', [...values, 1])).toEqual([
      `here: pages: value must have at most ${MAX_IN_VALUES} items`,
    ])
    expect(ask('lib.Book', 'pages', 'in', [])).toEqual(['pages', 'in'])
  })

  test(`a pattern takes ${MAX_LIKE_CHARACTERS} characters, and rejects one more`, () => {
    const pattern = '😀'.repeat(MAX_LIKE_CHARACTERS)
    for (const operator of ['like', 'notLike'] as const) {
      expect(ask('lib.Book', 'title', operator, pattern)).toEqual(['title', operator, pattern])
      expect(faultsOf('lib.Book', 'title', operator, `${pattern}x`)).toEqual([
        `here: title: value must have at most ${MAX_LIKE_CHARACTERS} characters`,
      ])
      expect(faultsOf('lib.Book', 'title', operator, 5)).toEqual(['here: title: value must be text'])
    }
  })

  test(`bound criteria take ${MAX_TERMS} conditions, and reject one more`, () => {
    const terms = (count: number) => Array.from({ length: count }, () => term('pages', '=', 1))
    const half = group('or', terms(MAX_TERMS / 2))
    expect(countTerms(term('pages', '=', 1))).toBe(1)
    expect(countTerms(group('and', [half, half]))).toBe(MAX_TERMS)
    expect(bindTo('lib.Book', group('and', [half, half])).faults).toEqual([])
    expect(bindTo('lib.Book', group('and', [half, half, ...terms(1)]))).toEqual({
      criteria: undefined,
      faults: [`there: a search can have at most ${MAX_TERMS} conditions`],
    })
  })

  test(`bound criteria take ${MAX_CONDITION_DEPTH} levels, and reject one more`, () => {
    const nested = (levels: number) => {
      let condition: Condition = term('pages', '=', 1)
      for (let level = levels; level > 0; level--) condition = group('not', [condition], `level ${level}`)
      return condition
    }
    expect(bindTo('lib.Book', nested(MAX_CONDITION_DEPTH)).faults).toEqual([])
    expect(bindTo('lib.Book', nested(MAX_CONDITION_DEPTH + 1))).toEqual({
      criteria: undefined,
      faults: [
        `level ${MAX_CONDITION_DEPTH + 1}: must not be nested deeper than ${MAX_CONDITION_DEPTH} levels`,
      ],
    })
  })

  test('at most the maximum number of errors is reported', () => {
    const wrong = Array.from({ length: MAX_IN_VALUES }, () => 'x')
    const term = { fieldName: 'pages', operator: 'in', value: wrong }
    const condition = parseConditionJson({ criteria: Array.from({ length: MAX_TERMS }, () => term) }, [])
    if (!condition) throw new Error('it was to be read')
    expect(bindTo('lib.Book', condition).faults).toHaveLength(MAX_CONDITION_ERRORS)
  })
})

describe('paths in criteria', () => {
  test.each([
    ['nothing', 'lib.Book has no field "nothing"'],
    ['titel', 'lib.Book has no field "titel" (did you mean "title"?)'],
    ['draft', 'lib.Book has no field "draft"'],
    ['cover', 'lib.Book has no field "cover"'],
    ['title.length', 'lib.Book.title is not a relation, so no other field can follow it'],
    ['author.nothing', 'lib.Author has no field "nothing"'],
    ['createdBy.password', 'verso.auth.User has no field "password"'],
    ['createdBy.usernam', 'verso.auth.User has no field "usernam"'],
    ['toString', 'lib.Book has no field "toString"'],
    ['id.id', 'lib.Book.id is not a relation, so no other field can follow it'],
    ['', 'lib.Book has no field ""'],
  ])('the path "%s" is rejected with a hint', (path, fault) => {
    const [first, ...others] = faultsOf('lib.Book', path, '=', 'x')
    expect(first?.startsWith(`here: ${fault}`)).toBe(true)
    expect(others).toEqual([])
  })

  test('a path may go over relations of every kind', () => {
    expect(ask('lib.Book', 'author.profile.author.books.tags.books.pages', '=', 1)).toEqual([
      'author.profile.author.books.tags.books.pages',
      '=',
      1,
    ])
  })
})

test('bound criteria keep the shape of the tree, and "not" negates the conjunction of its conditions', () => {
  const is = (pages: number) => term('pages', '=', pages)
  const compared = (pages: number) => ({ kind: 'comparison', operator: '=', values: [pages] })
  const { criteria } = bindTo(
    'lib.Book',
    group('or', [group('not', [is(1), is(2)]), group('and', [is(3), is(4)])]),
  )
  expect(criteria).toMatchObject({
    kind: 'or',
    criteria: [
      { kind: 'not', criteria: { kind: 'and', criteria: [compared(1), compared(2)] } },
      { kind: 'and', criteria: [compared(3), compared(4)] },
    ],
  })
})

test('all errors are reported at once, each with its position', () => {
  const at = (place: string, each: Term): Term => ({ ...each, at: place })
  const conditions = [
    at('a', term('nothing', '=', 1)),
    group('or', [at('b', term('pages', 'like', 'x')), group('and', [], 'c')]),
    at('d', term('pages', 'between', 'x')),
    at('e', term('title', '=', 'fine')),
  ]
  expect(bindTo('lib.Book', group('and', conditions))).toEqual({
    criteria: undefined,
    faults: [
      'a: lib.Book has no field "nothing"',
      'b: pages: "like" does not apply to type integer',
      'c: criteria must not be empty',
      'd: pages: value must be a whole number',
      'd: pages: value2 is required',
    ],
  })
})

test('errors of earlier checks are kept and do not count', () => {
  const faults = ['before']
  expect(bindCondition(catalog, catalog.get('lib.Book'), term('pages', '=', 1), faults)).toBeDefined()
  expect(faults).toEqual(['before'])
})
