// Patterns and formats of text fields: which definitions are accepted, and which values.
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import { describeModelDocument } from '../../src/formats/model-schema.js'
import { describeModel } from '../../src/formats/model-description.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { checkField } from '../../src/model/definition/check-field.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { FieldError, type Field } from '../../src/model/values/field.js'
import { createPatternRule, type FieldRule } from '../../src/model/values/field-rules.js'
import { parseValue } from '../../src/model/values/field-types.js'
import { anchoredWithoutGroup, unanchored } from '../mutants/rules.js'
import { processorTimeOf } from '../processor-time.js'

function fieldOf(definition: object): Field {
  const errors: string[] = []
  const field = checkField('f', { type: 'string', ...definition }, (error) => errors.push(error))
  if (!field || errors.length > 0) throw new ConfigError('invalid', errors)
  return field
}

function errorsOf(definition: object): readonly string[] {
  const errors: string[] = []
  checkField('f', { type: 'string', ...definition }, (error) => errors.push(error))
  return errors
}

/** The message for the value; undefined if it is accepted. */
function errorOf(field: Field, value: unknown): string | undefined {
  const parsed = parseValue(field, value)
  return parsed instanceof FieldError ? parsed.message : undefined
}

const accepts = (field: Field, value: unknown) => errorOf(field, value) === undefined

describe('the pattern of a field', () => {
  const plate = fieldOf({ pattern: '[A-Z]{2}\\d{4}' })

  test('accepts values that match as a whole, and rejects all others with the pattern in the message', () => {
    expect(accepts(plate, 'ZH1234')).toBe(true)
    for (const wrong of ['zh1234', 'ZH12345', 'xZH1234', 'ZH1234\n', ' ZH1234'])
      expect(errorOf(plate, wrong)).toBe('must match [A-Z]{2}\\d{4}')
  })

  const expectWholeMatches = (change: (rule: FieldRule) => FieldRule) => {
    const [digits, words] = [change(createPatternRule('\\d{4}')), change(createPatternRule('yes|no'))]
    expect(digits.validate('1234')).toBeUndefined()
    expect(words.validate('no')).toBeUndefined()
    const wrong = [digits.validate('a1234'), digits.validate('12345')]
    expect([...wrong, words.validate('yesterday'), words.validate('casino')]).not.toContain(undefined)
  }

  test('must match the whole value, also with alternatives', () => {
    expectWholeMatches((rule) => rule)
  })

  test('a mutant without anchors, and one that anchors single alternatives, are caught', () => {
    for (const mutant of [unanchored, anchoredWithoutGroup]) {
      expect(mutant(createPatternRule('\\d{4}')).validate('1234')).toBeUndefined()
      expect(() => {
        expectWholeMatches(mutant)
      }).toThrow(/to not include/)
    }
  })

  test('counts in code points: a dot matches an emoji', () => {
    expect(accepts(fieldOf({ pattern: '.' }), '😀')).toBe(true)
    expect(accepts(fieldOf({ pattern: '\\p{Lu}+' }), 'ÄÖ')).toBe(true)
  })

  test('does not apply to an empty text, which is no error of its own', () => {
    expect(accepts(plate, '')).toBe(true)
  })

  test('has a message of its own', () => {
    const field = fieldOf({ pattern: { value: '\\d+', message: 'must consist of digits' } })
    expect(errorOf(field, 'x')).toBe('must consist of digits')
  })

  test('applies to texts, too, and after the length', () => {
    expect(errorOf(fieldOf({ type: 'text', pattern: 'a*' }), 'b')).toBe('must match a*')
    expect(errorOf(fieldOf({ length: 3, pattern: 'a*' }), 'bbbb')).toBe('must have at most 3 characters')
  })

  test('the default and the selection must match it', () => {
    expect(errorsOf({ pattern: 'a+', default: 'b' })).toEqual(['default must match a+'])
    expect(errorsOf({ pattern: 'a+', selection: ['a', 'b'] })).toEqual(['selection: "b" must match a+'])
  })

  test.each([
    ['(', /^pattern is not a regular expression: .*Unterminated group/],
    ['a)(b', /^pattern is not a regular expression: .*Unmatched '\)'/],
    ['\\d{2,1}', /numbers out of order/],
    ['\\-', /Invalid escape/],
    ['', /^pattern must be non-empty text, or \{ value, message \}$/],
    [5, /^pattern must be non-empty text/],
    [/a/, /^pattern must be non-empty text/],
    [null, /^pattern must be non-empty text/],
    [{ value: 'a', mesage: 'x' }, /^pattern: unknown option "mesage" \(did you mean "message"\?\)$/],
    [{ value: 'a', message: ' ' }, /^pattern: message must be text/],
    [{ message: 'x' }, /^pattern must be non-empty text/],
  ])('an invalid pattern %j is an error of the definition', (pattern, error) => {
    expect(errorsOf({ pattern })).toEqual([expect.stringMatching(error)])
  })

  test('is an option of strings and texts only', () => {
    expect(errorsOf({ type: 'integer', pattern: 'a' })).toEqual(['unknown option "pattern" for type integer'])
    expect(errorsOf({ type: 'date', format: 'email' })).toEqual(['unknown option "format" for type date'])
    expect(errorsOf({ sequence: {}, pattern: 'a' })).toEqual([
      expect.stringMatching(/^a sequence cannot have a pattern or a format/),
    ])
  })
})

/** Slow comparisons share a limit for each turn of the event loop. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('hostile values', () => {
  test.each([
    ['(a+)+', 'a'.repeat(100)],
    ['(a|a)*', 'a'.repeat(100)],
    ['(?:a?){60}a{60}', 'a'.repeat(59)],
    [`${'a?'.repeat(60)}${'a'.repeat(60)}`, 'a'.repeat(59)],
    ['(.*)\\1\\1b', 'a'.repeat(20_000)],
    ['a*a*a*a*a*a*', 'a'.repeat(200)],
  ])('cannot block the service with the pattern %s', async (pattern, text) => {
    await nextTurn()
    const field = fieldOf({ type: 'text', pattern })
    let error: string | undefined
    expect(processorTimeOf(() => (error = errorOf(field, `${text}!`)))).toBeLessThan(1_000)
    // Some engines decide it in time; the answer is an error in either case.
    expect(error).toMatch(/^takes more than 50 ms to compare with the pattern|^must match/)
    expect(accepts(fieldOf({ pattern: '(?:[a-z]+\\.)+[a-z]+' }), 'www.example.org')).toBe(true)
  })

  test('of 1,000 values in one request, only the first ones take the whole limit, and a careful pattern still accepts', async () => {
    await nextTurn()
    const careless = fieldOf({ pattern: '(a+)+' })
    const errors = new Set<string | undefined>()
    const ms = processorTimeOf(() => {
      for (let count = 0; count < 3; count++) errors.add(errorOf(careless, `${'a'.repeat(60)}!`))
      expect(accepts(fieldOf({ pattern: '(?:[a-z]+\\.)+[a-z]+' }), 'www.example.org')).toBe(true)
      for (let count = 0; count < 1_000; count++) errors.add(errorOf(careless, `${'a'.repeat(60)}!`))
    })
    expect(ms).toBeLessThan(2_000)
    expect([...errors]).toEqual([
      'takes more than 50 ms to compare with the pattern (a+)+: send a shorter value',
      'was not compared with the pattern (a+)+, because other values took too long: send fewer or shorter values',
    ])
    await nextTurn()
    expect(accepts(careless, 'aaa')).toBe(true)
  })

  test('a time limit ends the comparison with a pattern that needs exponential time', async () => {
    await nextTurn()
    const error = errorOf(fieldOf({ pattern: '(a+)+' }), `${'a'.repeat(60)}!`)
    expect(error).toBe('takes more than 50 ms to compare with the pattern (a+)+: send a shorter value')
  })

  test('the formats decide about a megabyte at once', () => {
    const long = fieldOf({ type: 'text', format: 'email' })
    const url = fieldOf({ type: 'text', format: 'url' })
    for (const part of ['a', '@', '.', ' ', 'a@', 'a.', '-']) {
      const text = part.repeat(500_000)
      expect(processorTimeOf(() => errorOf(long, text))).toBeLessThan(200)
      expect(processorTimeOf(() => errorOf(url, `http://${text}`))).toBeLessThan(1_000)
    }
  })
})

describe('the format of a field', () => {
  const [email, url] = [
    fieldOf({ format: 'email', length: 1_000 }),
    fieldOf({ format: 'url', length: 5_000 }),
  ]

  test.each([
    'ada@example.org',
    'ada.lovelace+x@mail.example.org',
    "o'neil@example.org",
    'ada@localhost',
    'ädä@münchen.de',
    'a@b-c.de',
    `${'a'.repeat(64)}@example.org`,
    '',
  ])('email accepts %s', (value) => {
    expect(errorOf(email, value)).toBeUndefined()
  })

  test.each([
    'ada',
    '@example.org',
    'ada@',
    'ada@@example.org',
    'a@b@c',
    'ada @example.org',
    'ada@exam ple.org',
    'ada@example..org',
    'ada@.org',
    'ada@example.',
    'ada@-example.org',
    'Ada <ada@example.org>',
    'ada@example.org, bob@example.org',
    'ada@example.org\n',
    `${'a'.repeat(65)}@example.org`,
    `a@${'b'.repeat(64)}.org`,
    `a@${'b.'.repeat(150)}org`,
  ])('email rejects %s', (value) => {
    expect(errorOf(email, value)).toBe('must be an e-mail address')
  })

  test.each([
    'http://example.org',
    'https://example.org:8080/a?b=c#d',
    'HTTPS://EXAMPLE.ORG',
    'http://münchen.de/ä',
    'http://[::1]/',
    'http://user:word@example.org',
    '',
  ])('url accepts %s', (value) => {
    expect(errorOf(url, value)).toBeUndefined()
  })

  test.each([
    'example.org',
    '//example.org',
    'http:example.org',
    'http://',
    'http:///a',
    'ftp://example.org',
    'javascript:alert(1)',
    'mailto:ada@example.org',
    'http://exa mple.org',
    ' http://example.org',
    'http://example.org\n',
    'java\nscript://example.org',
    'http://example.org:99999',
    'http://%zz',
  ])('url rejects %s', (value) => {
    expect(errorOf(url, value)).toBe('must be a URL that begins with http:// or https://')
  })

  test('has a message of its own, and is checked beside a pattern', () => {
    const field = fieldOf({
      format: { value: 'email', message: 'must be the address of an employee' },
      pattern: { value: '.*@example\\.org', message: 'must end with @example.org' },
    })
    expect(errorOf(field, 'ada@example.com')).toBe('must end with @example.org')
    expect(errorOf(field, 'a b@example.org')).toBe('must be the address of an employee')
    expect(accepts(field, 'ada@example.org')).toBe(true)
  })

  test.each([
    ['emial', /^format must be "email" or "url" \(did you mean "email"\?\)$/],
    ['uri', /^format must be "email" or "url" \(did you mean "url"\?\)$/],
    [true, /^format must be non-empty text/],
  ])('an unknown format %j is an error of the definition', (format, error) => {
    expect(errorsOf({ format })).toEqual([expect.stringMatching(error)])
  })
})

describe('descriptions of a model', () => {
  const Contact = defineModel({
    name: 'crm.Contact',
    fields: {
      code: { type: 'string', pattern: '[A-Z]+|x' },
      email: { type: 'string', format: 'email' },
      site: { type: 'text', format: { value: 'url', message: 'must be our site' } },
    },
  })
  const catalog = Catalog.from([{ file: 'm.ts', definition: Contact }])
  const model = catalog.get('crm.Contact')

  test('the metadata of a field has its pattern and its format', () => {
    const { fields } = describeModel(catalog, model, null)
    expect(fields).toContainEqual(expect.objectContaining({ name: 'code', pattern: '[A-Z]+|x' }))
    expect(fields).toContainEqual(expect.objectContaining({ name: 'email', format: 'email' }))
    expect(fields).toContainEqual(expect.objectContaining({ name: 'site', format: 'url' }))
    expect(Object.keys(fields.find(({ name }) => name === 'email') ?? {})).not.toContain('pattern')
  })

  test('the JSON Schema of a request has them, and that of a record does not: values may be older than a rule', () => {
    const schema = describeModelDocument(catalog, model, {
      ...{ id: 'x', refusesUnknownFields: true },
      actions: new Set(['read', 'create', 'update'] as const),
    }) as {
      readonly properties: Readonly<Record<string, object>>
      readonly $defs: Readonly<Record<string, { readonly properties: Readonly<Record<string, object>> }>>
    }
    const create = schema.$defs['create']?.properties ?? {}
    expect(create['code']).toMatchObject({ pattern: '^(?:[A-Z]+|x)?$' })
    expect(create['email']).toMatchObject({ format: 'email' })
    expect(create['site']).toMatchObject({ format: 'uri' })
    for (const name of ['code', 'email', 'site']) {
      expect(schema.properties[name]).toBeDefined()
      expect(schema.properties[name]).not.toHaveProperty('pattern')
      expect(schema.properties[name]).not.toHaveProperty('format')
    }
  })
})
