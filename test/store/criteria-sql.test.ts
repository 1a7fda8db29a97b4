// Results of criteria on both engines: a small library, and records with values of every type.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { parseConditionJson, MAX_TERMS } from '../../src/model/query/condition.js'
import { bindCondition } from '../../src/model/query/bind-condition.js'
import type { Criteria } from '../../src/model/query/criteria.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { resolvePath, type Path } from '../../src/model/query/path.js'
import type { Values } from '../../src/model/values/value.js'
import { MAX_JOINS, SqlScope } from '../../src/store/sql/criteria.js'
import type { Database } from '../../src/store/engine/database.js'
import { addMembers } from '../../src/store/records/list-members.js'
import { openDatabase } from '../../src/store/open.js'
import { insertRows } from '../../src/store/records/write.js'
import { applySchema } from '../../src/store/schema/apply.js'
import { Tables } from '../../src/store/sql/table.js'
import { Everything } from '../models.js'
import { newLocation, onEveryEngine, type DatabaseLocation } from '../targets.js'

const Country = defineModel({ name: 'lib.Country', fields: { name: { type: 'string' } } })
const Author = defineModel({
  name: 'lib.Author',
  fields: {
    name: { type: 'string' },
    country: { type: 'many-to-one', target: 'lib.Country' },
    books: { type: 'one-to-many', target: 'lib.Book', mappedBy: 'author' },
    profile: { type: 'one-to-one', target: 'lib.Profile', mappedBy: 'author' },
  },
})
const Profile = defineModel({
  name: 'lib.Profile',
  fields: { bio: { type: 'text' }, author: { type: 'one-to-one', target: 'lib.Author' } },
})
const Book = defineModel({
  name: 'lib.Book',
  fields: {
    name: { type: 'string' },
    pages: { type: 'integer' },
    author: { type: 'many-to-one', target: 'lib.Author' },
    tags: { type: 'many-to-many', target: 'lib.Tag' },
  },
})
const Tag = defineModel({
  name: 'lib.Tag',
  fields: {
    name: { type: 'string' },
    books: { type: 'many-to-many', target: 'lib.Book', mappedBy: 'tags' },
  },
})
/** Refers to itself in many ways, so that a search can go over many relations. */
const Node = defineModel({
  name: 'lib.Node',
  fields: Object.fromEntries(
    Array.from({ length: MAX_JOINS + 1 }, (_, index) => [
      `n${index}`,
      { type: 'many-to-one' as const, target: 'lib.Node' },
    ]),
  ),
})

const catalog = Catalog.from(
  [Country, Author, Profile, Book, Tag, Node, Everything].map((definition) => ({ file: 'm.ts', definition })),
)

/** Ids are assigned in this order: 1, 2 … */
const ROWS: Readonly<Record<string, readonly Values[]>> = {
  'lib.Country': [{ name: 'England' }, { name: 'Österreich' }],
  'lib.Author': [
    { name: 'Ada', country: { id: 1 } },
    { name: 'Bertha', country: { id: 2 } },
    { name: 'Cato', country: null },
  ],
  'lib.Profile': [{ bio: 'Countess', author: { id: 1 } }],
  'lib.Book': [
    { name: 'Notes', pages: 10, author: { id: 1 } },
    { name: 'Letters', pages: 200, author: { id: 1 } },
    { name: 'Waffen', pages: 300, author: { id: 2 } },
    { name: 'Anonymous', pages: null, author: null },
  ],
  'lib.Tag': [{ name: 'red' }, { name: 'blue' }, { name: 'unused' }],
  'lib.Node': [{}],
  'test.Everything': [
    {
      ...{ label: 'Zürich', note: 'a\nb', whole: 7, big: Number.MAX_SAFE_INTEGER, active: true },
      ...{ amount: '-1.5000000000', price: '12.50', day: '2024-02-29', at: '13:45:00' },
      ...{ moment: '2024-02-29T13:45:00.123Z', token: '8d3f5c9e-0c1b-4b60-9d53-0a4a6a3c1f10' },
      ...{ state: 'draft', extra: { a: 1 } },
    },
    {
      ...{
        label: 'zebra',
        whole: -7,
        big: -5,
        active: false,
        amount: '12345678901234567890.1',
        price: '9.00',
      },
      ...{ day: '0001-01-01', at: '00:00:00', moment: '0001-01-01T00:00:00.000Z', state: 'paid' },
    },
    {},
  ],
}
/** Book → tags. */
const LINKS: readonly (readonly [book: number, tags: readonly number[]])[] = [
  [1, [1, 2]],
  [2, [1]],
  [3, [2]],
]

async function fill(db: Database, tables: Tables): Promise<void> {
  await db.transaction(async (tx) => {
    for (const [name, rows] of Object.entries(ROWS)) await insertRows(tx, tables.of(catalog.get(name)), rows)
    const model = catalog.get('lib.Book')
    const field = model.fields.get('tags')
    if (!field) throw new Error('books have tags')
    for (const [book, tags] of LINKS)
      await addMembers(tx, db.dialect, { list: { model, field }, owner: book }, tags)
  })
}

type Asked = readonly [fieldName: string, operator: string, value?: unknown, value2?: unknown]

const node = ([fieldName, operator, value, value2]: Asked) => ({ fieldName, operator, value, value2 })

function criteriaOf(model: string, data: unknown): Criteria {
  const faults: string[] = []
  const condition = parseConditionJson(data, faults)
  const criteria = condition && bindCondition(catalog, catalog.get(model), condition, faults)
  if (!criteria) throw new Error(`not a search: ${faults.join('; ')}`)
  return criteria
}

function pathTo(model: string, text: string): Path {
  const path = resolvePath(catalog, catalog.get(model), text)
  if (typeof path === 'string') throw new Error(path)
  return path
}

onEveryEngine((engine) => {
  let location: DatabaseLocation
  let db: Database
  let tables: Tables

  beforeAll(async () => {
    location = await newLocation(engine)
    db = await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 })
    await applySchema(db, catalog)
    tables = new Tables(db.dialect, catalog)
    await fill(db, tables)
  })
  afterAll(async () => {
    await db.close()
    location.remove()
  })

  async function search(model: string, data: unknown, sortBy?: string): Promise<number[]> {
    const scope = new SqlScope(db.dialect)
    const where = scope.compileWhere(criteriaOf(model, data))
    const path = sortBy === undefined ? undefined : pathTo(model, sortBy)
    const order = path ? `${scope.compileColumn(path.steps, path.field)} desc nulls last, ` : ''
    const from = `from ${tables.of(catalog.get(model)).name} as t ${scope.joins}`
    const { sql, params } = scope.render(
      `select t."id" as "id" ${from} where ${where} order by ${order}t."id"`,
    )
    const rows = await db.reader.all(sql, params)
    return rows.map((row) => Number(row['id']))
  }
  const ask = (model: string, ...asked: Asked) => search(model, { criteria: [node(asked)] })

  describe('operators by field type', () => {
    const cases: readonly (readonly [asked: Asked, found: readonly number[]])[] = [
      [['label', '=', 'zebra'], [2]],
      [['label', '!=', 'zebra'], [1]],
      [['label', '<', 'a'], [1]],
      [
        ['label', '>=', 'Z'],
        [1, 2],
      ],
      [['label', 'like', 'ZURICH'], [1]],
      [
        ['label', 'like', 'z%'],
        [1, 2],
      ],
      [['label', 'notLike', 'zürich'], [2]],
      [
        ['label', 'in', ['zebra', 'Zürich', "it's", '?']],
        [1, 2],
      ],
      [['label', 'notIn', ['zebra']], [1]],
      [['label', 'between', 'Z', 'Zÿ'], [1]],
      [['label', 'between', 'Z', 'Zzz'], []],
      [['label', 'isNull'], [3]],
      [
        ['label', 'notNull'],
        [1, 2],
      ],
      [['note', '=', 'a\nb'], [1]],
      [['state', 'in', ['draft', 'never']], [1]],
      [
        ['whole', '<=', 7],
        [1, 2],
      ],
      [['whole', 'between', -7, 0], [2]],
      [['whole', 'notBetween', -7, 0], [1]],
      [['whole', 'in', ['7', 8]], [1]],
      [['big', '=', Number.MAX_SAFE_INTEGER], [1]],
      [
        ['big', 'in', [Number.MAX_SAFE_INTEGER, -5]],
        [1, 2],
      ],
      [['big', '<', Number.MAX_SAFE_INTEGER], [2]],
      [['amount', '=', '-1.5'], [1]],
      [['amount', '<', '-1.49'], [1]],
      [
        ['amount', '>', -2],
        [1, 2],
      ],
      [['amount', 'in', ['12345678901234567890.10', 5]], [2]],
      [['price', 'between', 9, '12.49'], [2]],
      [['active', '=', true], [1]],
      [['active', '!=', 'true'], [2]],
      [
        ['active', 'in', [true, false]],
        [1, 2],
      ],
      [['active', 'notIn', [false]], [1]],
      [['day', '=', '2024-02-29'], [1]],
      [
        ['day', 'in', ['2024-02-29', '0001-01-01']],
        [1, 2],
      ],
      [['day', '<', '1000-01-01'], [2]],
      [['at', '>', '13:44'], [1]],
      [['at', 'in', ['00:00']], [2]],
      [['moment', '=', '2024-02-29T14:45:00.123+01:00'], [1]],
      [['moment', '>', '2024-02-29'], [1]],
      [['moment', 'in', ['0001-01-01', '2024-02-29']], [2]],
      [['token', '=', '8D3F5C9E-0C1B-4B60-9D53-0A4A6A3C1F10'], [1]],
      [['token', 'in', ['8d3f5c9e-0c1b-4b60-9d53-0a4a6a3c1f10']], [1]],
      [['extra', 'notNull'], [1]],
      [
        ['extra', 'isNull'],
        [2, 3],
      ],
      [
        ['id', 'in', [1, 3]],
        [1, 3],
      ],
      [
        ['version', '=', 0],
        [1, 2, 3],
      ],
      // A value that the field cannot store matches nothing, without an error.
      [['whole', '=', Number.MAX_SAFE_INTEGER], []],
      [
        ['price', '<', `${'9'.repeat(38)}.${'9'.repeat(38)}`],
        [1, 2],
      ],
      [['state', '=', 'x'.repeat(10_000)], []],
    ]
    test.each(cases)('the criteria %j match the expected records', async (asked, found) => {
      expect(await ask('test.Everything', ...asked)).toEqual(found)
    })

    test('texts are compared by code point', async () => {
      // U+FFFD sorts before U+1F600, unlike in UTF-16, and every capital letter before every small one.
      for (const [text, found] of [
        ['\u{1F600}', [1, 2]],
        ['\uFFFD', [1, 2]],
        ['z', [1]],
      ] as const)
        expect(await ask('test.Everything', 'label', '<', text)).toEqual(found)
    })
  })

  describe('null in criteria', () => {
    test.each(['=', '!=', '<', '>', '<=', '>='])(
      'a comparison %s null and its negation match no record',
      async (operator) => {
        for (const field of ['label', 'whole', 'amount', 'active', 'day', 'at', 'moment', 'token', 'state']) {
          if (!['=', '!='].includes(operator) && ['active', 'token'].includes(field)) continue
          const criteria = [node([field, operator, null])]
          expect(await search('test.Everything', { criteria })).toEqual([])
          expect(await search('test.Everything', { operator: 'not', criteria })).toEqual([])
        }
      },
    )

    test('in [] matches no record, and notIn [] every record', async () => {
      for (const field of ['label', 'whole', 'amount', 'active', 'day', 'at', 'moment', 'token', 'state']) {
        expect(await ask('test.Everything', field, 'in', [])).toEqual([])
        expect(await ask('test.Everything', field, 'notIn', [])).toEqual([1, 2, 3])
      }
    })

    test('a negated operator does not match null', async () => {
      for (const [operator, value] of [
        ['!=', 'zebra'],
        ['notLike', 'zebra'],
        ['notIn', ['zebra']],
      ] as const)
        expect(await ask('test.Everything', 'label', operator, value)).toEqual([1])
      expect(await ask('test.Everything', 'label', 'notBetween', 'a', 'zz')).toEqual([1])
    })
  })

  describe('paths over related records', () => {
    const cases: readonly (readonly [model: string, asked: Asked, found: readonly number[]])[] = [
      ['lib.Book', ['author.name', '=', 'Ada'], [1, 2]],
      ['lib.Book', ['author.name', 'isNull'], [4]],
      ['lib.Book', ['author.country.name', 'like', 'oster%'], [3]],
      ['lib.Book', ['author.country', 'isNull'], [4]],
      ['lib.Author', ['country', 'isNull'], [3]],
      ['lib.Book', ['author', '=', 1], [1, 2]],
      ['lib.Book', ['author', '!=', { id: 1 }], [3]],
      ['lib.Book', ['author', 'in', [2, 99]], [3]],
      ['lib.Book', ['author', 'notIn', []], [1, 2, 3, 4]],
      ['lib.Book', ['author', 'notNull'], [1, 2, 3]],
      ['lib.Book', ['author', 'like', 'a'], [1, 2, 3]],
      ['lib.Book', ['author', '=', null], []],
      ['lib.Book', ['author.id', '>', 1], [3]],
      ['lib.Book', ['author.country.id', '=', 2], [3]],
      ['lib.Book', ['author.version', '=', 0], [1, 2, 3]],
      ['lib.Book', ['createdBy', '=', 'Ada'], []],
      // The inverse of a one-to-one.
      ['lib.Author', ['profile', '=', 1], [1]],
      ['lib.Author', ['profile', 'isNull'], [2, 3]],
      ['lib.Author', ['profile.bio', 'like', 'count'], [1]],
      ['lib.Author', ['profile.id', 'in', [1]], [1]],
      ['lib.Author', ['profile.author.name', '=', 'Ada'], [1]],
      ['lib.Book', ['author.profile.author', '=', 1], [1, 2]],
    ]
    test.each(cases)('the path criteria of %s %j match the expected records', async (model, asked, found) => {
      expect(await ask(model, ...asked)).toEqual(found)
    })
  })

  describe('criteria over lists', () => {
    const cases: readonly (readonly [model: string, asked: Asked, found: readonly number[]])[] = [
      ['lib.Author', ['books.name', '=', 'Notes'], [1]],
      ['lib.Author', ['books.name', 'like', '%e%'], [1, 2]],
      ['lib.Author', ['books.pages', '>', 100], [1, 2]],
      ['lib.Author', ['books.pages', '!=', 10], [1, 2]],
      ['lib.Author', ['books', '=', 1], [1]],
      ['lib.Author', ['books', '!=', 3], [1]],
      ['lib.Author', ['books', 'in', [3, 4]], [2]],
      ['lib.Author', ['books', 'in', []], []],
      ['lib.Author', ['books', 'notIn', []], [1, 2]],
      ['lib.Author', ['books', '=', 'Waffen'], [2]],
      ['lib.Author', ['books', 'isEmpty'], [3]],
      ['lib.Author', ['books', 'notEmpty'], [1, 2]],
      ['lib.Author', ['books.author', '=', 2], [2]],
      ['lib.Author', ['books.author.country.name', '=', 'England'], [1]],
      ['lib.Author', ['books.tags', '=', 2], [1, 2]],
      ['lib.Author', ['books.tags', 'isEmpty'], []],
      ['lib.Author', ['books.tags.name', 'in', ['red']], [1]],
      ['lib.Country', ['id', 'notNull'], [1, 2]],
      ['lib.Book', ['tags', '=', 1], [1, 2]],
      ['lib.Book', ['tags', 'in', ['red', 'blue']], [1, 2, 3]],
      ['lib.Book', ['tags', 'isEmpty'], [4]],
      ['lib.Book', ['tags', 'notEmpty'], [1, 2, 3]],
      ['lib.Book', ['tags', '=', null], []],
      ['lib.Book', ['author.books.pages', '=', 10], [1, 2]],
      ['lib.Book', ['author.books', 'isEmpty'], [4]],
      // The inverse of a many-to-many.
      ['lib.Tag', ['books', '=', 3], [2]],
      ['lib.Tag', ['books.author.name', '=', 'Ada'], [1, 2]],
      ['lib.Tag', ['books', 'isEmpty'], [3]],
      ['lib.Tag', ['books.tags.name', '=', 'red'], [1, 2]],
    ]
    test.each(cases)(
      'the list criteria of %s %j match records with at least one such member',
      async (model, asked, found) => {
        expect(await ask(model, ...asked)).toEqual(found)
      },
    )

    test('a negated list criterion matches records without any such member, also with an empty list', async () => {
      const criteria = [node(['books.pages', '>', 200])]
      expect(await search('lib.Author', { criteria })).toEqual([2])
      expect(await search('lib.Author', { operator: 'not', criteria })).toEqual([1, 3])
      const unknown = [node(['books.pages', '=', null])]
      expect(await search('lib.Author', { operator: 'not', criteria: unknown })).toEqual([1, 2, 3])
    })

    test('two list criteria may match different members', async () => {
      const criteria = [node(['books.name', '=', 'Notes']), node(['books.pages', '=', 200])]
      expect(await search('lib.Author', { criteria })).toEqual([1])
    })
  })

  test('"and", "or" and "not" combine as they are nested', async () => {
    const [red, ada, long] = [
      node(['tags', '=', 'red']),
      node(['author', '=', 'Ada']),
      node(['pages', '>', 100]),
    ]
    expect(await search('lib.Book', { operator: 'and', criteria: [red, long] })).toEqual([2])
    expect(await search('lib.Book', { operator: 'or', criteria: [red, long] })).toEqual([1, 2, 3])
    expect(await search('lib.Book', { operator: 'not', criteria: [ada, long] })).toEqual([1, 3])
    const either = { operator: 'or', criteria: [{ operator: 'not', criteria: [red] }, ada] }
    expect(await search('lib.Book', { criteria: [either, long] })).toEqual([2, 3])
    expect(
      await search('lib.Book', { operator: 'or', criteria: [long, { criteria: [either, red] }] }),
    ).toEqual([1, 2, 3])
  })

  test('an order over related records uses the joins of the criteria', async () => {
    const data = { criteria: [node(['author.country.name', 'notNull'])] }
    expect(await search('lib.Book', data, 'author.name')).toEqual([3, 1, 2])
    const all = { criteria: [node(['id', 'notNull'])] }
    expect(await search('lib.Book', all, 'author.country.name')).toEqual([3, 1, 2, 4])
    expect(await search('lib.Book', all, 'author.id')).toEqual([3, 1, 2, 4])
    const scope = new SqlScope(db.dialect)
    scope.compileWhere(criteriaOf('lib.Book', data))
    const before = scope.joins
    const { steps, field } = pathTo('lib.Book', 'author.name')
    scope.compileColumn(steps, field)
    expect(scope.joins).toBe(before)
    expect(before.match(/join/g)).toHaveLength(2)
  })

  test('the id of a related record needs no join', () => {
    const scope = new SqlScope(db.dialect)
    const where = scope.compileWhere(criteriaOf('lib.Book', { criteria: [node(['author', '=', 5])] }))
    expect(scope.render(where)).toEqual({ sql: '(t."author" = ?)', params: [5] })
    expect(scope.joins).toBe('')
  })

  test('values from clients are parameters, never part of the SQL', () => {
    const evil = `'"); drop table x; --`
    const scope = new SqlScope(db.dialect)
    const asked: readonly Asked[] = [
      ['name', '=', evil],
      ['name', 'like', evil],
      ['name', 'in', [evil]],
      ['name', 'between', evil, evil],
      ['tags', '=', evil],
      ['author.name', 'notLike', evil],
    ]
    const { sql, params } = scope.render(
      scope.compileWhere(criteriaOf('lib.Book', { criteria: asked.map(node) })),
    )
    expect(sql).not.toContain('drop')
    expect(scope.joins).not.toContain('drop')
    expect(params).toHaveLength(7)
    expect(params.every((param) => String(param).includes('drop'))).toBe(true)
  })

  test('a list of any length is one parameter, so few SQL texts exist', () => {
    const [short, long] = [[1], Array.from({ length: 1000 }, (_, index) => index)].map((ids) => {
      const scope = new SqlScope(db.dialect)
      const where = scope.compileWhere(criteriaOf('lib.Book', { criteria: [node(['tags', 'in', ids])] }))
      const { sql, params } = scope.render(where)
      return [sql, params.length]
    })
    expect(long).toEqual(short)
    expect(short?.[1]).toBe(1)
  })

  describe('limits of joins', () => {
    test(`a search may go over ${MAX_JOINS} relations, and one more is rejected`, async () => {
      const over = (count: number) => ({
        criteria: Array.from({ length: count }, (_, index) => node([`n${index}.version`, 'isNull'])),
      })
      expect(await search('lib.Node', over(MAX_JOINS))).toEqual([1])
      const error = await search('lib.Node', over(MAX_JOINS + 1)).catch((error: unknown) => error)
      expect(error).toBeInstanceOf(VersoError)
      expect(error).toMatchObject({ kind: 'bad-request', message: expect.stringMatching(/32 relations/) })
    })

    test('a relation used by many criteria counts once', async () => {
      // Without a limit, PostgreSQL plans eight of these for twenty seconds.
      const long = 'author.books.author.books.author.books.author.books'
      const criteria = Array.from({ length: MAX_TERMS }, () => node([long, '=', 1]))
      expect(await search('lib.Book', { criteria })).toEqual([1, 2])
      expect(await search('lib.Book', { operator: 'or', criteria })).toEqual([1, 2])
      expect(await search('lib.Book', { operator: 'not', criteria })).toEqual([3, 4])
    })

    test('many criteria about empty lists are answered', async () => {
      const criteria = Array.from({ length: MAX_TERMS }, () => node(['author.books.tags', 'notEmpty']))
      expect(await search('lib.Book', { criteria })).toEqual([1, 2, 3])
      const empty = Array.from({ length: MAX_TERMS }, () => node(['tags', 'isEmpty']))
      expect(await search('lib.Book', { criteria: empty })).toEqual([4])
    })

    test('the relations of an order count towards the limit of joins', () => {
      const scope = new SqlScope(db.dialect)
      const join = (index: number) => {
        const { steps, field } = pathTo('lib.Node', `n${index}.version`)
        scope.compileColumn(steps, field)
      }
      for (let index = 0; index < MAX_JOINS; index++) join(index)
      expect(() => {
        join(MAX_JOINS)
      }).toThrow(VersoError)
    })
  })
})
