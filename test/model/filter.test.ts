import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { MAX_CONDITION_DEPTH, type Condition, type Operator } from '../../src/model/query/condition.js'
import { parseFilter } from '../../src/model/query/filter.js'
import { processorTimeOf } from '../processor-time.js'

type Bare =
  | { operator: 'and' | 'or' | 'not'; conditions: Bare[] }
  | { path: string; operator: Operator; value?: unknown; value2?: unknown }

/** The tree without positions. */
function bare(condition: Condition): Bare {
  if (condition.kind === 'group') {
    return { operator: condition.operator, conditions: condition.conditions.map(bare) }
  }
  const { path, operator } = condition
  return {
    path,
    operator,
    ...('value' in condition ? { value: condition.value } : {}),
    ...('value2' in condition ? { value2: condition.value2 } : {}),
  }
}

function parse(text: string, parameters: Readonly<Record<string, unknown>> = {}): Bare {
  return bare(parseFilter(text, parameters, 'filter'))
}

function term(path: string, operator: Operator, ...values: unknown[]): Bare {
  const [value, value2] = values
  return {
    path,
    operator,
    ...(values.length > 0 ? { value } : {}),
    ...(values.length > 1 ? { value2 } : {}),
  }
}

function group(operator: 'and' | 'or' | 'not', ...conditions: Bare[]): Bare {
  return { operator, conditions }
}

function catchError(text: string, parameters: Readonly<Record<string, unknown>> = {}): string {
  try {
    parseFilter(text, parameters, 'filter')
  } catch (error) {
    if (!(error instanceof VersoError)) throw error
    expect(error.kind).toBe('bad-request')
    return error.message
  }
  throw new Error(`the text was not rejected: ${text.slice(0, 100)}`)
}

const [a, b, c, d] = (['a', 'b', 'c', 'd'] as const).map((name, index) => term(name, '=', index + 1)) as [
  Bare,
  Bare,
  Bare,
  Bare,
]

describe('groups in filters', () => {
  test('a single condition is not wrapped in a group, with any number of parentheses', () => {
    expect(parse('a = 1')).toEqual(a)
    expect(parse('((a = 1))')).toEqual(a)
  })

  test('a chain of the same operator is parsed as one group', () => {
    expect(parse('a = 1 and b = 2 and c = 3')).toEqual(group('and', a, b, c))
    expect(parse('a = 1 or b = 2 or c = 3')).toEqual(group('or', a, b, c))
  })

  test('and binds closer than or', () => {
    expect(parse('a = 1 or b = 2 and c = 3 or d = 4')).toEqual(group('or', a, group('and', b, c), d))
    expect(parse('a = 1 and b = 2 or c = 3')).toEqual(group('or', group('and', a, b), c))
  })

  test('not binds closer than and', () => {
    expect(parse('not a = 1 and b = 2')).toEqual(group('and', group('not', a), b))
  })

  test('parentheses bind closest and stay a group of their own', () => {
    expect(parse('(a = 1 or b = 2) and c = 3')).toEqual(group('and', group('or', a, b), c))
    expect(parse('not (a = 1 and b = 2)')).toEqual(group('not', group('and', a, b)))
    expect(parse('(a = 1 and b = 2) and c = 3')).toEqual(group('and', group('and', a, b), c))
  })

  test('each not is a group around one condition', () => {
    expect(parse('not not a = 1')).toEqual(group('not', group('not', a)))
  })

  test('keywords ignore case, and white space is free', () => {
    expect(parse('NOT(a=1)AnD\tb\n=\r\n2\u00a0oR c=3')).toEqual(
      group('or', group('and', group('not', a), b), c),
    )
  })

  test('each part of a parsed filter has its position', () => {
    const at = (column: number) => `_domain, column ${column}`
    expect(parseFilter('  (a = 1 or not b = 2) and c = 3', {}, '_domain')).toEqual({
      kind: 'group',
      operator: 'and',
      at: at(3),
      conditions: [
        {
          kind: 'group',
          operator: 'or',
          at: at(4),
          conditions: [
            { kind: 'term', path: 'a', operator: '=', value: 1, at: at(4) },
            {
              kind: 'group',
              operator: 'not',
              at: at(13),
              conditions: [{ kind: 'term', path: 'b', operator: '=', value: 2, at: at(17) }],
            },
          ],
        },
        { kind: 'term', path: 'c', operator: '=', value: 3, at: at(28) },
      ],
    })
  })
})

describe('predicates in filters', () => {
  test.each(['=', '!=', '<', '<=', '>', '>='] as const)('%s compares with a value', (sign) => {
    expect(parse(`a ${sign} 5`)).toEqual(term('a', sign, 5))
    expect(parse(`a${sign}-5`)).toEqual(term('a', sign, -5))
  })

  test('<> is parsed as !=', () => {
    expect(parse('a <> 5')).toEqual(term('a', '!=', 5))
  })

  test('like and not like take one value', () => {
    expect(parse("a like 'x%'")).toEqual(term('a', 'like', 'x%'))
    expect(parse("a not like 'x%'")).toEqual(term('a', 'notLike', 'x%'))
  })

  test('in and not in take a list, which may be empty', () => {
    expect(parse("a in (1, 'two', null)")).toEqual(term('a', 'in', [1, 'two', null]))
    expect(parse('a not in(1)')).toEqual(term('a', 'notIn', [1]))
    expect(parse('a in ()')).toEqual(term('a', 'in', []))
  })

  test('in takes a parameter that holds a list, in parentheses or not', () => {
    expect(parse('a in :ids', { ids: [1, 2] })).toEqual(term('a', 'in', [1, 2]))
    expect(parse('a not in (:ids)', { ids: [1, 2] })).toEqual(term('a', 'notIn', [1, 2]))
    expect(parse('a in (:ids)', { ids: [] })).toEqual(term('a', 'in', []))
  })

  test('a parameter inside the parentheses of in may be a single value', () => {
    expect(parse('a in (:id)', { id: 1 })).toEqual(term('a', 'in', [1]))
    expect(parse('a in (:id, 2, :other)', { id: 1, other: null })).toEqual(term('a', 'in', [1, 2, null]))
  })

  test('the and of between does not join conditions', () => {
    expect(parse('a between 1 and 2 and b = 2')).toEqual(group('and', term('a', 'between', 1, 2), b))
    expect(parse('a not between 1 and :most', { most: 9 })).toEqual(term('a', 'notBetween', 1, 9))
  })

  test('is accepts null and empty', () => {
    expect(parse('a is null')).toEqual(term('a', 'isNull'))
    expect(parse('a is not null')).toEqual(term('a', 'notNull'))
    expect(parse('a IS EMPTY')).toEqual(term('a', 'isEmpty'))
    expect(parse('a Is Not Empty')).toEqual(term('a', 'notEmpty'))
  })

  test('is accepts true and false', () => {
    expect(parse('a is true')).toEqual(term('a', '=', true))
    expect(parse('a is false')).toEqual(term('a', '=', false))
  })

  test('is not true and is not false include null', () => {
    expect(parse('a is not true')).toEqual(group('or', term('a', 'isNull'), term('a', '!=', true)))
    expect(parse('a is not false')).toEqual(group('or', term('a', 'isNull'), term('a', '!=', false)))
  })

  test('member of is parsed as equality with the path', () => {
    expect(parse('5 member of self.tags')).toEqual(term('tags', '=', 5))
    expect(parse(':tag MEMBER OF tags.parent', { tag: 7 })).toEqual(term('tags.parent', '=', 7))
    expect(parse('5 not member of tags')).toEqual(group('not', term('tags', '=', 5)))
    expect(parse("not 'x' member of tags and a = 1")).toEqual(
      group('and', group('not', term('tags', '=', 'x')), a),
    )
  })

  test('a membership has the position of its path, and its negation that of its start', () => {
    expect(parseFilter(' 5 not member of tags', {}, 'filter')).toMatchObject({
      at: 'filter, column 2',
      conditions: [{ at: 'filter, column 18' }],
    })
  })
})

describe('paths in filters', () => {
  const pathOf = (path: string) => parse(`${path} = 1`)

  test('a leading self is dropped if something follows', () => {
    expect(pathOf('self.name')).toEqual(term('name', '=', 1))
    expect(pathOf('SELF.name')).toEqual(term('name', '=', 1))
    expect(pathOf('self.self')).toEqual(term('self', '=', 1))
    expect(pathOf('self')).toEqual(term('self', '=', 1))
    expect(pathOf('owner.self')).toEqual(term('owner.self', '=', 1))
    expect(pathOf('selfish.name')).toEqual(term('selfish.name', '=', 1))
  })

  test('brackets after a name are ignored', () => {
    expect(pathOf('self.lines[].product')).toEqual(term('lines.product', '=', 1))
    expect(pathOf('lines [ ] . tags[]')).toEqual(term('lines.tags', '=', 1))
  })

  test('after a dot every word is a name, in its own spelling', () => {
    expect(pathOf('self.And')).toEqual(term('And', '=', 1))
    expect(pathOf('self.select')).toEqual(term('select', '=', 1))
    expect(pathOf('_a1.in.NOT.null')).toEqual(term('_a1.in.NOT.null', '=', 1))
  })

  test('a word that only starts like a keyword is a name', () => {
    expect(pathOf('notes')).toEqual(term('notes', '=', 1))
    expect(pathOf('order')).toEqual(term('order', '=', 1))
    expect(pathOf('isnull')).toEqual(term('isnull', '=', 1))
  })

  test('names that objects inherit are ordinary names', () => {
    expect(pathOf('constructor.__proto__')).toEqual(term('constructor.__proto__', '=', 1))
  })
})

describe('values in filters', () => {
  const valueOf = (text: string, parameters = {}) => {
    const parsed = parse(`a = ${text}`, parameters)
    return 'path' in parsed ? parsed.value : undefined
  }

  test('a safe integer is parsed as a number', () => {
    expect(valueOf('12')).toBe(12)
    expect(valueOf('+3')).toBe(3)
    expect(valueOf('-7')).toBe(-7)
    expect(valueOf('007')).toBe(7)
    expect(valueOf('-0')).toBe(0)
    expect(valueOf('9007199254740991')).toBe(Number.MAX_SAFE_INTEGER)
  })

  test('a number that is no safe integer stays its exact text', () => {
    expect(valueOf('-12.50')).toBe('-12.50')
    expect(valueOf('1.0')).toBe('1.0')
    expect(valueOf('9007199254740992')).toBe('9007199254740992')
    expect(valueOf('-99999999999999999999')).toBe('-99999999999999999999')
  })

  test('a text has either kind of quotes, and a doubled quote stands for itself', () => {
    expect(valueOf("'it''s'")).toBe("it's")
    expect(valueOf('"it\'s ""so"""')).toBe('it\'s "so"')
    expect(valueOf("''")).toBe('')
    expect(valueOf("''''")).toBe("'")
    expect(valueOf('\'a "b" \\ \n and :c (ü🙂\'')).toBe('a "b" \\ \n and :c (ü🙂')
  })

  test('true, false and null ignore case', () => {
    expect(valueOf('TRUE')).toBe(true)
    expect(valueOf('False')).toBe(false)
    expect(valueOf('nuLL')).toBe(null)
  })

  test('a parameter has the value that was sent, also null', () => {
    expect(valueOf(':x', { x: '5' })).toBe('5')
    expect(valueOf(':x', { x: null })).toBe(null)
    expect(valueOf(':x', { x: false })).toBe(false)
    expect(valueOf(':x', { x: { id: 3 } })).toEqual({ id: 3 })
    expect(valueOf(':and', { and: 1 })).toBe(1)
  })

  test('a dot or a dollar reads a nested property of a parameter', () => {
    const parameters = { _user: { home: { city: 'Bern' } } }
    expect(valueOf(':_user.home.city', parameters)).toBe('Bern')
    expect(valueOf(':_user$home$city', parameters)).toBe('Bern')
    expect(valueOf(':_user.home$city', parameters)).toBe('Bern')
  })

  test('a parameter is never read from a prototype', () => {
    expect(catchError('a = :__proto__')).toBe('filter, column 5: unknown parameter ":__proto__"')
    expect(catchError('a = :constructor')).toContain('unknown parameter ":constructor"')
    expect(catchError('a = :x.toString', { x: {} })).toContain(':x has no "toString"')
    expect(catchError('a = :x.__proto__.y', { x: {} })).toContain(':x has no "__proto__"')
    expect(catchError('a = :x.length', { x: 'text' })).toContain('because it is not an object')
    expect(catchError('a = :x.length', { x: [1] })).toContain('because it is not an object')
    const inherited: object = Object.create({ x: 1 })
    expect(catchError('a = :x', { ...{}, y: inherited })).toContain('unknown parameter ":x"')
    expect(catchError('a = :y.x', { y: inherited })).toContain(':y has no "x"')
  })

  test('an own property with the name of a prototype is an ordinary parameter', () => {
    const parameters = JSON.parse('{ "__proto__": { "constructor": 5 } }') as Record<string, unknown>
    expect(valueOf(':__proto__.constructor', parameters)).toBe(5)
    expect(catchError('a = :__proto__.x', parameters)).toContain(':__proto__ has no "x"')
  })
})

describe('rejected filters', () => {
  const isExpected = (column: number, what: string, instead: string) =>
    `filter, column ${column}: expected ${what}, found ${instead}`

  test.each([
    ['and a = 1', isExpected(1, 'a condition', '"and"')],
    ['a = 1 AND or b = 2', isExpected(11, 'a condition', '"or"')],
    ['a = 1 and', isExpected(10, 'a condition', 'the end')],
    ['not', isExpected(4, 'a condition', 'the end')],
    ['()', isExpected(2, 'a condition', '")"')],
    ['= 1', isExpected(1, 'a condition', '"="')],
    ['like 1', isExpected(1, 'a condition', '"like" (write self.like for a field of that name)')],
    ['a = 1 and b = and', isExpected(15, 'a value', '"and"')],
    ['a = not (b = 1)', isExpected(5, 'a value', '"not"')],
    ['a =', isExpected(4, 'a value', 'the end')],
    ['a = b', isExpected(5, 'a value', '"b" (put text in quotes)')],
    ['a = (1)', isExpected(5, 'a value', '"("')],
    ['a like', isExpected(7, 'a value', 'the end')],
    ['a = .5', isExpected(5, 'a value', '"."')],
    ['a', isExpected(2, 'an operator', 'the end')],
    ['a b', isExpected(3, 'an operator', '"b"')],
    ["a '='", isExpected(3, 'an operator', 'a text')],
    ['a :b', isExpected(3, 'an operator', '":b"')],
    ['a not = 1', isExpected(7, '"like", "in" or "between"', '"="')],
    ['a = 1 b = 2', isExpected(7, '"and", "or" or the end', '"b"')],
    ['(a = 1 b', isExpected(8, '"and", "or" or ")"', '"b"')],
    ['a in 1', isExpected(6, 'a list in parentheses or a parameter', '"1"')],
    ['a in (1 2)', isExpected(9, '"," or ")"', '"2"')],
    ['a in (1,)', isExpected(9, 'a value', '")"')],
    ['a in (,)', isExpected(7, 'a value', '","')],
    ['a between 1 or 2', isExpected(13, '"and" and the upper bound', '"or"')],
    ['a between 1 and', isExpected(16, 'a value', 'the end')],
    ['a is 1', isExpected(6, 'null, empty, true or false', '"1"')],
    ['a is not', isExpected(9, 'null, empty, true or false', 'the end')],
    ['1 member a', isExpected(10, '"of"', '"a"')],
    ['1 member of 2', isExpected(13, 'a field', '"2"')],
    ['1 member of in', isExpected(13, 'a field', '"in" (write self.in for a field of that name)')],
    ['self. = 1', isExpected(7, 'a name', '"="')],
    ['a.5 = 1', isExpected(3, 'a name', '"5"')],
    ['a[0] = 1', isExpected(3, '"]"', '"0"')],
    [`a = ${'b'.repeat(50)}`, isExpected(5, 'a value', `"${'b'.repeat(40)}…" (put text in quotes)`)],
  ])('the filter %s is rejected with what is expected', (text, message) => {
    expect(catchError(text)).toBe(message)
  })

  test.each([
    ['a == 1', 3, 'use = instead of "=="'],
    ['a => 1', 3, 'use >= instead of "=>"'],
    ['a =< 1', 3, 'use <= instead of "=<"'],
    ['a = 1 && b = 2', 7, 'use and instead of "&&"'],
    ['a = 1 & b = 2', 7, 'use and instead of "&"'],
    ['a = 1 || b = 2', 7, 'use or instead of "||"'],
    ['(a = 1 | b = 2)', 8, 'use or instead of "|"'],
    ['!a = 1', 1, 'use not, or != instead of "!"'],
    ['a ! in (1)', 3, 'use not, or != instead of "!"'],
    ['(select x from y)', 2, 'subqueries are not supported'],
    ['a in (SELECT x from y)', 7, 'subqueries are not supported'],
    ['a = (select x from y)', 6, 'subqueries are not supported'],
    ['select x', 1, 'subqueries are not supported'],
    ['b = 1 and lower(a) = 1', 11, 'functions are not supported'],
    ['a.size() = 1', 1, 'functions are not supported'],
    ['a = lower(b)', 5, 'functions are not supported'],
    ['1 member of lower (a)', 13, 'functions are not supported'],
    ['a + 1 = 2', 3, 'arithmetic is not supported (put a date in quotes)'],
    ['a -1 = 2', 3, 'arithmetic is not supported (put a date in quotes)'],
    ['a = 1 * 2', 7, 'arithmetic is not supported (put a date in quotes)'],
    ['a = - 5', 5, 'arithmetic is not supported (put a date in quotes)'],
    ['a > 2024-01-31', 9, 'arithmetic is not supported (put a date in quotes)'],
    ['1 = a', 1, 'write the field first, then the operator and the value'],
    ['a = 1 and :missing = b', 11, 'write the field first, then the operator and the value'],
    ["'x' not in (1)", 1, 'write the field first, then the operator and the value'],
    ['true', 1, 'write the field first, then the operator and the value'],
    ["a = 'x''", 5, 'this text has no closing quote'],
    ['a = "x\'', 5, 'this text has no closing quote'],
    ['b = 1 and (a = 1', 11, 'this parenthesis has no closing ")"'],
    ['((a = 1)', 1, 'this parenthesis has no closing ")"'],
    ['a in (1, 2', 6, 'this parenthesis has no closing ")"'],
    ['a in (', 6, 'this parenthesis has no closing ")"'],
    ['a = 1)', 6, 'this parenthesis has no opening "("'],
    ['a = 1e5', 5, '"1e5" is not a number such as 12 or -12.5'],
    ['a = 1.', 5, '"1." is not a number such as 12 or -12.5'],
    ['a = 1.2.3', 5, '"1.2.3" is not a number such as 12 or -12.5'],
    ['a = :', 5, '":" is not a parameter such as :name or :name.part'],
    ['a = :b.', 5, '":b." is not a parameter such as :name or :name.part'],
    ['a = :1', 5, '":1" is not a parameter such as :name or :name.part'],
    ['a # 1', 3, 'unexpected character "#" (U+0023)'],
    ['a = 🙂', 5, 'unexpected character "🙂" (U+1F642)'],
    ["'🙂' member of a #", 18, 'unexpected character "#" (U+0023)'],
  ])('the filter %s is rejected with the column and the reason', (text, column, message) => {
    expect(catchError(text)).toBe(`filter, column ${column}: ${message}`)
  })

  test('an invisible character is reported with its code point', () => {
    expect(catchError('a = \u200b1')).toContain('column 5: unexpected character "\u200b" (U+200B)')
    expect(catchError('a = \0')).toContain(String.raw`column 5: unexpected character "\u0000" (U+0000)`)
    expect(catchError('a = \ud800')).toContain(String.raw`column 5: unexpected character "\ud800" (U+D800)`)
  })

  test('the first of two errors in a filter is reported', () => {
    expect(catchError('a == 1 and #')).toContain('column 3: use =')
    expect(catchError('a = # and b == 1')).toContain('column 5: unexpected character "#"')
  })

  test('a missing parameter is rejected at its column, with a similar name as a hint', () => {
    expect(catchError('a = 1 and b = :nmae', { name: 1, age: 2 })).toBe(
      'filter, column 15: unknown parameter ":nmae" (did you mean "name"?)',
    )
    expect(catchError('a in (1, :user.iid)', { user: { id: 1 } })).toBe(
      'filter, column 10: :user has no "iid" (did you mean "id"?)',
    )
    expect(catchError('a = :x', { x: undefined })).toContain('column 5: unknown parameter ":x"')
    expect(catchError('a = :x.y', { x: null })).toBe(
      'filter, column 5: :x has no "y", because it is not an object',
    )
  })

  test('the search for a similar name is bounded in count and length', () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`unlike${index}`, 1]))
    expect(catchError('a = :nmae', { ...many, name: 1 })).not.toContain('did you mean')
    const long = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`x${index}`.repeat(100_000), 1]),
    )
    const ms = processorTimeOf(() =>
      expect(catchError(`a = :${'b'.repeat(64)}`, long)).toContain('unknown parameter'),
    )
    expect(ms).toBeLessThan(500)
  })

  test('the parameter of in must be a list', () => {
    expect(catchError('a in :id', { id: 1 })).toBe('filter, column 6: the parameter ":id" must be a list')
    expect(catchError('a in :x.y', { x: { y: null } })).toContain(
      'column 6: the parameter ":x.y" must be a list',
    )
  })

  test('a parameter that is a list among other values is rejected', () => {
    expect(catchError('a in (1, :ids)', { ids: [2] })).toBe(
      'filter, column 10: a parameter with a list must be the only value in the parentheses',
    )
  })

  test('a filter without a condition is rejected as empty, under its own name', () => {
    expect(catchError('')).toBe('filter is empty')
    expect(() => parseFilter(' \n\t', {}, '_domain')).toThrow('_domain is empty')
  })
})

describe('limits of filters', () => {
  test('a filter of 10,000 characters is parsed, and a longer one is rejected', () => {
    const text = `a = '${'x'.repeat(9_994)}'`
    expect(parse(text)).toEqual(term('a', '=', 'x'.repeat(9_994)))
    expect(catchError(`${text} `)).toBe('filter is too long: at most 10000 characters')
  })

  test('parentheses may be nested to the maximum depth, and no deeper', () => {
    const nested = (depth: number) => `${'('.repeat(depth)}a = 1${')'.repeat(depth)}`
    expect(parse(nested(MAX_CONDITION_DEPTH))).toEqual(a)
    expect(catchError(nested(MAX_CONDITION_DEPTH + 1))).toBe(
      'filter, column 17: must not be nested deeper than 16 levels',
    )
    expect(catchError('('.repeat(10_000))).toContain('nested deeper')
  })

  test('each not counts as one level of depth', () => {
    expect(parse(`${'not '.repeat(MAX_CONDITION_DEPTH)}a = 1`)).toMatchObject({ operator: 'not' })
    expect(catchError(`${'not '.repeat(MAX_CONDITION_DEPTH + 1)}a = 1`)).toContain(
      'column 65: must not be nested deeper',
    )
    expect(catchError('not('.repeat(2_500))).toContain('column 33: must not be nested deeper')
  })

  test('conditions side by side do not count as depth', () => {
    const text = Array.from({ length: 500 }, () => 'not (a = 1)').join(' or ')
    expect(parse(text)).toEqual(group('or', ...Array.from({ length: 500 }, () => group('not', a))))
  })

  test.each(["'", "''", '(', '.', ':', '1.', '-', 'a.', '[]', ' ', ':a.', 'a[]', 'not '])(
    'a filter of only %s is parsed in bounded time',
    (piece) => {
      const text = piece.repeat(10_000 / piece.length)
      const ms = processorTimeOf(() => {
        for (const start of ['', 'a = ', 'a', 'a in (']) catchError(`${(start + text).slice(0, 9_998)} #`)
      })
      expect(ms).toBeLessThan(2_000)
    },
  )
})

describe('random filters', () => {
  const KEYWORDS = 'and or not like in between is null empty true false member of select self'.split(' ')

  const name = fc.oneof(
    fc.constantFrom('a', 'firstName', '_x9', '__proto__', 'constructor', 'Not', ...KEYWORDS),
    fc.stringMatching(/^[A-Za-z_]\w{0,8}$/),
  )
  const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('.'))
  const value = fc.oneof(
    fc.maxSafeInteger().map((number) => number + 0),
    fc.constantFrom(true, false, null),
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.stringMatching(/^['" a:(]{0,6}$/),
  )
  const termOf = fc.oneof(
    fc.record({ path, operator: fc.constantFrom<Operator>('=', '!=', '<', '<=', '>', '>='), value }),
    fc.record({ path, operator: fc.constantFrom<Operator>('like', 'notLike'), value }),
    fc.record({
      path,
      operator: fc.constantFrom<Operator>('in', 'notIn'),
      value: fc.array(value, { maxLength: 4 }),
    }),
    fc.record({ path, operator: fc.constantFrom<Operator>('between', 'notBetween'), value, value2: value }),
    fc.record({
      path,
      operator: fc.constantFrom<Operator>('isNull', 'notNull', 'isEmpty', 'notEmpty'),
    }),
  )
  const { tree } = fc.letrec<{ tree: Bare }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5, depthSize: 'small' },
      termOf,
      fc.record({
        operator: fc.constantFrom('and' as const, 'or' as const),
        conditions: fc.array(tie('tree'), { minLength: 2, maxLength: 4 }),
      }),
      fc.record({ operator: fc.constant('not' as const), conditions: fc.tuple(tie('tree')) }),
    ),
  }))

  const SPELLED: Partial<Record<Operator, string>> = {
    notLike: 'not like',
    notIn: 'not in',
    notBetween: 'not between',
    isNull: 'is null',
    notNull: 'is not null',
    isEmpty: 'is empty',
    notEmpty: 'is not empty',
  }

  /** Prints a tree in one of its many equivalent spellings; `choices` selects which. */
  class Printer {
    readonly parameters: Record<string, unknown> = {}
    readonly #choices: readonly number[]
    #chosen = 0

    constructor(choices: readonly number[]) {
      this.#choices = choices
    }

    print(condition: Bare): string {
      const text = 'path' in condition ? this.#term(condition) : this.#group(condition)
      return this.#isChosen(5) ? `(${text})` : text
    }

    #isChosen(oneOf: number): boolean {
      return (this.#choices[this.#chosen++ % this.#choices.length] ?? 0) % oneOf === 0
    }

    #spell(words: string): string {
      const spelled = this.#isChosen(2) ? words : words.toUpperCase()
      return spelled.replaceAll(' ', this.#isChosen(3) ? '\n ' : ' ')
    }

    #group({ operator, conditions }: Extract<Bare, { conditions: Bare[] }>): string {
      const parts = conditions.map((condition) => {
        const isLoose = !('path' in condition) && condition.operator !== 'not'
        const isCloser = operator === 'or' && condition.operator === 'and'
        return isLoose && !isCloser ? `(${this.print(condition)})` : this.print(condition)
      })
      if (operator === 'not') return `${this.#spell('not')} ${parts.join('')}`
      return parts.join(` ${this.#spell(operator)} `)
    }

    #term({ path, operator, value, value2 }: Extract<Bare, { path: string }>): string {
      if (operator === '=' && this.#isChosen(4)) {
        return `${this.#value(value)} ${this.#spell('member of')} ${this.#path(path)}`
      }
      const isInequality = operator === '!=' && this.#isChosen(2)
      const spelled = isInequality ? '<>' : this.#spell(SPELLED[operator] ?? operator)
      const start = `${this.#path(path)} ${spelled}`
      if (operator.endsWith('Null') || operator.endsWith('Empty')) return start
      if (Array.isArray(value)) return `${start} ${this.#list(value)}`
      const end = operator.endsWith('etween') ? ` ${this.#spell('and')} ${this.#value(value2)}` : ''
      return `${start} ${this.#value(value)}${end}`
    }

    #path(path: string): string {
      const [first = ''] = path.split('.')
      const isMistakable = KEYWORDS.includes(first.toLowerCase())
      const whole = isMistakable || this.#isChosen(2) ? `self.${path}` : path
      return this.#isChosen(3) ? whole.replaceAll('.', '[] . ').replace(/^self\[\]/i, 'self') : whole
    }

    #list(values: readonly unknown[]): string {
      if (this.#isChosen(3))
        return this.#isChosen(2) ? this.#parameter(values) : `(${this.#parameter(values)})`
      return `(${values.map((item) => this.#value(item)).join(this.#isChosen(2) ? ',' : ' , ')})`
    }

    #value(value: unknown): string {
      if (this.#isChosen(4)) return this.#parameter(value)
      if (typeof value !== 'string') return this.#spell(String(value))
      const quote = this.#isChosen(2) ? "'" : '"'
      return quote + value.replaceAll(quote, quote + quote) + quote
    }

    #parameter(value: unknown): string {
      const key = `p${Object.keys(this.parameters).length}`
      const isDeep = this.#isChosen(2)
      this.parameters[key] = isDeep ? { of: value } : value
      return isDeep ? `:${key}${this.#isChosen(2) ? '.' : '$'}of` : `:${key}`
    }
  }

  test('a printed tree is parsed as the same tree', () => {
    fc.assert(
      fc.property(tree, fc.array(fc.nat(1_000), { minLength: 1, maxLength: 50 }), (written, choices) => {
        const printer = new Printer(choices)
        const text = printer.print(written)
        fc.pre(text.length <= 10_000)
        expect(parse(text, printer.parameters)).toEqual(written)
      }),
      { numRuns: 3_000 },
    )
  })

  test('random text is parsed, or rejected with a column inside the text', () => {
    const piece = fc.oneof(
      fc.constantFrom(...KEYWORDS, 'a', 'b.c', ':p', ':p.q', '12', '-1.5', "'x'", '"', "'", '__proto__'),
      fc.constantFrom('=', '!=', '<>', '<', '==', '(', ')', ',', '.', '[', ']', '$', ':', '!', '&&', '+'),
      fc.string({ unit: 'binary', maxLength: 3 }),
    )
    const garbage = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join(' ')),
      fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join('')),
    )
    fc.assert(
      fc.property(garbage, (text) => {
        let message: string
        try {
          parseFilter(text, { p: { q: [1] } }, 'filter')
          return
        } catch (error) {
          expect(error).toBeInstanceOf(VersoError)
          message = (error as VersoError).message
        }
        if (message === 'filter is empty') return
        const column = Number(/^filter, column (\d+): /.exec(message)?.[1])
        expect(column).toBeGreaterThanOrEqual(1)
        expect(column).toBeLessThanOrEqual(text.length + 1)
      }),
      { numRuns: 10_000 },
    )
  })
})
