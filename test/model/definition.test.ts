import { describe, expect, expectTypeOf, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { InputOf, RecordOf, UserReference } from '../../src/model/definition/record-types.js'
import { applyExtensions, extendModel } from '../../src/model/definition/extend-model.js'
import type { Json } from '../../src/model/values/value.js'
import { errorsOf } from './catalog-errors.js'

const field = (definition: unknown) => ({ name: 'a.B', fields: { f: definition } })

const pair = {
  name: 'a.B',
  fields: {
    ...{ f: { type: 'string' }, g: { type: 'integer' }, h: { type: 'json' } },
    ...{ c: { type: 'string', computed: '{f}' }, s: { type: 'string', secret: true } },
  },
}

describe('errors in model definitions', () => {
  const cases: readonly (readonly [name: string, definition: unknown, fault: RegExp])[] = [
    ['no object', 5, /^m1\.json: a model must be an object/],
    [
      'no name',
      { fields: { f: { type: 'string' } } },
      /^m1\.json: a model without a name: name must be a dotted name/,
    ],
    [
      'a name without a dot',
      { name: 'B', fields: { f: { type: 'string' } } },
      /^m1\.json: B: name must be a dotted/,
    ],
    ['a name of the service', { name: 'verso.auth.X', fields: { f: { type: 'string' } } }, /are reserved/],
    ['no fields', { name: 'a.B' }, /a\.B\.fields: a model needs at least one field/],
    [
      'an unknown option',
      { ...field({ type: 'string' }), index: [] },
      /a\.B: unknown option "index" \(did you mean "indexes"\?\)/,
    ],
    ['a field that is no object', field('string'), /a\.B\.f: must be an object/],
    ['an unknown type', field({ type: 'strnig' }), /a\.B\.f: type must be one of .*did you mean "string"/],
    ['a type reserved for the service', field({ type: 'reference' }), /type must be one of/],
    [
      'an option the type has not',
      field({ type: 'boolean', min: 1 }),
      /a\.B\.f: unknown option "min" for type boolean/,
    ],
    [
      'a misspelled option',
      field({ type: 'string', requried: true }),
      /unknown option "requried" for type string \(did you mean "required"\?\)/,
    ],
    [
      'required that is no boolean',
      field({ type: 'string', required: 'yes' }),
      /required must be true or false/,
    ],
    ['a title that is no text', field({ type: 'string', title: 5 }), /title must be text/],
    ['min above max', field({ type: 'integer', min: 5, max: 1 }), /min must be at most max/],
    ['a min of another type', field({ type: 'date', min: 'soon' }), /min must be a date/],
    ['a default of another type', field({ type: 'integer', default: 'x' }), /default must be a whole number/],
    [
      'a default past the limits',
      field({ type: 'integer', max: 3, default: 4 }),
      /default must be at most 3/,
    ],
    [
      'a default outside the selection',
      field({ type: 'enum', selection: ['a'], default: 'b' }),
      /default must be one of "a"/,
    ],
    ['an enum without a selection', field({ type: 'enum' }), /an enum needs a selection/],
    ['an empty selection', field({ type: 'enum', selection: [] }), /selection must be a non-empty list/],
    [
      'a value twice in a selection',
      field({ type: 'enum', selection: ['a', 'a'] }),
      /selection contains the same value twice/,
    ],
    [
      'a selection of another type',
      field({ type: 'integer', selection: ['a'] }),
      /selection: "a" must be a whole number/,
    ],
    [
      'a precision past 38',
      field({ type: 'decimal', precision: 39 }),
      /precision must be a whole number from 1 to 38/,
    ],
    [
      'a scale past the precision',
      field({ type: 'decimal', precision: 3, scale: 4 }),
      /scale must be a whole number from 0/,
    ],
    ['a length of 0', field({ type: 'string', length: 0 }), /length must be/],
    ['a secret with an invalid value', field({ type: 'string', secret: 'maybe' }), /secret must be/],
    [
      'a computed field that is required',
      field({ type: 'string', computed: '{f}', required: true }),
      /a computed field cannot have the option "required"/,
    ],
    ['a template without fields', field({ type: 'string', computed: 'x' }), /the template names no field/],
    [
      'a template of unknown fields',
      field({ type: 'string', computed: '{g}' }),
      /the template names the unknown field "g"/,
    ],
    [
      'computed that is neither a function nor a template',
      field({ type: 'string', computed: 5 }),
      /computed must be a function, or a template/,
    ],
    [
      'a former name that is its own',
      field({ type: 'string', renamedFrom: 'f' }),
      /renamedFrom: "f" must be a valid field name other than the current one/,
    ],
    [
      'a reserved name in other letters',
      { name: 'a.B', fields: { Version: { type: 'integer' }, createdon: { type: 'date' } } },
      /a\.B\.Version: this field name is reserved.*\n.*a\.B\.createdon: this field name is reserved/,
    ],
    [
      'a column that PostgreSQL has in every table',
      { name: 'a.B', fields: { xmin: { type: 'integer' } } },
      /a\.B\.xmin: this field name is reserved/,
    ],
    [
      'a table that SQLite keeps for itself',
      { name: 'SQLite_a.B', fields: { f: { type: 'integer' } } },
      /name must be a dotted name/,
    ],
    [
      'a password with a default',
      field({ type: 'string', secret: 'password', default: 'x' }),
      /a password cannot have a default/,
    ],
    [
      'a name that every object has',
      { name: 'a.B', fields: { toString: { type: 'string' } } },
      /a\.B\.toString: this field name is reserved/,
    ],
    [
      'a unique set of texts that are too long',
      {
        name: 'a.B',
        fields: { f: { type: 'string' }, g: { type: 'string' }, h: { type: 'string' } },
        unique: [['f', 'g', 'h']],
      },
      /the length of "f" and "g" and "h" must be at most 600 characters in total/,
    ],
    [
      'a reserved name',
      { name: 'a.B', fields: { version: { type: 'integer' } } },
      /a\.B\.version: this field name is reserved/,
    ],
    [
      'an invalid name',
      { name: 'a.B', fields: { 'x y': { type: 'integer' } } },
      /a\.B\.x y: a field name must be a letter/,
    ],
    [
      'two names that differ only in case',
      { name: 'a.B', fields: { f: { type: 'integer' }, F: { type: 'integer' } } },
      /a\.B\.F: the name differs from that of another field/,
    ],
    [
      'a name field that does not exist',
      { ...field({ type: 'string' }), nameField: 'g' },
      /nameField must be the name of a field/,
    ],
    [
      'a secret name field',
      { ...field({ type: 'string', secret: true }), nameField: 'f' },
      /nameField: "f" cannot be read/,
    ],
    [
      'a list field that does not exist',
      { ...field({ type: 'string' }), listFields: ['g'] },
      /listFields: unknown field "g"/,
    ],
    [
      'a secret list field',
      { ...field({ type: 'string', secret: true }), listFields: ['f'] },
      /listFields: "f" cannot be read/,
    ],
    [
      'a list field twice',
      { ...field({ type: 'string' }), listFields: ['f', 'f'] },
      /listFields names a field twice/,
    ],
    [
      'a unique set that is no list',
      { ...field({ type: 'string' }), unique: 'f' },
      /unique must be a list of lists/,
    ],
    [
      'an empty unique set',
      { ...field({ type: 'string' }), unique: [[]] },
      /unique: each set must name at least one field/,
    ],
    ['mergeGroups that is no list', { ...pair, mergeGroups: 'f' }, /mergeGroups must be a list of lists/],
    [
      'mergeGroups with one field',
      { ...pair, mergeGroups: [['f']] },
      /mergeGroups: each set must name at least two fields/,
    ],
    [
      'mergeGroups with an unknown field',
      { ...pair, mergeGroups: [['f', 'gg']] },
      /mergeGroups: unknown field "gg" \(did you mean "g"\?\)/,
    ],
    [
      'mergeGroups with a field twice',
      { ...pair, mergeGroups: [['f', 'f']] },
      /mergeGroups names a field twice/,
    ],
    [
      'a field in two sets of mergeGroups',
      {
        ...pair,
        mergeGroups: [
          ['f', 'g'],
          ['g', 'h'],
        ],
      },
      /mergeGroups: "g" is in two sets/,
    ],
    [
      'mergeGroups with a computed field',
      { ...pair, mergeGroups: [['f', 'c']] },
      /mergeGroups: "c" cannot be written by clients/,
    ],
    [
      'mergeGroups with a system field',
      { ...pair, mergeGroups: [['f', 'updatedOn']] },
      /mergeGroups: "updatedOn" cannot be written by clients/,
    ],
    ['mergeGroups with a secret', { ...pair, mergeGroups: [['f', 's']] }, /mergeGroups: "s" is secret/],
    [
      'a unique text that is too long',
      field({ type: 'string', unique: true, length: 601 }),
      /must be at most 600 characters in total/,
    ],
    ['an index on json', { ...field({ type: 'json' }), indexes: [['f']] }, /indexes: "f" cannot be indexed/],
    [
      'archived that is no boolean',
      { ...field({ type: 'string' }), archived: 1 },
      /archived must be true or false/,
    ],
  ]

  test.each(cases)('a model definition is rejected with file and field: %s', (_, definition, fault) => {
    expect(errorsOf(definition).join('\n')).toMatch(fault)
  })

  test('duplicate model names and the errors of all files are reported at once', () => {
    const good = field({ type: 'string' })
    const bad = {
      name: 'c.D',
      fields: { x: { type: 'nope' }, y: { type: 'integer', min: 'a' } },
      listFields: ['z'],
    }
    const faults = errorsOf(good, { ...good, name: 'A.b' }, bad)
    expect(faults).toHaveLength(4)
    expect(faults[0]).toBe('m2.json: A.b: m1.json declares a model of the same name')
    expect(faults.slice(1).every((fault) => fault.startsWith('m3.json: c.D'))).toBe(true)
  })
})

test('an extension adds merge groups', () => {
  const f = { type: 'string' } as const
  const model = { name: 'a.B', fields: { f, g: f, h: f, i: f }, mergeGroups: [['f', 'g']] } as const
  const extended = applyExtensions(model, [extendModel({ name: 'a.B', mergeGroups: [['h', 'i']] })])
  expect(errorsOf(extended)).toEqual([])
  expect(extended.mergeGroups).toEqual([
    ['f', 'g'],
    ['h', 'i'],
  ])
})

test('defineModel freezes a definition deeply', () => {
  const model = defineModel({ name: 'a.B', fields: { f: { type: 'string', default: 'x' } } })
  expect(Object.isFrozen(model) && Object.isFrozen(model.fields.f)).toBe(true)
})

test('the type of a record is inferred from its definition', () => {
  const Task = defineModel({
    name: 'todo.Task',
    fields: {
      title: { type: 'string', required: true },
      state: { type: 'enum', selection: ['open', { value: 'done', title: 'Done' }] },
      level: { type: 'integer', selection: [1, 2] },
      cost: { type: 'decimal' },
      extra: { type: 'json' },
      code: { type: 'string', secret: true },
      label: { type: 'string', computed: '{title}' },
    },
  })
  type Task = RecordOf<typeof Task>
  expectTypeOf<Task['id']>().toEqualTypeOf<number>()
  expectTypeOf<Task['title']>().toEqualTypeOf<string>()
  expectTypeOf<Task['state']>().toEqualTypeOf<'open' | 'done' | null>()
  expectTypeOf<Task['level']>().toEqualTypeOf<1 | 2 | null>()
  expectTypeOf<Task['cost']>().toEqualTypeOf<string | null>()
  expectTypeOf<Task['extra']>().toEqualTypeOf<Json>()
  expectTypeOf<Task['label']>().toEqualTypeOf<string | null>()
  expectTypeOf<Task['createdBy']>().toEqualTypeOf<UserReference | null>()
  expectTypeOf<keyof Task>().not.toEqualTypeOf<keyof Task | 'code'>()
  expectTypeOf<InputOf<typeof Task>>().toHaveProperty('code')
  expectTypeOf<InputOf<typeof Task>>().not.toHaveProperty('label')
  expect(errorsOf(Task)).toEqual([])

  const Note = defineModel({ name: 'a.Note', fields: { text: { type: 'text' } }, archived: true })
  expectTypeOf<RecordOf<typeof Note>['archived']>().toEqualTypeOf<boolean | null>()
  expectTypeOf<InputOf<typeof Note>['archived']>().toEqualTypeOf<boolean | null | undefined>()
  expectTypeOf<RecordOf<typeof Task>>().not.toHaveProperty('archived')
  expect(errorsOf(Note)).toEqual([])
})
