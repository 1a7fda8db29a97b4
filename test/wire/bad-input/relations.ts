// Related records that are invalid, missing, or changed without a version.
import { BAD, CONFLICT, create, INVALID, remove, row, show, withBody, type Case } from './case.js'

const COMPANY = '/ws/rest/rel.Company/1'
const save = (data: object) => withBody('POST', COMPANY, JSON.stringify({ data: { version: 0, ...data } }))
const deep = (levels: number): object =>
  levels === 0 ? { name: 'x' } : { name: 'x', parent: deep(levels - 1) }

const NO_ONES: readonly unknown[] = [5, '5', true, [], [1], 'x']
const references: readonly Case[] = [
  ...NO_ONES.map((company) =>
    row(`a reference that is ${JSON.stringify(company)}`, create('rel.Person', { company }), INVALID, {
      faults: ['company'],
    }),
  ),
  ...[
    { id: 0 },
    { id: -1 },
    { id: 1.5 },
    { id: '1' },
    { id: 2 ** 53 },
    { id: 999 },
    { id: [1] },
    { id: 1, name: 'X' },
    { id: 1, version: '0' },
    { id: 1, version: -1 },
    { id: 999, version: 0 },
    { version: 0 },
    { $version: 3, name: 'X' },
  ].map((company) =>
    row(`a reference to ${JSON.stringify(company)}`, create('rel.Person', { company }), INVALID, {
      faults: ['company'],
    }),
  ),
  row('a new related record without a required field', create('rel.Person', { company: {} }), INVALID, {
    faults: ['company.name'],
  }),
  row(
    'a new related record with an unknown field',
    create('rel.Person', { company: { name: 'x', nope: 1 } }),
    INVALID,
    {
      faults: ['company.nope'],
    },
  ),
  row(
    'a create with errors on every level',
    create('rel.Company', { addresses: [{}, { city: 5, doors: [{ code: 1 }] }], seat: 7 }),
    INVALID,
    {
      faults: ['addresses[0].city', 'addresses[1].city', 'addresses[1].doors[0].code', 'name', 'seat'],
    },
  ),
  row(
    'a create with an outdated related record',
    create('rel.Person', { company: { id: 1, version: 7, name: 'X' } }),
    CONFLICT,
  ),
  row('a create that would create a user', create('rel.Person', { keeper: { username: 'eve' } }), INVALID, {
    faults: ['keeper'],
  }),
  row(
    'a create that would change a user',
    create('rel.Person', { keeper: { id: 1, version: 0, roles: ['administrator'] } }),
    INVALID,
    {
      faults: ['keeper'],
    },
  ),
  row(
    'a write that clears a required reference',
    withBody('POST', '/ws/rest/rel.Door/1', '{"data":{"version":0,"address":null}}'),
    INVALID,
    {
      faults: ['address'],
    },
  ),
  row('a create with 9 levels of related records', create('rel.Company', deep(8)), BAD),
  row('a create with 500 levels of related records', create('rel.Company', deep(400)), BAD),
]

const lists: readonly Case[] = [
  ...[null, {}, { id: 1 }, 5, '', 'x', true, { length: 0 }].map((addresses) =>
    row(`a list that is ${JSON.stringify(addresses)}`, save({ addresses }), INVALID, {
      faults: ['addresses'],
    }),
  ),
  ...[null, 5, 'x', [], { id: 0 }, { id: 999 }, { id: 1, city: 'X' }, { id: 1, version: -1 }].map((member) =>
    row(`a list with ${show(JSON.stringify(member))}`, save({ addresses: [member] }), INVALID, {
      faults: ['addresses[0]'],
    }),
  ),
  row('an owned list with a member twice', save({ addresses: [{ id: 1 }, { id: 1 }] }), INVALID, {
    faults: ['addresses[1]'],
  }),
  row('an owned list with a stale member', save({ addresses: [{ id: 1, version: 9, city: 'X' }] }), CONFLICT),
  row('an owned list with a member of another owner', save({ addresses: [{ id: 2 }] }), INVALID, {
    faults: ['addresses[0]'],
  }),
  row(
    'an owned list with a member that names another owner',
    save({ addresses: [{ city: 'X', company: { id: 2 } }] }),
    INVALID,
    {
      faults: ['addresses[0].company'],
    },
  ),
  row(
    'an owned list of 1,001 members',
    save({ addresses: Array.from({ length: 1_001 }, () => ({ city: 'X' })) }),
    INVALID,
    {
      faults: ['addresses'],
    },
  ),
  row(
    'an owned list of 1,000 members, too many with their owner',
    save({ addresses: Array.from({ length: 1_000 }, () => ({ city: 'X' })) }),
    BAD,
  ),
  row('a write to an inverse relation', save({ people: [] }), INVALID, {
    faults: ['people'],
    says: 'rel.Person.company',
  }),
  row('a write to the inverse of a one-to-one', create('rel.Person', { badge: null }), INVALID, {
    faults: ['badge'],
  }),
  row(
    'a write to the inverse of a many-to-many',
    create('rel.Circle', { name: 'x', members: [{ id: 1 }] }),
    INVALID,
    { faults: ['members'] },
  ),
  row(
    'a reference to a circle that does not exist',
    create('rel.Person', { circles: [{ id: 999 }] }),
    INVALID,
    {
      faults: ['circles[0]'],
    },
  ),
]

export const relations: readonly Case[] = [
  ...references,
  ...lists,
  row('a delete of a referenced record', remove(COMPANY), [409, 'still-referenced'], {
    says: '"references":[{"entityName":"rel.Person"',
  }),
]
