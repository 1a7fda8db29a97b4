// The checks of a model: their definitions, the errors at start, and their form in domain XML.
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { formatModel } from '../../src/formats/model-file.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { applyExtensions, extendModel } from '../../src/model/definition/extend-model.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { parseFilter } from '../../src/model/query/filter.js'
import { domain, field, read } from './domain.js'
import { errorsOf } from './catalog-errors.js'

const FIELDS = {
  start: { type: 'date' },
  end: { type: 'date' },
  begin: { type: 'datetime' },
  count: { type: 'integer' },
  total: { type: 'long' },
  price: { type: 'decimal' },
  name: { type: 'string' },
  note: { type: 'text' },
  state: { type: 'enum', selection: ['open', 'done'] },
  isOpen: { type: 'boolean' },
  isSold: { type: 'boolean' },
  key: { type: 'uuid' },
  data: { type: 'json' },
  pin: { type: 'string', secret: true },
  scan: { type: 'binary' },
  owner: { type: 'many-to-one', target: 'a.B' },
  parts: { type: 'one-to-many', target: 'a.B', mappedBy: 'owner' },
  links: { type: 'many-to-many', target: 'a.B' },
  in: { type: 'integer' },
} as const

const model = (...checks: readonly unknown[]) => ({ name: 'a.B', fields: FIELDS, checks })

function boundOf(...checks: readonly unknown[]) {
  const catalog = Catalog.from([{ file: 'm.json', definition: model(...checks) }])
  return catalog.findChecks(catalog.get('a.B'))
}

const check = (condition: string, field?: string) => ({
  condition,
  message: 'is wrong',
  ...(field === undefined ? {} : { field }),
})

describe('the conditions of checks', () => {
  test.each([
    'end >= start',
    'self.end >= self.start',
    'count < total',
    'count <= price',
    'name != note',
    'state = name',
    'isOpen != isSold',
    'key = key',
    'count > 0 and count < 10',
    "state = 'open' or end is not null",
    'not (isOpen = true and owner is null)',
    "name like 'A%'",
    "state in ('open', 'done')",
    'count between 1 and 10',
    'data is not null',
    'isOpen is not true or end >= start',
    'self.in > 5',
    'count > self.in',
  ])('%s is valid', (condition) => {
    expect(errorsOf(model(check(condition)))).toEqual([])
  })

  test.each([
    ['end >= strat', /column 8: a\.B has no field "strat" \(did you mean "start"\?\)/],
    ['ende >= start', /column 1: a\.B has no field "ende" \(did you mean "end"\?\)/],
    ['end => start', /column 5: use >= instead of "=>"/],
    ['end >= begin', /column 1: end is of type date and begin of type datetime: they cannot be compared/],
    ['name >= count', /name is of type string and count of type integer/],
    ['data = data', /data is of type json and data of type json: they cannot be compared/],
    ['isOpen > isSold', /isOpen: ">" does not apply to type boolean/],
    ['key < key', /key: "<" does not apply to type uuid/],
    [
      'owner.name = name',
      /owner\.name is a field of another record: a check can only use fields of a\.B itself/,
    ],
    ['name = owner.name', /column 8: owner\.name is a field of another record/],
    ['owner = 5', /owner is a relation: a check can only test it with is null or is not null/],
    ['owner = owner', /owner is a relation/],
    ['parts is empty', /parts is a list: a check cannot use it/],
    ['links is not empty', /links is a list: a check cannot use it/],
    ["pin = 'x'", /pin is secret or binary: a check cannot use it/],
    ['scan is null', /scan is secret or binary/],
    ['id > 5', /id is set by the service: a check cannot use it/],
    ["createdOn > '2020-01-01'", /createdOn is set by the service/],
    ['name.first = note', /a\.B has no field "name\.first"/],
    ["count = 'x'", /count: value must be a whole number/],
    ['count = 1.5', /count: value must be a whole number/],
    ['end = null', /end: a comparison with null is never true: use is null or is not null/],
    ['end >=', /column 7: expected a value or a field, found the end/],
    ['end between start and begin', /expected a value, found "start"/],
    ['count = :user', /unknown parameter ":user"/],
    ['count + 1 = total', /arithmetic is not supported/],
    ['lower(name) = note', /functions are not supported/],
    ['', /checks\[0\] "" is empty/],
    ['name', /expected an operator, found the end/],
    [Array.from({ length: 65 }, () => 'count > 1').join(' and '), /at most 64 comparisons/],
    [`${'('.repeat(20)}count > 1${')'.repeat(20)}`, /nested deeper than 16 levels/],
  ])('%s is an error at start', (condition, error) => {
    const [message, ...others] = errorsOf(model(check(condition)))
    expect(message).toMatch(/^m1\.json: a\.B: checks\[0\] "/)
    expect(message).toMatch(error)
    expect(others).toEqual([])
  })

  test('all errors of all checks and models are reported together', () => {
    const other = { name: 'a.C', fields: { f: { type: 'strnig' } } }
    const errors = errorsOf(model(check('end >= strat and cuont > 1', 'edn'), check('start < 5')), other)
    expect(errors).toEqual([
      expect.stringMatching(/^m2\.json: a\.C\.f: type must be one of/),
      'm1.json: a.B: checks[0] "end >= strat and cuont > 1", column 8: a.B has no field "strat" (did you mean "start"?)',
      'm1.json: a.B: checks[0] "end >= strat and cuont > 1", column 18: a.B has no field "cuont" (did you mean "count"?)',
      'm1.json: a.B: checks[0] "end >= strat and cuont > 1": field: a.B has no field "edn" (did you mean "end"?)',
      'm1.json: a.B: checks[1] "start < 5", column 1: start: value must be a date such as "2024-01-31"',
    ])
  })

  test('a filter of a search or a permission cannot compare two fields, and says what it said before', () => {
    expect(() => parseFilter('end >= start', {}, 'filter')).toThrow(
      new VersoError('bad-request', 'filter, column 8: expected a value, found "start" (put text in quotes)'),
    )
  })
})

describe('the definitions of checks', () => {
  test.each([
    [5, /^m1\.json: a\.B: checks must be a list of \{ condition, message, field \}$/],
    [['end >= start'], /^m1\.json: a\.B: checks\[0\] must be an object such as/],
    [[{ condition: 'end >= start' }], /checks\[0\]: message must be text/],
    [[{ condition: 'end >= start', message: '' }], /checks\[0\]: message must be text/],
    [[{ message: 'x' }], /checks\[0\]: condition must be text such as "end >= start"/],
    [
      [{ ...check('end >= start'), filed: 'end' }],
      /checks\[0\]: unknown option "filed" \(did you mean "field"\?\)/,
    ],
    [[{ ...check('end >= start'), field: 5 }], /checks\[0\]: field must be the name of a field/],
    [Array.from({ length: 101 }, () => check('count > 1')), /a model can have at most 100 checks/],
  ])('%j is an error at start', (checks, error) => {
    expect(errorsOf({ name: 'a.B', fields: FIELDS, checks })).toEqual([expect.stringMatching(error)])
  })

  test('a misspelled option of the model is an error with a suggestion', () => {
    expect(errorsOf({ name: 'a.B', fields: FIELDS, check: [] })).toEqual([
      'm1.json: a.B: unknown option "check" (did you mean "checks"?)',
    ])
  })

  test('the error is about the first field of the condition, unless the check names another one', () => {
    const bound = boundOf(check('not (self.end < start) or count > 1'), check('end >= start', 'start'))
    expect(bound?.checks.map(({ field }) => field)).toEqual(['end', 'start'])
  })

  test('a model without checks has none', () => {
    expect(boundOf()).toBeUndefined()
  })

  test('an extension adds its checks to those of the model', () => {
    const base = defineModel({
      name: 'a.B',
      fields: { start: { type: 'date' }, end: { type: 'date' } },
      checks: [{ condition: 'end >= start', message: 'must not be before the start' }],
    })
    const first = extendModel({
      name: 'a.B',
      fields: { count: { type: 'integer' } },
      checks: [{ condition: 'count > 0', message: 'must be positive' }],
    })
    const second = extendModel({ name: 'a.B', checks: [{ condition: 'count < 9', message: 'is too large' }] })
    const { checks } = applyExtensions(base, [first, second])
    expect(checks?.map(({ condition }) => condition)).toEqual(['end >= start', 'count > 0', 'count < 9'])
    expect(base.checks).toHaveLength(1)
    const catalog = Catalog.from([{ file: 'm.ts', definition: applyExtensions(base, [first, second]) }])
    expect(catalog.findChecks(catalog.get('a.B'))?.checks).toHaveLength(3)
  })

  test('an extension reports a base whose checks are not a list', () => {
    const base = { name: 'a.B', fields: FIELDS, checks: 'end >= start' } as never
    expect(errorsOf(applyExtensions(base, [{ name: 'a.B', checks: [check('count > 0')] }]))).toEqual([
      expect.stringMatching(/checks must be a list/),
    ])
  })

  test('an extension of the user model can have checks of its fields', () => {
    const extension = extendModel({
      name: USER_MODEL,
      fields: { desk: { type: 'integer' } },
      checks: [{ condition: 'desk > 0', message: 'must be positive' }],
    })
    const catalog = Catalog.from([{ file: 'm.ts', definition: extension }])
    expect(catalog.findChecks(catalog.user)?.checks).toMatchObject([{ field: 'desk' }])
  })
})

describe('rules in domain XML', () => {
  const entity = (body: string, attributes = '') =>
    domain(`<entity name="A" jsonAttrs="false" ${attributes}>${body}</entity>`)

  test('pattern, format and message become options of the field', () => {
    expect(field('<string name="a" pattern="[A-Z]+" max="9" default="AB"/>')).toEqual({
      definition: { type: 'string', length: 9, default: 'AB', pattern: '[A-Z]+' },
      report: [],
    })
    expect(field('<string name="a" format="email" message="must be ours"/>')).toEqual({
      definition: { type: 'string', format: { value: 'email', message: 'must be ours' } },
      report: [],
    })
    expect(field('<string name="a" large="true" pattern="&lt;.+&gt;" format="url" message="m"/>')).toEqual({
      definition: {
        type: 'text',
        pattern: { value: '<.+>', message: 'm' },
        format: { value: 'url', message: 'm' },
      },
      report: [],
    })
  })

  test('checks become checks of the model, and those of extended and repeated entities are merged', () => {
    const { definitions, report, faults } = read([
      domain(
        '<entity name="Base" persistable="false"><date name="start"/><date name="end"/><check condition="end &gt;= start" message="too early"/></entity>' +
          '<entity name="A" extends="Base" jsonAttrs="false"><integer name="n"/><check condition="n &gt; 0" message="too small" field="n"/></entity>',
      ),
      entity('<check condition="n &lt; 9" message="too large"/><string name="s" pattern="x+"/>'),
      entity('<string name="s" message="must be x"/>'),
    ])
    expect({ report, faults }).toEqual({ report: [], faults: [] })
    const [definition] = definitions
    expect(definition?.checks).toEqual([
      { condition: 'end >= start', message: 'too early' },
      { condition: 'n > 0', message: 'too small', field: 'n' },
      { condition: 'n < 9', message: 'too large' },
    ])
    expect(definition?.fields['s']).toEqual({
      type: 'string',
      pattern: { value: 'x+', message: 'must be x' },
    })
    expect(errorsOf(definition)).toEqual([])
  })

  test('an empty attribute in a later declaration removes an inherited rule', () => {
    const { definitions } = read([
      entity('<string name="s" pattern="x+"/>'),
      entity('<string name="s" pattern=""/>'),
    ])
    expect(definitions[0]?.fields['s']).toEqual({ type: 'string' })
  })

  test('an invalid rule is an error at start, because a service without it would store what it forbids', () => {
    const errors = (xml: string) => errorsOf(read([entity(xml)]).definitions[0])
    expect(errors('<string name="s" pattern="("/>')).toEqual([
      expect.stringMatching(/A\.s: pattern is not a regular expression/),
    ])
    expect(errors('<string name="s" format="emial"/>')).toEqual([
      expect.stringMatching(/did you mean "email"/),
    ])
    expect(errors('<string name="s" pattern="x" default="y"/>')).toEqual([
      expect.stringMatching(/A\.s: default must match x/),
    ])
    expect(errors('<integer name="n" pattern="x"/>')).toEqual([
      expect.stringMatching(/unknown option "pattern" for type integer/),
    ])
    expect(errors('<integer name="n"/><check condition="m &gt; 0" message="x"/>')).toEqual([
      expect.stringMatching(/A: checks\[0\] "m > 0", column 1: .*has no field "m"/),
    ])
    expect(errors('<integer name="n"/><check condition="n &gt; 0"/>')).toEqual([
      expect.stringMatching(/checks\[0\]: message must be text/),
    ])
  })

  test('the report names unknown attributes and rules without effect', () => {
    expect(field('<string name="a" patern="x"/>').report).toEqual([
      'attribute A.a: patern (did you mean "pattern"?) in 1.xml',
    ])
    expect(field('<string name="a" message="x"/>').report).toEqual([
      'rule A.a: message without pattern or format',
    ])
    expect(read([entity('<many-to-one name="a" ref="A" pattern="x"/>')]).report).toEqual([
      'rule A.a: a relation cannot have a pattern or a format',
    ])
    const { report } = read([
      entity('<integer name="n"/><check condition="n &gt; 0" mesage="x" message="y"/>'),
    ])
    expect(report).toEqual(['attribute A <check>: mesage (did you mean "message"?) in 1.xml'])
  })

  test('the conversion to JSON and TypeScript keeps the rules', () => {
    const { definitions } = read([
      entity(
        '<string name="s" pattern="\\d&quot;\'\\\\+" message="must be \'so\'"/><integer name="n"/><check condition="n &gt; 0 and s != \'x\'" message="is wrong" field="n"/>',
      ),
    ])
    const [definition] = definitions
    if (!definition) throw new Error('there is no definition')
    const rules = {
      fields: { s: { pattern: { value: '\\d"\'\\\\+', message: "must be 'so'" } } },
      checks: [{ condition: "n > 0 and s != 'x'", message: 'is wrong', field: 'n' }],
    }
    expect(definition).toMatchObject(rules)
    expect(JSON.parse(formatModel(definition, 'json'))).toMatchObject(rules)
    const script = formatModel(definition, 'ts').replace(/^[^]*?defineModel\(/, '(')
    // The rest of the file is the literal of the definition.
    expect(runInNewContext(script)).toMatchObject(rules)
  })
})
