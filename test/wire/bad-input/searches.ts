// Searches for unknown fields, in an invalid shape, or beyond the limits.
import { BAD, DONE, get, NO_MODEL, NOT_FOUND, row, show, withBody, words, type Case } from './case.js'

const PERSONS = '/ws/rest/rel.Person'
const search = (body: unknown) => withBody('POST', `${PERSONS}/search`, JSON.stringify(body))
const fetch = (body: unknown) => withBody('POST', `${PERSONS}/1/fetch`, JSON.stringify(body))
const find = (query: Record<string, string>) => get(`${PERSONS}?${new URLSearchParams(query).toString()}`)
const term = (fieldName: unknown, operator: unknown, value?: unknown, value2?: unknown) =>
  search({ data: { criteria: [{ fieldName, operator, value, value2 }] } })
const groups = (levels: number): unknown =>
  levels === 0
    ? { fieldName: 'id', operator: '=', value: 1 }
    : { operator: 'and', criteria: [groups(levels - 1)] }
const many = (count: number) => Array.from({ length: count }, (_, index) => index)

const shapes: readonly Case[] = [
  ...[1, 'x', [], true].map((body) =>
    row(`a search with the body ${JSON.stringify(body)}`, search(body), BAD),
  ),
  ...[
    { data: [] },
    { data: 'x' },
    { data: 1 },
    { data: { name: 'x' } },
    { data: { _domains: {} } },
    { data: { _domains: [{}] } },
    { data: { _domains: [{ domain: 'nothing = 1' }] } },
    { data: { _domains: [{ domain: 'id = 1', context: [] }] } },
    { data: { _domainAction: 'an-action' } },
    { data: { criteria: {} } },
    { data: { criteria: 'x' } },
    { data: { criteria: [1] } },
    { data: { criteria: [null] } },
    { data: { criteria: [[]] } },
    { data: { criteria: [{}] } },
    { data: { criteria: [{ operator: 'and', criteria: [] }] } },
    { data: { criteria: [], operator: 'And' } },
    { data: { criteria: [], operator: 7 } },
    { data: { fieldName: 'id', operator: '=', value: 1 } },
    { data: { _domain: 5 } },
    { data: { _domain: ['id = 1'] } },
    { data: { _domain: 'id = :x', _domainContext: [] } },
    { data: { _domain: 'id = :x' } },
    { data: { _domain: 'id = :__proto__', _domainContext: {} } },
    { data: { _domain: 'id = :constructor.name', _domainContext: {} } },
    { criteria: [{ fieldName: 'id', operator: '=', value: 1 }] },
    { filter: 'id = 1' },
    { data: { _archived: 'yes' } },
    { data: { _archived: 1 } },
    { offset: -1 },
    { limit: 'x' },
    { limit: 1.5 },
    { fields: 'name' },
    { fields: [1] },
    { fields: {} },
    { sortBy: 'name' },
    { sortBy: [null] },
  ].map((body) => row(`a search with ${show(JSON.stringify(body))}`, search(body), BAD)),
  row('a search in an unknown model', withBody('POST', '/ws/rest/no.Model/search', '{}'), NO_MODEL),
  row('a search without a body', { method: 'POST', path: `${PERSONS}/search`, headers: {} }, DONE),
  row('a search with an empty object', search({}), DONE),
  row(
    'a search with nulls',
    search({ offset: null, limit: null, fields: null, sortBy: null, data: null }),
    DONE,
  ),
]

const fields: readonly Case[] = [
  ...words`nope name.x company. .name company..name company.nope company.name.x circles.nope __proto__ constructor toString
    createdBy.password createdBy.usernam createdBy.admin createdBy.hash id.id company.id.id a'b "name" name;--
    ${'company.parent.'.repeat(9)}name`,
  ...['', ' ', 'name name', 'na\0me', '\ud800', 'x'.repeat(5_000), 'nämë'],
].flatMap((name) => [
  row(`a search with criteria on ${show(JSON.stringify(name))}`, term(name, '=', 1), BAD),
  row(`a search with the field ${show(JSON.stringify(name))}`, search({ fields: [name] }), BAD),
  row(`a search sorted by ${show(JSON.stringify(name))}`, search({ sortBy: [name] }), BAD),
])

const operators: readonly Case[] = [
  ...[null, 1, '', 'eq', 'EQUALS', '==', 'Like', 'is null', 'drop table', {}, []].map((operator) =>
    row(`a search with the operator ${JSON.stringify(operator)}`, term('name', operator, 'x'), BAD),
  ),
  ...(
    [
      ['name', '=', 5],
      ['name', '=', {}],
      ['name', '=', 'a\0b'],
      ['name', '=', '\ud800'],
      ['name', 'like', null],
      ['name', 'like', 5],
      ['name', 'like', 'a\0'],
      ['name', 'in', 'x'],
      ['name', 'in', { length: 1 }],
      ['name', 'in', [null]],
      ['name', 'in', [['x']]],
      ['name', 'between', 'a'],
      ['name', 'between', null, 'b'],
      ['name', 'isEmpty'],
      ['born', '=', '2024-02-30'],
      ['born', '<', 5],
      ['born', 'like', '2024'],
      ['rate', '=', 'abc'],
      ['rate', '=', '1e5'],
      ['rate', '>', true],
      ['isActive', '=', 1],
      ['isActive', '<', true],
      ['company', '=', 1.5],
      ['company', '=', {}],
      ['company', '=', []],
      ['company', '<', 5],
      ['company', 'in', [1, 'x']],
      ['circles', 'isNull'],
      ['circles', 'like', 5],
      ['circles', '=', { id: 'x' }],
      ['id', '=', 'x'],
      ['id', '=', 2 ** 53],
      ['id', 'like', '1'],
      ['version', '=', 0.5],
    ] as const
  ).map(([field, operator, value, value2]) =>
    row(
      `a search for ${field} ${operator} ${show(JSON.stringify([value, value2]))}`,
      term(field, operator, value, value2),
      BAD,
    ),
  ),
  row('a search for equal to null', term('name', '=', null), DONE),
  row('a search for in an empty list', term('name', 'in', []), DONE),
  row('a search for like with an unfinished escape', term('name', 'like', 'a\\'), DONE),
  row('a search for like with only wildcards', term('name', 'like', '%_%_%_%_%_%'), DONE),
  row('a search for like with SQL', term('name', 'like', '\'; drop table "rel.Person"; --'), DONE),
]

const limits: readonly Case[] = [
  row('a search with 16 levels', search({ data: { criteria: [groups(15)] } }), DONE),
  row('a search with 17 levels', search({ data: { criteria: [groups(16)] } }), BAD),
  row('a search with 900 levels', search({ data: { criteria: [groups(400)] } }), BAD),
  row(
    'a search with 64 terms',
    search({ data: { criteria: many(64).map((value) => ({ fieldName: 'id', operator: '=', value })) } }),
    DONE,
  ),
  row(
    'a search with 65 terms',
    search({ data: { criteria: many(65).map((value) => ({ fieldName: 'id', operator: '=', value })) } }),
    BAD,
  ),
  row('a search for in with 1,000 values', term('id', 'in', many(1_000)), DONE),
  row('a search for in with 1,001 values', term('id', 'in', many(1_001)), BAD),
  row('a search for like with 256 characters', term('name', 'like', 'x'.repeat(256)), DONE),
  row('a search for like with 257 characters', term('name', 'like', 'x'.repeat(257)), BAD),
  row('a search with 8 sort keys', search({ sortBy: many(8).map(() => 'name') }), DONE),
  row('a search with 9 sort keys', search({ sortBy: many(9).map(() => 'name') }), BAD),
  row('a search with 501 fields', search({ fields: many(501).map(() => 'name') }), BAD),
  row('a find with 9 words in q', find({ q: 'a b c d e f g h i' }), BAD),
  row('a find with 101 characters in q', find({ q: 'x'.repeat(101) }), BAD),
  row('a find with a filter of 10,001 characters', find({ filter: `id = 1${' '.repeat(9_996)}` }), BAD),
]

const filters: readonly Case[] = [
  ...[
    '',
    ' ',
    '(',
    ')',
    '()',
    'name',
    'name =',
    '= 1',
    'name == 1',
    "name = 'x",
    'name = "x',
    'name like',
    'id in',
    'id in (1',
  ],
  ...[
    'id in (1,)',
    'id between 1',
    'id between 1 and',
    'id is',
    'id is not',
    'not',
    'and',
    'id = 1 and',
    'id = 1 or or id = 2',
  ],
  ...[
    'id = 1 id = 2',
    'lower(name) = 1',
    'id = (select 1)',
    'id in (select id from x)',
    'id = id',
    '1 = 1',
    "'a' = name",
  ],
  ...[
    'id + 1 = 2',
    'id = 1;',
    'id = 1 -- x',
    'id = 1 /* x */',
    'id = $1',
    'id = ?',
    'id = :x',
    'nope = 1',
    'name.x = 1',
    'id = 1e5',
  ],
  ...[
    'exists (id)',
    'name is nothing',
    '1 member circles',
    'id = 0x10',
    'na\u200bme = 1',
    `${'('.repeat(17)}id = 1${')'.repeat(17)}`,
  ],
  ...['('.repeat(4_000), 'not '.repeat(2_000) + 'id = 1', "name = 'a\0b'"],
].map((filter) => row(`a find with the filter ${show(filter)}`, find({ filter }), BAD))

const queries: readonly Case[] = [
  row('a find with archived=1', find({ archived: '1' }), BAD),
  row('a find with two filters', get(`${PERSONS}?filter=id%3D1&filter=id%3D2`), BAD),
  row('a find with two q parameters', get(`${PERSONS}?q=a&q=b`), BAD),
  row('a find with filter[a]', get(`${PERSONS}?filter[a]=1`), BAD),
  row('a find with two fields parameters', get(`${PERSONS}?fields=name&fields=born`), DONE),
  row('a find with empty names in fields', find({ fields: ',name,,' }), DONE),
  row('a find with fields over a list', find({ fields: 'circles.name' }), BAD),
  row('a find sorted by a list', find({ sortBy: 'circles' }), BAD),
  row('a find sorted over a list', find({ sortBy: 'circles.name' }), BAD),
  row('a find sorted by a JSON field', get('/ws/rest/crm.Contact?sortBy=phones'), BAD),
  row('a find with a secret field in the filter', get('/ws/rest/crm.Contact?filter=pin%20is%20null'), BAD),
  row('a find with a secret field in fields', get('/ws/rest/crm.Contact?fields=pin'), BAD),
  row('a find sorted by a password', get('/ws/rest/crm.Contact?sortBy=password'), BAD),
]

const fetches: readonly Case[] = [
  ...[
    1,
    'x',
    [],
    { fields: 'name' },
    { fields: [1] },
    { fields: ['nope'] },
    { fields: ['name.x'] },
    { related: [] },
  ].map((body) => row(`a fetch with ${JSON.stringify(body)}`, fetch(body), BAD)),
  ...[
    { related: { company: 'name' } },
    { related: { nope: ['name'] } },
    { related: { name: ['x'] } },
    { related: { company: ['nope'] } },
    { related: { 'company.parent': ['name'] } },
    { related: { createdBy: ['password'] } },
    { related: { createdBy: ['hash'] } },
    { fields: ['createdBy.password'] },
    { fields: ['company.people.circles.members.name'] },
    { fields: ['company.'.repeat(9) + 'name'] },
  ].map((body) => row(`a fetch with ${show(JSON.stringify(body))}`, fetch(body), BAD)),
  row('a fetch with an empty object', fetch({}), DONE),
  row('a fetch with null', fetch(null), DONE),
  row('a fetch of an unknown record', withBody('POST', `${PERSONS}/999/fetch`, '{}'), NOT_FOUND),
  row('a fetch of id 0', withBody('POST', `${PERSONS}/0/fetch`, '{}'), NOT_FOUND),
]

export const searches: readonly Case[] = [
  ...shapes,
  ...fields,
  ...operators,
  ...limits,
  ...filters,
  ...queries,
  ...fetches,
]
