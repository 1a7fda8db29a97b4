// Both engines store values of every type exactly and sort them alike.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compareDecimals } from '../../src/model/values/decimal.js'
import type { Value } from '../../src/model/values/value.js'
import { parseFindQuery } from '../../src/model/query/search.js'
import { findPage } from '../../src/store/find/pages.js'
import { quoteIdentifier } from '../../src/store/engine/names.js'
import type { Records } from '../../src/wire.js'
import { countAnew, ENGINES, enter, startService, type Service } from '../targets.js'

const MODEL = 'test.Everything'
const RUNS = 12
const RECORDS_A_RUN = 25

interface TypeCase {
  readonly field: string
  readonly input: fc.Arbitrary<Value>
  /** The expected stored value. */
  readonly canonical: (input: Value) => Value
  /** Absent for a type without an order. */
  readonly compare?: (a: Value, b: Value) => number
}

const same = (input: Value) => input
const byNumber = (a: Value, b: Value) => Number(a) - Number(b)
const byBytes = (a: Value, b: Value) => Buffer.compare(Buffer.from(a as string), Buffer.from(b as string))
const byDecimal = (a: Value, b: Value) => compareDecimals(a as string, b as string)

const plainText = fc.string({ unit: 'binary', maxLength: 40 }).filter((text) => !text.includes('\0'))
const anyDate = fc.date({
  min: new Date('0001-01-02T00:00:00Z'),
  max: new Date('9999-12-30T00:00:00Z'),
  noInvalidDate: true,
})
const json = fc
  .jsonValue({ maxDepth: 4 })
  .filter(
    (value) =>
      value !== null &&
      !JSON.stringify(value).includes('\\u0000') &&
      !/\\ud[89a-f]/i.test(JSON.stringify(value)),
  )
  .map((value) => JSON.parse(JSON.stringify(value)) as Value)

function decimals(integerDigits: number, scale: number): fc.Arbitrary<Value> {
  const digits = (max: number) =>
    fc.string({ unit: fc.integer({ min: 0, max: 9 }).map(String), maxLength: max })
  const spelled = fc
    .tuple(fc.constantFrom('', '-', '+'), digits(integerDigits), digits(scale))
    .map(([sign, integer, fraction]) => `${sign}${integer || '0'}${fraction && `.${fraction}`}`)
  return fc.oneof(
    spelled,
    fc.constantFrom('-0', '0.10', '-0.01', '9'.repeat(integerDigits), `-${'9'.repeat(integerDigits)}`),
  )
}

/** An independent reading of a decimal, as an integer in the smallest unit. */
function printed(scale: number): (input: Value) => Value {
  return (input) => {
    const [, sign = '', integer = '', fraction = ''] =
      /^([+-]?)(\d+)(?:\.(\d+))?$/.exec(input as string) ?? []
    const units = BigInt(integer + fraction.padEnd(scale, '0'))
    const digits = units.toString().padStart(scale + 1, '0')
    const text = `${digits.slice(0, digits.length - scale)}.${digits.slice(digits.length - scale)}`
    return sign === '-' && units > 0n ? `-${text}` : text
  }
}

const CASES: readonly TypeCase[] = [
  { field: 'label', input: plainText, canonical: same, compare: byBytes },
  { field: 'note', input: plainText, canonical: same, compare: byBytes },
  { field: 'whole', input: fc.integer(), canonical: same, compare: byNumber },
  { field: 'big', input: fc.maxSafeInteger(), canonical: same, compare: byNumber },
  { field: 'amount', input: decimals(28, 10), canonical: printed(10), compare: byDecimal },
  { field: 'price', input: decimals(7, 2), canonical: printed(2), compare: byDecimal },
  { field: 'active', input: fc.boolean(), canonical: same, compare: byNumber },
  {
    field: 'day',
    input: anyDate.map((date) => date.toISOString().slice(0, 10)),
    canonical: same,
    compare: byBytes,
  },
  {
    field: 'at',
    input: anyDate.map((date) => date.toISOString().slice(11, 19)),
    canonical: same,
    compare: byBytes,
  },
  { field: 'moment', input: anyDate.map((date) => date.toISOString()), canonical: same, compare: byBytes },
  {
    field: 'token',
    input: fc.uuid().map((uuid) => uuid.toUpperCase()),
    canonical: (uuid) => (uuid as string).toLowerCase(),
    compare: byBytes,
  },
  { field: 'state', input: fc.constantFrom('draft', 'sent', 'paid'), canonical: same, compare: byBytes },
  { field: 'extra', input: json, canonical: same },
]

const services: Service[] = []
const transports: Records[] = []

beforeAll(async () => {
  for (const engine of ENGINES) {
    const service = await startService(engine)
    services.push(service)
    transports.push(await enter(service, 'direct'))
  }
})
afterAll(async () => {
  for (const service of services) await service.close()
})

test('the cases cover every field of the model with all types', () => {
  const [service] = services
  const fields = [...(service?.app.catalog.get(MODEL).fields.values() ?? [])].filter(
    (field) => !field.isSystem,
  )
  expect(CASES.map(({ field }) => field)).toEqual(fields.map((field) => field.name))
})

test.each(CASES)(
  'the field $field keeps its values and sorts alike on both engines',
  async ({ field, input, canonical, compare }) => {
    const inputs = fc.array(fc.option(input, { freq: 8 }), { minLength: 1, maxLength: RECORDS_A_RUN })
    await fc.assert(
      fc.asyncProperty(inputs, async (values) => {
        const expected = values.map((value) => (value === null ? null : canonical(value)))
        for (const [index, service] of services.entries()) {
          await clear(service)
          const records = transports[index] as Records
          const created = await Promise.all(values.map((value) => records.create(MODEL, { [field]: value })))
          const read = await Promise.all(created.map(({ data }) => records.read(MODEL, data.id)))
          expect(created.map(({ data }) => data[field])).toEqual(expected)
          expect(read.map((record) => record[field])).toEqual(expected)
          if (!compare) continue
          for (const descending of [false, true]) {
            expect(await sorted(service, field, descending)).toEqual(inOrder(expected, compare, descending))
          }
        }
      }),
      { numRuns: RUNS },
    )
  },
)

async function sorted(service: Service, field: string, descending: boolean): Promise<unknown[]> {
  const table = service.app.tables.of(service.app.catalog.get(MODEL))
  const fields = [...table.model.fields.keys()]
  const query = { limit: RECORDS_A_RUN, sortBy: `${descending ? '-' : ''}${field}`, fields }
  const search = parseFindQuery(service.app.catalog, table.model, query, RECORDS_A_RUN)
  const { records } = await findPage(service.app.db.reader, table, search)
  return records.map((record) => record[field])
}

/** Sorts with nulls last in both directions. */
function inOrder(
  values: readonly Value[],
  compare: (a: Value, b: Value) => number,
  descending: boolean,
): Value[] {
  const set = values
    .filter((value) => value !== null)
    .sort((a, b) => (descending ? compare(b, a) : compare(a, b)))
  return [...set, ...values.filter((value) => value === null)]
}

async function clear(service: Service): Promise<void> {
  const table = service.app.tables.of(service.app.catalog.get(MODEL))
  await service.app.db.transaction((tx) =>
    tx.run(`delete from ${table.name} where ${quoteIdentifier('id')} > 0`),
  )
  await countAnew(service, MODEL)
}
