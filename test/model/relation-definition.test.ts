import { describe, expect, test } from 'vitest'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { models } from '../models.js'
import { errorsOf } from './catalog-errors.js'

/** A task with this field, along with a person and a team. */
const task = (field: object, more: object = {}, person: object = {}) => [
  { name: 'a.Task', fields: { title: { type: 'string' }, f: field }, ...more },
  { name: 'a.Person', fields: { name: { type: 'string' }, ...person } },
  { name: 'a.Team', fields: { name: { type: 'string' } } },
]
const toTask = { type: 'many-to-one', target: 'a.Task' }

test('the related fixture models are valid', () => {
  expect(() => Catalog.from(models)).not.toThrow()
})

describe('errors in relations', () => {
  const cases: readonly (readonly [name: string, definitions: readonly unknown[], fault: string | RegExp])[] =
    [
      [
        'an unknown target',
        task({ type: 'many-to-one', target: 'a.Persom' }),
        'm1.json: a.Task.f: there is no model "a.Persom" (did you mean "a.Person"?)',
      ],
      [
        'an unknown target without a similar name',
        task({ type: 'many-to-many', target: 'zzz' }),
        'm1.json: a.Task.f: there is no model "zzz"',
      ],
      ['no target', task({ type: 'many-to-one' }), /a\.Task\.f: target must be the name of a model/],
      [
        'a target that is no text',
        task({ type: 'one-to-one', target: 5 }),
        /target must be the name of a model/,
      ],
      [
        'a one-to-many without mappedBy',
        task({ type: 'one-to-many', target: 'a.Person' }),
        /a\.Task\.f: a one-to-many needs mappedBy: the many-to-one field of the target that refers to this model/,
      ],
      [
        'a mappedBy that is no text',
        task({ type: 'one-to-many', target: 'a.Person', mappedBy: 5 }),
        /mappedBy must be the name of a field/,
      ],
      [
        'a mappedBy that is no field',
        task({ type: 'one-to-many', target: 'a.Person', mappedBy: 'tsak' }, {}, { task: toTask }),
        'm1.json: a.Task.f: mappedBy: a.Person has no field "tsak" (did you mean "task"?)',
      ],
      [
        'a mappedBy that is no relation',
        task({ type: 'one-to-many', target: 'a.Person', mappedBy: 'name' }),
        'm1.json: a.Task.f: mappedBy: a.Person.name must be a many-to-one with target a.Task',
      ],
      [
        'a mappedBy of another type',
        task(
          { type: 'one-to-many', target: 'a.Person', mappedBy: 'task' },
          {},
          { task: { type: 'one-to-one', target: 'a.Task' } },
        ),
        'm1.json: a.Task.f: mappedBy: a.Person.task must be a many-to-one with target a.Task',
      ],
      [
        'a one-to-one mapped by a many-to-one',
        task({ type: 'one-to-one', target: 'a.Person', mappedBy: 'task' }, {}, { task: toTask }),
        'm1.json: a.Task.f: mappedBy: a.Person.task must be a one-to-one with target a.Task',
      ],
      [
        'a mappedBy that leads elsewhere',
        task(
          { type: 'many-to-many', target: 'a.Person', mappedBy: 'teams' },
          {},
          { teams: { type: 'many-to-many', target: 'a.Team' } },
        ),
        'm1.json: a.Task.f: mappedBy: a.Person.teams must be a many-to-many with target a.Task',
      ],
      [
        'a mappedBy that is a system field',
        task({ type: 'one-to-many', target: 'a.Person', mappedBy: 'createdBy' }),
        'm1.json: a.Task.f: mappedBy: a.Person.createdBy must be a many-to-one with target a.Task',
      ],
      [
        'two sides with mappedBy',
        task(
          { type: 'many-to-many', target: 'a.Person', mappedBy: 'tasks' },
          {},
          { tasks: { type: 'many-to-many', target: 'a.Task', mappedBy: 'f' } },
        ),
        /a\.Task\.f: mappedBy: a\.Person\.tasks has mappedBy, too: remove it from the side that stores the relation/,
      ],
      [
        'two owned lists over one reference',
        task(
          { type: 'one-to-many', target: 'a.Person', mappedBy: 'task', owned: true },
          {
            fields: {
              f: { type: 'one-to-many', target: 'a.Person', mappedBy: 'task', owned: true },
              g: { type: 'one-to-many', target: 'a.Person', mappedBy: 'task', owned: true },
            },
          },
          { task: toTask },
        ),
        /a\.Task\.f: mappedBy: the list "g" already owns the same records/,
      ],
      [
        'an order that is no list of names',
        task({ type: 'many-to-many', target: 'a.Person', orderBy: 'name' }),
        'm1.json: a.Task.f: orderBy must be a list of field names, such as ["sequence", "-createdOn"]',
      ],
      [
        'an order by a field that is not there',
        task({ type: 'many-to-many', target: 'a.Person', orderBy: ['id', '-nmae'] }),
        'm1.json: a.Task.f: orderBy: a.Person has no field "nmae" (did you mean "name"?)',
      ],
      [
        'an order by a field behind a relation that is not there',
        task(
          { type: 'many-to-many', target: 'a.Person', orderBy: ['team.nam'] },
          {},
          { team: { type: 'many-to-one', target: 'a.Team' } },
        ),
        'm1.json: a.Task.f: orderBy: a.Team has no field "nam" (did you mean "name"?)',
      ],
      [
        'an order by a list',
        task(
          { type: 'one-to-many', target: 'a.Person', mappedBy: 'task', orderBy: ['teams'] },
          {},
          { task: toTask, teams: { type: 'many-to-many', target: 'a.Team' } },
        ),
        'm1.json: a.Task.f: orderBy: "teams" is a list, and records cannot be sorted by a list',
      ],
      [
        'an order by a secret field',
        task(
          { type: 'many-to-many', target: 'a.Person', orderBy: ['pin'] },
          {},
          { pin: { type: 'string', secret: true } },
        ),
        /a\.Task\.f: orderBy: a\.Person has no field "pin"/,
      ],
      [
        'an order by too many keys',
        task({ type: 'many-to-many', target: 'a.Person', orderBy: Array(9).fill('name') }),
        'm1.json: a.Task.f: orderBy must have at most 8 keys',
      ],
      [
        'an order over too many relations',
        task(
          { type: 'many-to-many', target: 'a.Person', orderBy: Array(5).fill('up.up.up.up.name') },
          {},
          { up: { type: 'many-to-one', target: 'a.Person' } },
        ),
        'm1.json: a.Task.f: orderBy follows more than 16 relations',
      ],
      [
        'a reference with an order',
        task({ type: 'many-to-one', target: 'a.Person', orderBy: ['name'] }),
        /unknown option "orderBy" for type many-to-one/,
      ],
      [
        'a required inverse relation',
        task(
          { type: 'one-to-one', target: 'a.Person', mappedBy: 'task', required: true },
          {},
          { task: { type: 'one-to-one', target: 'a.Task' } },
        ),
        /an inverse relation \(with mappedBy\) cannot be required/,
      ],
      [
        'a list that is required',
        task({ type: 'many-to-many', target: 'a.Person', required: true }),
        /unknown option "required" for type many-to-many/,
      ],
      [
        'a many-to-one with mappedBy',
        task({ type: 'many-to-one', target: 'a.Person', mappedBy: 'task' }),
        /unknown option "mappedBy" for type many-to-one/,
      ],
      [
        'a many-to-many that is owned',
        task({ type: 'many-to-many', target: 'a.Person', owned: true }),
        /unknown option "owned" for type many-to-many/,
      ],
      [
        'owned that is no boolean',
        task({ type: 'one-to-many', target: 'a.Person', mappedBy: 'task', owned: 1 }, {}, { task: toTask }),
        /owned must be true or false/,
      ],
      [
        'a reference with a default',
        task({ type: 'many-to-one', target: 'a.Person', default: 1 }),
        /unknown option "default" for type many-to-one/,
      ],
      [
        'a relation as the name field',
        task({ type: 'many-to-one', target: 'a.Person' }, { nameField: 'f' }),
        'm1.json: a.Task: nameField: "f" must not be a relation',
      ],
      [
        'a relation in a template',
        task(
          { type: 'many-to-one', target: 'a.Person' },
          {
            fields: {
              f: { type: 'many-to-one', target: 'a.Person' },
              label: { type: 'string', computed: 'for {f}' },
            },
          },
        ),
        'm1.json: a.Task.label: the template names "f", which is a relation',
      ],
      [
        'a list in an index',
        task({ type: 'many-to-many', target: 'a.Person' }, { indexes: [['title', 'f']] }),
        'm1.json: a.Task: indexes: "f" cannot be indexed',
      ],
      [
        'an inverse relation in a unique set',
        task(
          { type: 'one-to-one', target: 'a.Person', mappedBy: 'task' },
          { unique: [['f']] },
          { task: { type: 'one-to-one', target: 'a.Task' } },
        ),
        'm1.json: a.Task: unique: "f" cannot be indexed',
      ],
    ]

  test.each(cases)('a relation is rejected with file and field: %s', (_, definitions, fault) => {
    const faults = errorsOf(...definitions)
    if (typeof fault === 'string') expect(faults).toContain(fault)
    else expect(faults.join('\n')).toMatch(fault)
  })

  test('errors of all relations of all models are reported at once', () => {
    const lost = (name: string) => ({ name, fields: { to: { type: 'many-to-one', target: 'zzz.Nothing' } } })
    expect(errorsOf(lost('a.One'), lost('a.Two'))).toEqual([
      'm1.json: a.One.to: there is no model "zzz.Nothing"',
      'm2.json: a.Two.to: there is no model "zzz.Nothing"',
    ])
  })

  test('a reference may be part of an index and of a unique set', () => {
    const sets = { indexes: [['f', 'title']], unique: [['f']] }
    expect(errorsOf(...task({ type: 'many-to-one', target: 'a.Person' }, sets))).toEqual([])
  })
})

describe('errors in sequences', () => {
  const sequence = (options: unknown, more: object = {}) => ({
    name: 'a.B',
    fields: { f: { type: 'string', sequence: options, ...more } },
  })
  const cases: readonly (readonly [name: string, definition: unknown, fault: RegExp])[] = [
    ['no object', sequence(5), /a\.B\.f: sequence must be an object such as/],
    ['null', sequence(null), /sequence must be an object such as/],
    [
      'a misspelled option',
      sequence({ prefx: 'A' }),
      /sequence: unknown option "prefx" \(did you mean "prefix"\?\)/,
    ],
    ['a prefix that is no text', sequence({ prefix: 5 }), /prefix and suffix must be text/],
    ['a suffix that is no text', sequence({ suffix: null }), /prefix and suffix must be text/],
    ['a padding past its limit', sequence({ padding: 16 }), /padding must be a whole number from 0 to 15/],
    ['a padding that is no number', sequence({ padding: '4' }), /padding must be a whole number/],
    ['a first number below 0', sequence({ next: -1 }), /next must be a whole number from 0/],
    ['a first number that is not whole', sequence({ next: 1.5 }), /next must be a whole number from 0/],
    ['a first number that is not exact', sequence({ next: 2 ** 53 }), /next must be a whole number from 0/],
    ['a required sequence', sequence({}, { required: true }), /a sequence cannot have the option "required"/],
    [
      'a sequence with a default',
      sequence({}, { default: 'x' }),
      /a sequence cannot have the option "default"/,
    ],
    ['a secret sequence', sequence({}, { secret: true }), /a sequence cannot have the option "secret"/],
    [
      'a computed sequence',
      {
        name: 'a.B',
        fields: { g: { type: 'string' }, f: { type: 'string', sequence: {}, computed: '{g}' } },
      },
      /a sequence cannot be computed or have a selection/,
    ],
    [
      'a sequence with a selection',
      sequence({}, { selection: ['a'] }),
      /a sequence cannot be computed or have a selection/,
    ],
    [
      'a sequence of another type',
      { name: 'a.B', fields: { f: { type: 'integer', sequence: {} } } },
      /unknown option "sequence" for type integer/,
    ],
  ]

  test.each(cases)('a sequence is rejected: %s', (_, definition, fault) => {
    expect(errorsOf(definition).join('\n')).toMatch(fault)
  })

  test('a sequence without options is accepted', () => {
    expect(errorsOf(sequence({}))).toEqual([])
  })
})
