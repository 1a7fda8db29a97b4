// Records for random searches: every kind of relation, many nulls, and texts that are easily confused.
import fc from 'fast-check'
import type { Records } from '../../src/wire.js'
import { UNUSUAL, type Cell, type ModelShape, type Row, type Shapes, type Dataset } from './search-oracle.js'

const one = (target: string, through?: string) =>
  ({ kind: 'one', target, ...(through === undefined ? {} : { through }) }) as const
const many = (target: string, through?: string) =>
  ({ kind: 'many', target, ...(through === undefined ? {} : { through }) }) as const
const own = { id: 'number', version: 'number' } as const
const related = (name: string, fields: ModelShape['fields']): ModelShape => ({
  name,
  fields: { ...own, createdBy: one('verso.auth.User'), ...fields },
})

/** The models of test/models.ts in the terms of the oracle. */
export const SHAPES: Shapes = {
  'verso.auth.User': { name: 'name', fields: { id: 'number', name: 'text' } },
  'rel.Company': related('name', {
    ...{ code: 'text', name: 'text', founded: 'date', seat: one('rel.Address'), parent: one('rel.Company') },
    ...{ addresses: many('rel.Address', 'company'), people: many('rel.Person', 'company') },
  }),
  'rel.Address': related('city', {
    ...{ city: 'text', street: 'text', company: one('rel.Company'), doors: many('rel.Door', 'address') },
  }),
  'rel.Door': related('code', { code: 'text', address: one('rel.Address') }),
  'rel.Person': related('name', {
    ...{ name: 'text', born: 'date', rate: 'decimal', isActive: 'boolean', circles: many('rel.Circle') },
    ...{ company: one('rel.Company'), boss: one('rel.Person'), badge: one('rel.Badge', 'holder') },
    ...{ keeper: one('verso.auth.User') },
  }),
  'rel.Circle': related('name', { name: 'text', members: many('rel.Person', 'circles') }),
  'rel.Badge': related('number', { number: 'text', holder: one('rel.Person') }),
  'test.Everything': {
    name: '',
    fields: {
      ...{ label: 'text', note: 'text', whole: 'number', big: 'number', amount: 'decimal', price: 'decimal' },
      ...{ active: 'boolean', day: 'date', at: 'time', moment: 'datetime', token: 'uuid', state: 'text' },
      ...{ ...own, extra: 'json' },
    },
  },
  'test.Note': { name: '', fields: { ...own, title: 'text', archived: 'boolean' } },
}

const COUNTS = { company: 12, address: 26, door: 34, circle: 8, person: 60, badge: 24, other: 40 }
const FIRST_BADGE = 7

export const text = fc.string({
  unit: fc.constantFrom(...Array.from('aAbeEiSso %_\\\'"~'), ...UNUSUAL),
  maxLength: 5,
})
export const date = fc.constantFrom('0001-01-01', '1969-12-31', '1970-01-01', '2000-02-29', '9999-12-31')
export const decimal = fc.constantFrom('0', '-0.01', '0.10', '1.5', '1.50', '9', '10', '-10.05', '12345678.9')
export const time = fc.constantFrom('00:00:00', '00:00:01', '09:30:00', '12:00:00', '23:59:59')
export const moment = fc.constantFrom(
  ...['0001-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '1970-01-01T00:00:00.000Z'],
  ...['2024-02-29T12:00:00.001Z', '2024-02-29T12:00:00.010Z', '9999-12-31T23:59:59.999Z'],
)
export const whole = fc.constantFrom(-(2 ** 31), -10, -9, -1, 0, 1, 2, 9, 10, 2 ** 31 - 1)
export const uuid = fc.constantFrom(
  '00000000-0000-4000-8000-000000000000',
  '8d3f5c9e-0c1b-4b60-9d53-0a4a6a3c1f10',
  'ffffffff-ffff-4fff-bfff-ffffffffffff',
)
const large = fc.constantFrom(Number.MIN_SAFE_INTEGER, -1, 0, 2 ** 31, Number.MAX_SAFE_INTEGER)
const state = fc.constantFrom('draft', 'sent', 'paid')
const amount = fc.constantFrom('0.0000000001', '-0.0000000001', '9', '10', '1234567890123456789012345678.5')

const orNull = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { freq: 3 })
const idUpTo = (count: number) => fc.integer({ min: 1, max: count })
const maybe = (count: number) => orNull(idUpTo(count))

type Made = Readonly<Record<string, fc.Arbitrary<Cell>>>

const MADE: Readonly<Record<string, readonly [count: number, made: Made]>> = {
  'rel.Company': [
    COUNTS.company,
    { name: text, founded: orNull(date), parent: maybe(COUNTS.company), seat: maybe(COUNTS.address) },
  ],
  'rel.Address': [COUNTS.address, { city: text, street: orNull(text), company: maybe(COUNTS.company) }],
  'rel.Door': [COUNTS.door, { address: idUpTo(COUNTS.address) }],
  'rel.Circle': [COUNTS.circle, { name: text }],
  'rel.Person': [
    COUNTS.person,
    {
      ...{ name: orNull(text), born: orNull(date), rate: orNull(decimal), isActive: orNull(fc.boolean()) },
      ...{ company: maybe(COUNTS.company), boss: maybe(COUNTS.person), keeper: maybe(1) },
      circles: fc.uniqueArray(idUpTo(COUNTS.circle), { maxLength: 4 }),
    },
  ],
  'rel.Badge': [COUNTS.badge, {}],
  'test.Everything': [
    COUNTS.other,
    {
      ...{ label: orNull(text), note: orNull(text), whole: orNull(whole), big: orNull(large) },
      ...{ amount: orNull(amount), price: orNull(decimal.filter((price) => !price.includes('5678'))) },
      ...{ active: orNull(fc.boolean()), day: orNull(date), at: orNull(time), moment: orNull(moment) },
      ...{ token: orNull(uuid), state: orNull(state), extra: orNull(fc.constantFrom(0, '', 'a')) },
    },
  ],
  'test.Note': [COUNTS.other, { title: text, archived: fc.boolean() }],
}

/** Unique values, and values assigned by the service, derive from the id. */
const GIVEN: Readonly<Record<string, (id: number) => Readonly<Record<string, Cell>>>> = {
  'rel.Company': (id) => ({ code: id % 3 === 0 ? null : `C${id}` }),
  'rel.Door': (id) => ({ code: id % 4 === 0 ? null : `${id % 2 === 0 ? 'É' : 'e'}${id}` }),
  'rel.Badge': (id) => ({
    number: `B-${String(FIRST_BADGE + id - 1).padStart(4, '0')}`,
    // At most every second person has a badge, and some badges have no holder.
    holder: id % 5 === 0 ? null : 2 * id,
  }),
}

export function generateDataset(seed: number): Dataset {
  const entries = Object.entries(MADE).map(([model, [count, made]]) => {
    const rows = fc.sample(fc.record(made), { seed, numRuns: count })
    return [model, rows.map((row, index) => rowOf(model, index + 1, row))] as const
  })
  return { ...Object.fromEntries(entries), 'verso.auth.User': [{ id: 1, name: 'Ada' }] }
}

function rowOf(model: string, id: number, row: Readonly<Record<string, Cell>>): Row {
  return { ...row, ...GIVEN[model]?.(id), id, createdBy: 1 }
}

/** References that may be cyclic, or to records that do not exist yet; set after all records are created. */
const LATER: Readonly<Record<string, readonly string[]>> = {
  'rel.Company': ['parent', 'seat'],
  'rel.Person': ['boss'],
}
const GIVEN_BY_THE_SERVICE = ['id', 'createdBy', 'number']

/** Creates the records through the service and returns the dataset with their versions. */
export async function storeDataset(records: Records, dataset: Dataset): Promise<Dataset> {
  for (const [model, rows] of Object.entries(dataset)) {
    if (model === 'verso.auth.User') continue
    for (const row of rows) {
      const { data } = await records.create(model, dataOf(model, row, LATER[model] ?? []))
      if (data.id !== row.id) throw new Error(`${model} ${row.id} was given the id ${data.id}`)
    }
  }
  for (const [model, names] of Object.entries(LATER)) {
    for (const row of dataset[model] ?? []) {
      const { version } = await records.read(model, row.id)
      const changes = Object.fromEntries(names.map((name) => [name, referenceTo(row[name] ?? null)]))
      await records.update(model, row.id, { version, ...changes })
    }
  }
  const versions = await Promise.all(
    Object.entries(dataset).map(async ([model, rows]) => [model, await versioned(records, model, rows)]),
  )
  return Object.fromEntries(versions) as Dataset
}

async function versioned(records: Records, model: string, rows: readonly Row[]): Promise<readonly Row[]> {
  if (model === 'verso.auth.User') return rows
  const { data } = await records.find(model, { limit: 1000, archived: true })
  const versions = new Map(data.map(({ id, version }) => [id, version]))
  return rows.map((row) => ({ ...row, version: versions.get(row.id) ?? null }))
}

function dataOf(model: string, row: Row, without: readonly string[]): Record<string, unknown> {
  const entries = Object.entries(row).filter(
    ([name]) => ![...GIVEN_BY_THE_SERVICE, ...without].includes(name),
  )
  return Object.fromEntries(
    entries.map(([name, cell]) => {
      const isRelation = typeof SHAPES[model]?.fields[name] === 'object'
      return [name, isRelation ? referenceTo(cell) : cell]
    }),
  )
}

function referenceTo(cell: Cell): unknown {
  if (Array.isArray(cell)) return cell.map(referenceTo)
  return cell === null ? null : { id: cell }
}
