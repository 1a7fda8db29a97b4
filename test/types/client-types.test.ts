// Types of the client: the compiler checks these claims. The functions are never called.
/* eslint-disable @typescript-eslint/no-unused-vars -- only the types of these values matter */
import { describe, expectTypeOf, test } from 'vitest'
import type { Client } from '../../src/client/client-types.js'
import type { CreateValues, ModelName, ReadOf, UpdateValues } from '../../src/client/types/schema.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { extendModel } from '../../src/model/definition/extend-model.js'
import type { RecordOf, RelatedRecordInput, UserReference } from '../../src/model/definition/record-types.js'
import type { Json } from '../../src/model/values/value.js'
import type { WireRecord } from '../../src/wire.js'
import * as models from '../models.js'

type Models = typeof models
declare const verso: Client<Models>
declare const untyped: Client

type Answer<T extends (...parameters: never[]) => unknown> = Awaited<ReturnType<T>>
interface CompanyReference {
  readonly id: number
  readonly $version: number
  readonly name: string
}

describe('a record', () => {
  test('has all readable fields, with the names of related records', () => {
    const read = () => verso.model('rel.Person').read(1)
    expectTypeOf<Answer<typeof read>>().toEqualTypeOf<{
      readonly id: number
      readonly version: number
      readonly name: string | null
      readonly born: string | null
      readonly rate: string | null
      readonly isActive: boolean | null
      readonly company: CompanyReference | null
      readonly boss: { readonly id: number; readonly $version: number; readonly name: string | null } | null
      readonly circles: readonly CompanyReference[]
      readonly keeper: { readonly id: number; readonly $version: number; readonly name: string | null } | null
      readonly createdOn: string
      readonly createdBy: UserReference | null
      readonly updatedOn: string | null
      readonly updatedBy: UserReference | null
    }>()
  })

  test('has selections as unions, decimals as texts and JSON', () => {
    type Everything = ReadOf<Models, 'test.Everything'>
    expectTypeOf<Everything['state']>().toEqualTypeOf<'draft' | 'sent' | 'paid' | null>()
    expectTypeOf<Everything['amount']>().toEqualTypeOf<string | null>()
    expectTypeOf<Everything['extra']>().toEqualTypeOf<Json>()
    expectTypeOf<ReadOf<Models, 'test.Limited'>['level']>().toEqualTypeOf<1 | 2 | 3 | null>()
  })

  test('has the same fields as RecordOf', () => {
    expectTypeOf<keyof ReadOf<Models, 'rel.Person'>>().toEqualTypeOf<keyof RecordOf<typeof models.Person>>()
  })

  test('of a system model has types without a definition', () => {
    expectTypeOf<ReadOf<Models, 'verso.auth.User'>['username']>().toEqualTypeOf<string>()
    expectTypeOf<ModelName<Models>>().extract<'verso.auth.User'>().toEqualTypeOf<'verso.auth.User'>()
    expectTypeOf<CreateValues<Models, 'verso.auth.Event'>>().toBeNever()
  })
})

describe('a write', () => {
  test('needs the required fields of a create, and no field of an update', () => {
    expectTypeOf<CreateValues<Models, 'rel.Company'>>().toEqualTypeOf<{
      readonly code?: string | null
      readonly name: string
      readonly founded?: string | null
      readonly addresses?: readonly RelatedRecordInput[]
      readonly seat?: RelatedRecordInput | null
      readonly parent?: RelatedRecordInput | null
    }>()
    expectTypeOf<UpdateValues<Models, 'rel.Company'>>().toEqualTypeOf<
      Partial<CreateValues<Models, 'rel.Company'>>
    >()
  })

  test('needs no required field that has a default', () => {
    const Defaulted = defineModel({
      name: 'test.Defaulted',
      fields: { state: { type: 'enum', selection: ['a', 'b'], required: true, default: 'a' } },
    })
    expectTypeOf<CreateValues<{ Defaulted: typeof Defaulted }, 'test.Defaulted'>>().toEqualTypeOf<{
      readonly state?: 'a' | 'b'
    }>()
  })

  test('may have secrets, decimals as numbers, and archived', () => {
    expectTypeOf<CreateValues<Models, 'crm.Contact'>['pin']>().toEqualTypeOf<string | null | undefined>()
    expectTypeOf<CreateValues<Models, 'rel.Person'>['rate']>().toEqualTypeOf<
      string | number | null | undefined
    >()
    expectTypeOf<CreateValues<Models, 'test.Note'>['archived']>().toEqualTypeOf<boolean | null | undefined>()
  })

  test('may refer to records that a batch creates, and returns one result for each request', () => {
    const batch = () =>
      verso.batch([
        { op: 'create', model: 'rel.Company', ref: 'c', data: { name: 'x' } },
        { op: 'create', model: 'rel.Person', data: { company: { $ref: 'c' } } },
        { op: 'update', model: 'rel.Company', id: { $ref: 'c' }, version: 0, data: { code: 'x' } },
        { op: 'delete', model: 'rel.Badge', id: 5 },
        { op: 'assert', model: 'rel.Circle', id: 1, version: 2 },
      ])
    type Results = Answer<typeof batch>
    expectTypeOf<Results[0]>().toEqualTypeOf<ReadOf<Models, 'rel.Company'>>()
    expectTypeOf<Results[1]['rate']>().toEqualTypeOf<string | null>()
    expectTypeOf<Results[2]['code']>().toEqualTypeOf<string | null>()
    expectTypeOf<Results[3]>().toEqualTypeOf<number>()
    expectTypeOf<Results[4]>().toEqualTypeOf<{ readonly id: number; readonly version: number }>()
    expectTypeOf<Results['length']>().toEqualTypeOf<5>()
  })

  test('that is computed may be a batch, too', () => {
    const batch = (ids: readonly number[]) =>
      verso.batch(ids.map((id) => ({ op: 'delete', model: 'rel.Badge', id }) as const))
    expectTypeOf<Answer<typeof batch>>().toEqualTypeOf<readonly number[]>()
  })

  test('computes changes from the record, or gives up', () => {
    const updates = (tasks = verso.model('rel.Company')) => [
      tasks.update(1, ({ name }) => ({ name: `${name}!` })),
      tasks.update(1, async ({ name }) => ({ name: `${name}!`, seat: { city: 'Kiel' } })),
      tasks.update(1, (record) => ({ ...record, code: 'x' })),
      tasks.update(1, ({ code }) => (code === null ? { code: 'x' } : undefined)),
      tasks.update(1, { version: 3, code: null }),
    ]
    expectTypeOf<Awaited<ReturnType<typeof updates>[number]>>().toEqualTypeOf<ReadOf<Models, 'rel.Company'>>()
  })

  test('gives both sides of a conflict', () => {
    const update = () =>
      verso.model('rel.Company').update(1, () => ({ code: 'x' }), {
        onConflict: ({ base, ours, theirs, fields }) => {
          expectTypeOf(base?.code).toEqualTypeOf<string | null | undefined>()
          expectTypeOf(ours.code).toEqualTypeOf<string | null | undefined>()
          expectTypeOf(theirs.name).toEqualTypeOf<string>()
          expectTypeOf(fields.code?.ours).toEqualTypeOf<string | null | undefined>()
          expectTypeOf(fields.seat?.theirs).toEqualTypeOf<{ readonly id: number } | null | undefined>()
          return { code: theirs.code }
        },
      })
    expectTypeOf<Answer<typeof update>['code']>().toEqualTypeOf<string | null>()
  })
})

describe('a find', () => {
  test('returns the list fields by default', () => {
    const find = () => verso.model('rel.Company').find()
    expectTypeOf<Answer<typeof find>['data'][number]>().toEqualTypeOf<{
      readonly id: number
      readonly version: number
      readonly code: string | null
      readonly name: string
    }>()
    expectTypeOf<Answer<typeof find>['total']>().toEqualTypeOf<number>()
  })

  test('leaves out texts, JSON and lists of a model that does not choose its list fields', () => {
    const find = () => verso.model('test.Everything').find()
    type Found = keyof Answer<typeof find>['data'][number]
    expectTypeOf<Found>().extract<'note' | 'extra' | 'createdOn'>().toBeNever()
    expectTypeOf<Found>().extract<'label' | 'state'>().toEqualTypeOf<'label' | 'state'>()
    const notes = () => verso.model('test.Note').find()
    expectTypeOf<keyof Answer<typeof notes>['data'][number]>().toEqualTypeOf<
      'id' | 'version' | 'title' | 'archived'
    >()
  })

  test('returns the selected fields: a path is one key, and null if a reference on the way may be', () => {
    const find = () =>
      verso.model('rel.Person').find({
        fields: ['born', 'company', 'company.name', 'badge', 'boss.company.seat.city', 'createdBy.name'],
      })
    expectTypeOf<Answer<typeof find>['data'][number]>().toEqualTypeOf<{
      readonly id: number
      readonly version: number
      readonly born: string | null
      readonly company: CompanyReference | null
      readonly 'company.name': string | null
      readonly badge: {
        readonly id: number
        readonly $version: number
        readonly number: string | null
      } | null
      readonly 'boss.company.seat.city': string | null
      readonly 'createdBy.name': string | null
    }>()
    const doors = () => verso.model('rel.Door').find({ fields: ['address.city'] })
    expectTypeOf<Answer<typeof doors>['data'][number]['address.city']>().toEqualTypeOf<string>()
  })

  test('with an empty list of fields returns only id and version', () => {
    const find = () => verso.model('rel.Person').find({ fields: [] })
    expectTypeOf<keyof Answer<typeof find>['data'][number]>().toEqualTypeOf<'id' | 'version'>()
  })

  test('returns an inverse relation if it is selected', () => {
    const find = () => verso.model('rel.Company').find({ fields: ['people'] })
    expectTypeOf<Answer<typeof find>['data'][number]['people']>().toEqualTypeOf<
      readonly { readonly id: number; readonly $version: number; readonly name: string | null }[]
    >()
  })

  test('takes filters over references and lists, and sort keys', () => {
    const find = () =>
      verso.model('rel.Person').find({
        filter: {
          name: { like: 'A%', '!=': 'Ada' },
          rate: { between: [1, '2.50'] },
          born: null,
          company: [1, 2],
          'company.addresses.doors.code': 'x',
          or: [{ 'boss.company.name': 'x' }, { not: { circles: { isEmpty: true } } }],
        },
        sortBy: ['-company.name', 'born', '-createdBy'],
        q: 'x',
        count: 'none',
      })
    expectTypeOf<Answer<typeof find>['total']>().toEqualTypeOf<number | undefined>()
    const texts = () => verso.model('rel.Person').find({ filter: "name = 'Ada'" })
    expectTypeOf<Answer<typeof texts>['total']>().toEqualTypeOf<number>()
  })

  test('takes names that the program computes, and returns what they may be', () => {
    const find = (names: string[]) => verso.model('rel.Person').find({ fields: names, sortBy: names })
    expectTypeOf<Answer<typeof find>['data'][number]>().toEqualTypeOf<WireRecord>()
  })
})

test('a fetch returns related records as objects', () => {
  const fetch = () =>
    verso.model('rel.Company').fetch(1, {
      fields: ['name', 'people.born', 'seat'],
      related: { addresses: ['city', 'doors.code'] },
    })
  type Fetched = Answer<typeof fetch>
  expectTypeOf<keyof Fetched>().toEqualTypeOf<'id' | 'version' | 'name' | 'people' | 'seat' | 'addresses'>()
  expectTypeOf<Fetched['people'][number]['born']>().toEqualTypeOf<string | null>()
  expectTypeOf<Fetched['people'][number]['$version']>().toEqualTypeOf<number>()
  expectTypeOf<NonNullable<Fetched['seat']>['city']>().toEqualTypeOf<string>()
  expectTypeOf<Fetched['addresses'][number]['version']>().toEqualTypeOf<number>()
  expectTypeOf<Fetched['addresses'][number]['doors'][number]['code']>().toEqualTypeOf<string | null>()
  const whole = () => verso.model('rel.Door').fetch(1)
  expectTypeOf<Answer<typeof whole>['address']['city']>().toEqualTypeOf<string>()
})

test('an extension in the same module adds fields, and replaces the name field', () => {
  const Base = defineModel({ name: 'test.Base', fields: { code: { type: 'string' } }, archived: true })
  const Extension = extendModel({
    name: 'test.Base',
    fields: { code: { type: 'integer' }, label: { type: 'string', required: true } },
    nameField: 'label',
  })
  const Other = defineModel({
    name: 'test.Other',
    fields: { base: { type: 'many-to-one', target: 'test.Base' } },
  })
  interface Module {
    readonly Base: typeof Base
    readonly Extension: typeof Extension
    readonly Other: typeof Other
    readonly count: () => number
    readonly VERSION: string
  }
  expectTypeOf<ReadOf<Module, 'test.Base'>['code']>().toEqualTypeOf<number | null>()
  expectTypeOf<CreateValues<Module, 'test.Base'>['label']>().toEqualTypeOf<string>()
  expectTypeOf<ReadOf<Module, 'test.Base'>['archived']>().toEqualTypeOf<boolean | null>()
  expectTypeOf<ReadOf<Module, 'test.Other'>['base']>().toEqualTypeOf<{
    readonly id: number
    readonly $version: number
    readonly label: string
  } | null>()
  expectTypeOf<ModelName<Module>>().extract<`test.${string}`>().toEqualTypeOf<'test.Base' | 'test.Other'>()
})

test('a client without types takes any model and any field', () => {
  const tasks = () => untyped.model('any.Model')
  const find = () =>
    tasks().find({
      fields: ['a', 'b.c'],
      filter: { a: 1, 'b.c': { in: [1] }, or: [{ d: null }] },
      sortBy: ['-a'],
    })
  expectTypeOf<Answer<typeof find>['data'][number]['id']>().toEqualTypeOf<number>()
  expectTypeOf<Answer<typeof find>['data'][number]['a']>().toEqualTypeOf<unknown>()
  const read = () => tasks().read(1)
  expectTypeOf<Answer<typeof read>>().toEqualTypeOf<WireRecord>()
  const write = async () => {
    await tasks().create({ a: 1, b: [] })
    await tasks().update(1, ({ a }) => ({ a: Number(a) + 1 }), {
      onConflict: ({ ours }) => ({ a: ours['a'] }),
    })
    await tasks().update(1, { version: 1, a: 2 })
    return untyped.batch([{ op: 'create', model: 'any.Model', data: { a: 1 } }])
  }
  expectTypeOf<Answer<typeof write>[0]>().toEqualTypeOf<WireRecord>()
  const fetch = () => tasks().fetch(1, { fields: ['a.b'], related: { c: ['d'] } })
  expectTypeOf<Answer<typeof fetch>>().toEqualTypeOf<WireRecord>()
})
