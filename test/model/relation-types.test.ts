// Inferred types of records with relations: the compiler checks these claims.
import { expect, expectTypeOf, test } from 'vitest'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type {
  InputOf,
  RelatedRecordInput,
  RecordOf,
  Reference,
} from '../../src/model/definition/record-types.js'
import type { Badge, Circle, Company, Door, Person } from '../models.js'

test('a reference has the type Reference, and is required only if declared so', () => {
  expectTypeOf<RecordOf<typeof Person>['company']>().toEqualTypeOf<Reference | null>()
  expectTypeOf<RecordOf<typeof Badge>['holder']>().toEqualTypeOf<Reference | null>()
  expectTypeOf<RecordOf<typeof Door>['address']>().toEqualTypeOf<Reference>()
  expectTypeOf<InputOf<typeof Person>['company']>().toEqualTypeOf<RelatedRecordInput | null | undefined>()
  expectTypeOf<InputOf<typeof Door>['address']>().toEqualTypeOf<RelatedRecordInput | undefined>()
})

test('an owned list has the type of a list, never null', () => {
  expectTypeOf<RecordOf<typeof Company>['addresses']>().toEqualTypeOf<readonly Reference[]>()
  expectTypeOf<RecordOf<typeof Person>['circles']>().toEqualTypeOf<readonly Reference[]>()
  expectTypeOf<InputOf<typeof Company>['addresses']>().toEqualTypeOf<
    readonly RelatedRecordInput[] | undefined
  >()
  expectTypeOf<InputOf<typeof Person>['circles']>().toEqualTypeOf<readonly RelatedRecordInput[] | undefined>()
})

test('an inverse relation is neither in the record type nor in the input type', () => {
  expectTypeOf<RecordOf<typeof Company>>().not.toHaveProperty('people')
  expectTypeOf<InputOf<typeof Company>>().not.toHaveProperty('people')
  expectTypeOf<RecordOf<typeof Circle>>().not.toHaveProperty('members')
  expectTypeOf<InputOf<typeof Circle>>().not.toHaveProperty('members')
  expectTypeOf<RecordOf<typeof Person>>().not.toHaveProperty('badge')
  expectTypeOf<InputOf<typeof Person>>().not.toHaveProperty('badge')
})

test('a sequence is in the record type, but not in the input type', () => {
  expectTypeOf<RecordOf<typeof Badge>['number']>().toEqualTypeOf<string | null>()
  expectTypeOf<InputOf<typeof Badge>>().not.toHaveProperty('number')
})

test('the input of a relation may be a reference, a change or a new record', () => {
  const input = {
    name: 'Ada',
    company: { id: 1 },
    boss: { id: 2, version: 3, name: 'Boss' },
    circles: [{ id: 1 }, { name: 'New' }],
    keeper: null,
  } satisfies InputOf<typeof Person>
  expectTypeOf(input).toExtend<InputOf<typeof Person>>()
  expectTypeOf<{ circles: null }>().not.toExtend<InputOf<typeof Person>>()
  expectTypeOf<{ company: number }>().not.toExtend<InputOf<typeof Person>>()
  expectTypeOf<{ addresses: { id: number } }>().not.toExtend<InputOf<typeof Company>>()
})

test('a relation without target, or a one-to-many without mappedBy, does not compile', () => {
  // @ts-expect-error a one-to-many names the field that holds it
  defineModel({ name: 'a.B', fields: { list: { type: 'one-to-many', target: 'a.C' } } })
  // @ts-expect-error a reference names its target
  const lost = defineModel({ name: 'a.B', fields: { to: { type: 'many-to-one' } } })
  expect(() => Catalog.from([{ file: 'lost.ts', definition: lost }])).toThrow(/target must be the name/)
})
