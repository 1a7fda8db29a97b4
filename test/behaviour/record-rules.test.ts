// Checks of a model, evaluated by each engine, and patterns of fields in every kind of write.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Values } from '../../src/model/values/value.js'
import { findCheckErrors } from '../../src/service/hooks/record-checks.js'
import { importRecords } from '../../src/service/transfer/import.js'
import type { Records } from '../../src/wire.js'
import { comparingTexts, refusingNull, reportingOne } from '../mutants/rules.js'
import { catchError, enter, onEveryEngine, onEveryTarget, startService, type Service } from '../targets.js'
import { faultsOf, sourcesIn, writeFiles } from '../transfer/transfer-fixture.js'

const FIELDS = {
  start: { type: 'date' },
  end: { type: 'date' },
  from: { type: 'datetime' },
  to: { type: 'datetime' },
  opens: { type: 'time' },
  closes: { type: 'time' },
  low: { type: 'decimal', scale: 1 },
  high: { type: 'decimal', precision: 38, scale: 10 },
  few: { type: 'integer' },
  many: { type: 'long' },
  first: { type: 'string' },
  last: { type: 'text' },
  state: { type: 'enum', selection: ['draft', 'paid'] },
  isOpen: { type: 'boolean' },
  isPaid: { type: 'boolean' },
  key: { type: 'uuid' },
  otherKey: { type: 'uuid' },
  data: { type: 'json' },
  owner: { type: 'many-to-one', target: 'rule.Pair' },
} as const

const Pair = defineModel({ name: 'rule.Pair', fields: FIELDS })
const check = (condition: string) => ({ condition, message: `breaks ${condition}` })
/** One model for each condition. */
const CONDITIONS = [
  'end >= start',
  'to > from',
  'closes > opens',
  'high >= low',
  'many >= few',
  'high >= few',
  'few >= low',
  'many = high',
  'last >= first',
  'first != last',
  'state = first',
  'isOpen != isPaid',
  'key != otherKey',
  'data is not null',
  'owner is not null',
  "state = 'draft' or (end is not null and few > 0)",
  "not (state = 'paid' and isOpen = true)",
  "first like 'é%' and few in (1, 2) and low between 1 and 2",
] as const
type Condition = (typeof CONDITIONS)[number]

const nameOf = (condition: Condition) => `rule.Check${CONDITIONS.indexOf(condition)}`
const CHECKED = CONDITIONS.map((condition) =>
  defineModel({ name: nameOf(condition), fields: FIELDS, checks: [check(condition)] }),
)
const Several = defineModel({
  name: 'rule.Several',
  fields: FIELDS,
  checks: [
    check('end >= start'),
    // Both compare the same integer with decimals.
    { condition: 'few >= low', message: 'is below low', field: 'low' },
    check('few <= high'),
    check('few > 0'),
  ],
})
const models = [Pair, Several, ...CHECKED].map((definition) => ({ file: 'rules.ts', definition }))

onEveryEngine((engine) => {
  let service: Service
  beforeAll(async () => {
    service = await startService(engine, { models })
  })
  afterAll(() => service.close())

  const errorsOf = (model: string, values: Values, find = findCheckErrors) => {
    const { app } = service
    return app.db.transaction((tx) => find({ app, tx }, app.catalog.get(model), values))
  }
  const isBroken = async (condition: Condition, values: Values, find = findCheckErrors) =>
    (await errorsOf(nameOf(condition), values, find)).length > 0

  describe('a check', () => {
    test.each<[Condition, Values, Values]>([
      [
        'end >= start',
        { start: '2024-02-01', end: '2024-02-01' },
        { start: '2024-10-01', end: '2024-09-30' },
      ],
      [
        'to > from',
        { from: '2024-01-01T00:00:00.000Z', to: '2024-01-01T00:00:00.001Z' },
        { from: '2024-01-01T00:00:00.001Z', to: '2024-01-01T00:00:00.001Z' },
      ],
      [
        'closes > opens',
        { opens: '08:00:00', closes: '18:00:00' },
        { opens: '08:00:00', closes: '07:59:59' },
      ],
      ['high >= low', { low: '9.5', high: '10.0000000000' }, { low: '10.0', high: '9.9999999999' }],
      ['high >= low', { low: '-10.0', high: '-9.5000000000' }, { low: '-9.5', high: '-10.0000000000' }],
      ['high >= low', { low: '9.5', high: '9.5000000000' }, { low: '0.1', high: '0.0999999999' }],
      ['many >= few', { few: 9, many: 10 }, { few: 10, many: 9 }],
      ['many >= few', { few: -1, many: Number.MAX_SAFE_INTEGER }, { few: 0, many: Number.MIN_SAFE_INTEGER }],
      ['high >= few', { few: 9, high: '10.0000000000' }, { few: 10, high: '9.9999999999' }],
      ['few >= low', { few: 10, low: '9.5' }, { few: 9, low: '9.5' }],
      ['few >= low', { few: -9, low: '-9.5' }, { few: -10, low: '-9.5' }],
      [
        'many = high',
        { many: Number.MAX_SAFE_INTEGER, high: '9007199254740991.0000000000' },
        // As binary floating-point numbers they are equal.
        { many: Number.MAX_SAFE_INTEGER, high: '9007199254740991.0000000001' },
      ],
      // By code point: capital letters come first, and an emoji comes after all other letters.
      ['last >= first', { first: 'Z', last: 'a' }, { first: 'a', last: 'Z' }],
      ['last >= first', { first: '\uff5e', last: '😀' }, { first: '😀', last: '\uff5e' }],
      ['last >= first', { first: '10', last: '9' }, { first: '9', last: '10' }],
      ['first != last', { first: 'a', last: 'A' }, { first: 'a', last: 'a' }],
      ['state = first', { state: 'paid', first: 'paid' }, { state: 'paid', first: 'draft' }],
      ['isOpen != isPaid', { isOpen: true, isPaid: false }, { isOpen: false, isPaid: false }],
      [
        'key != otherKey',
        { key: '00000000-0000-0000-0000-000000000001', otherKey: '00000000-0000-0000-0000-000000000002' },
        { key: '00000000-0000-0000-0000-000000000001', otherKey: '00000000-0000-0000-0000-000000000001' },
      ],
      ['data is not null', { data: { a: [1] } }, { data: null }],
      ['owner is not null', { owner: { id: 5 } }, { owner: null }],
      [
        "state = 'draft' or (end is not null and few > 0)",
        { state: 'paid', end: '2024-01-01', few: 1 },
        { state: 'paid', end: null, few: 1 },
      ],
      [
        "not (state = 'paid' and isOpen = true)",
        { state: 'paid', isOpen: false },
        { state: 'paid', isOpen: true },
      ],
      [
        "first like 'é%' and few in (1, 2) and low between 1 and 2",
        { first: 'Ete', few: 2, low: '1.5' },
        { first: 'Ete', few: 2, low: '2.1' },
      ],
    ])('%s accepts %j and rejects %j', async (condition, valid, invalid) => {
      expect(await errorsOf(nameOf(condition), valid)).toEqual([])
      const [field = ''] = condition.replace('not (', '').split(' ')
      expect(await errorsOf(nameOf(condition), invalid)).toEqual([{ field, message: `breaks ${condition}` }])
    })

    test('is not broken by a missing value, unless it tests for one', async () => {
      for (const values of [{}, { start: '2024-01-01' }, { end: '2024-01-01', start: null }])
        expect(await isBroken('end >= start', values)).toBe(false)
      expect(await isBroken('few >= low', { low: '9.5' })).toBe(false)
      expect(await isBroken('few >= low', { few: 5, low: null })).toBe(false)
      // Unknown or false is unknown; unknown and false is false.
      expect(
        await isBroken("state = 'draft' or (end is not null and few > 0)", { state: null, few: 0 }),
      ).toBe(false)
      expect(await isBroken("first like 'é%' and few in (1, 2) and low between 1 and 2", { few: 3 })).toBe(
        true,
      )
    })

    test('a mutant that takes a missing value for an error is caught', async () => {
      const broken = { start: '2024-02-01', end: '2024-01-01' }
      expect(await isBroken('end >= start', broken, refusingNull)).toBe(true)
      expect(await isBroken('end >= start', { start: '2024-02-01', end: '2024-03-01' }, refusingNull)).toBe(
        false,
      )
      expect(await isBroken('end >= start', { start: '2024-02-01', end: null }, refusingNull)).toBe(true)
    })

    test('a mutant that compares numbers as texts is caught', async () => {
      expect(await isBroken('high >= low', { low: '9.5', high: '9.4' }, comparingTexts)).toBe(true)
      expect(await isBroken('high >= low', { low: '9.5', high: '10.0' }, comparingTexts)).toBe(true)
      expect(await isBroken('high >= low', { low: '9.5', high: '10.0' })).toBe(false)
    })
  })

  const wrong = { start: '2024-02-01', end: '2024-01-01', few: -5, low: '1.0', high: '-6.0000000000' }
  const all = [
    { field: 'end', message: 'breaks end >= start' },
    { field: 'low', message: 'is below low' },
    { field: 'few', message: 'breaks few <= high' },
    { field: 'few', message: 'breaks few > 0' },
  ]

  test('all broken checks of a record are reported, in the order of the model', async () => {
    expect(await errorsOf('rule.Several', wrong)).toEqual(all)
    expect(await errorsOf('rule.Several', { ...wrong, few: 3, high: '3.0000000000' })).toEqual(
      all.slice(0, 1),
    )
  })

  test('a mutant that reports only the first error is caught', async () => {
    const reported = await errorsOf('rule.Several', wrong, reportingOne)
    expect(reported).toEqual(all.slice(0, 1))
    expect(reported).not.toEqual(all)
  })

  test('a model without checks has no errors', async () => {
    expect(await errorsOf('rule.Pair', wrong)).toEqual([])
  })
})

const PERSON = 'rule.Person'
const Person = defineModel({
  name: PERSON,
  fields: {
    name: { type: 'string', required: true },
    email: { type: 'string', format: 'email' },
    site: { type: 'text', format: { value: 'url', message: 'must be a web page' } },
    code: { type: 'string', pattern: { value: '[A-Z]{2}', message: 'must be two capital letters' } },
    label: { type: 'string', computed: '{code}-{name}', pattern: '.{0,20}' },
    pin: { type: 'string', secret: 'password', pattern: '\\d{4,}' },
    boss: { type: 'many-to-one', target: PERSON },
    team: { type: 'one-to-many', target: PERSON, mappedBy: 'boss', owned: true },
  },
})

const BAD = { email: 'ada', site: 'ftp://x', code: 'abc' }
const ERRORS = {
  email: 'must be an e-mail address',
  site: 'must be a web page',
  code: 'must be two capital letters',
}
const below = (prefix: string, errors: object = ERRORS) =>
  Object.fromEntries(Object.entries(errors).map(([name, message]) => [prefix + name, message]))

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  let scratch: string
  beforeAll(async () => {
    scratch = mkdtempSync(path.join(tmpdir(), 'verso-rules-'))
    service = await startService(engine, { models: [{ file: 'm.ts', definition: Person }] })
    records = await enter(service, transport)
  })
  afterAll(async () => {
    await service.close()
    rmSync(scratch, { recursive: true })
  })

  const expectErrors = async (call: Promise<unknown>, errors: object) => {
    const error = await catchError(call)
    expect({ kind: error.kind, errors: (error.details as { errors?: object }).errors }).toEqual({
      kind: 'invalid',
      errors,
    })
  }
  const good = { name: 'Ada', email: 'ada@example.org', site: 'https://example.org', code: 'AB', pin: '1234' }

  describe('patterns and formats', () => {
    test('valid, empty and missing values are stored', async () => {
      const { data } = await records.create(PERSON, good)
      expect(data).toMatchObject({ email: 'ada@example.org', code: 'AB', label: 'AB-Ada' })
      expect((await records.create(PERSON, { name: 'Bob', email: '', code: null })).data).toMatchObject({
        email: '',
        code: null,
      })
    })

    test('a create reports them together with all other errors', async () => {
      await expectErrors(records.create(PERSON, BAD), { ...ERRORS, name: 'is required' })
      await expectErrors(records.create(PERSON, { ...good, pin: 'abcd' }), { pin: 'must match \\d{4,}' })
    })

    test('an update, a save of several, a batch and a mass update report them and write nothing', async () => {
      const { data } = await records.create(PERSON, good)
      const { id, version } = data
      const named = { criteria: [{ fieldName: 'name', operator: '=', value: 'Ada' }] }
      await expectErrors(records.update(PERSON, id, { version, ...BAD }), ERRORS)
      await expectErrors(records.save(PERSON, [good, { name: 'x', ...BAD }]), below('records[1].'))
      await expectErrors(
        records.batch([{ op: 'create', model: PERSON, data: { name: 'x', ...BAD } }]),
        below('requests[0].'),
      )
      await expectErrors(records.updateMass(PERSON, { data: named, values: BAD }), ERRORS)
      expect(await records.read(PERSON, id)).toMatchObject({ version, email: good.email })
    })

    test('records inside a record report them with their paths', async () => {
      await expectErrors(
        records.create(PERSON, { ...good, boss: { name: 'B', ...BAD }, team: [{ name: 'C', code: 'c' }] }),
        { ...below('boss.'), 'team[0].code': ERRORS.code },
      )
    })

    test('a computed value that breaks its pattern is an error of the computed field', async () => {
      await expectErrors(records.create(PERSON, { name: 'x'.repeat(30) }), {
        label: 'has an invalid computed value: it must match .{0,20}',
      })
    })

    test('an import reports them for each line and writes nothing', async () => {
      const line = JSON.stringify({ id: 9_001, version: 0, name: 'x', ...BAD })
      const folder = writeFiles(path.join(scratch, 'import'), { [`${PERSON}.ndjson`]: `${line}\n` })
      const errors = await faultsOf(importRecords(service.app, sourcesIn(service.app, folder)))
      expect(errors).toHaveLength(3)
      for (const message of Object.values(ERRORS)) expect(errors.join('\n')).toContain(message)
    })
  })
})
