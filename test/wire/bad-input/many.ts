// Invalid saves of several records, mass updates, copies, verifications and descriptions.
import * as c from './case.js'
import {
  BAD,
  CONFLICT,
  CONTACTS,
  INVALID,
  LOGIN,
  MEDIA,
  NO_MODEL,
  NOT_FOUND,
  row,
  show,
  TAKEN,
  TARGET,
  withBody,
  type Case,
} from './case.js'

const METHOD = [405, 'method'] as const
const FORBIDDEN = [403, 'forbidden'] as const
const META = '/ws/rest/com.axelor.meta.db.MetaModel'
const json = (body: unknown) => JSON.stringify(body)
const save = (body: unknown, headers = {}) => withBody('POST', CONTACTS, json(body), headers)
const removeAll = (records: unknown, headers = {}) =>
  withBody('POST', `${CONTACTS}/removeAll`, json({ records }), headers)
const verify = (data: unknown) => withBody('POST', `${CONTACTS}/verify`, json({ data }))
const NAMED = { criteria: [{ fieldName: 'firstName', operator: '=', value: 'Target' }] }
const mass = (body: object, headers = {}) =>
  withBody(
    'POST',
    `${CONTACTS}/updateMass`,
    json({ data: NAMED, records: [{ notes: 'x' }], ...body }),
    headers,
  )
const many = (count: number) => Array.from({ length: count }, (_, index) => ({ id: index + 1 }))

const NO_LISTS: readonly unknown[] = [[], {}, 'x', 5, true]
const NO_RECORDS: readonly unknown[] = [null, 5, 'x', true, [], [{}]]

const saves: readonly Case[] = [
  row('a save without a body', { method: 'POST', path: CONTACTS }, BAD),
  row('a save of an empty object', save({}), BAD),
  row('a save that is a list', save([{ firstName: 'x' }]), BAD),
  row('a save of data and of records', save({ data: {}, records: [{}] }), BAD),
  ...NO_LISTS.map((records) => row(`a save of records ${json(records)}`, save({ records }), BAD)),
  ...NO_RECORDS.map((record) =>
    row(`a save of one record ${json(record)}`, save({ records: [{}, record] }), BAD),
  ),
  ...['1', true, [1], {}].map((id) =>
    row(`a save with the id ${json(id)}`, save({ records: [{ id, version: 0 }] }), BAD),
  ),
  ...[0, -1, 1.5, 999].map((id) =>
    row(`a save with the id ${id}`, save({ records: [{ id, version: 0 }] }), NOT_FOUND),
  ),
  ...['1', -1, 1.5, true].map((version) =>
    row(`a save with the version ${json(version)}`, save({ records: [{}, { id: 1, version }] }), BAD, {
      says: 'records[1].version',
    }),
  ),
  row('a save of an id without a version', save({ records: [{}, { id: 1 }] }), BAD, { says: 'records[1]' }),
  row('a save of a version without an id', save({ records: [{ version: 1 }] }), BAD, { says: 'records[0]' }),
  row(
    'a save of a stale version',
    save({ records: [{ firstName: 'new' }, { id: 1, version: 0 }] }),
    CONFLICT,
  ),
  row(
    'a save of one record twice',
    save({
      records: [
        { id: 1, version: 1 },
        { id: 1, version: 1 },
      ],
    }),
    INVALID,
    {
      faults: ['records[1]'],
    },
  ),
  row('a save of 1,001 records', save({ records: Array.from({ length: 1_001 }, () => ({})) }), BAD),
  row(
    'a save with errors in several records',
    save({ records: [{ nope: 1 }, {}, { firstName: 5 }] }),
    INVALID,
    {
      faults: ['records[0].nope', 'records[2].firstName'],
    },
  ),
  row(
    'a save of 20 passwords',
    save({ records: Array.from({ length: 20 }, () => ({ password: 'long enough!' })) }),
    BAD,
  ),
  row(
    'a save of two records with the same unique value',
    withBody('POST', '/ws/rest/test.Limited', json({ records: [{ code: 'XX' }, { code: 'XX' }] })),
    TAKEN,
    { faults: ['records[1].code'] },
  ),
  row('a save of one record whose id is a text', save({ data: { id: '1', version: 1 } }), BAD),
  row('a save of one without its version', save({ data: { id: 1 } }), BAD),
  row('a save of one that is not there', save({ data: { id: 999, version: 0 } }), NOT_FOUND),
  row(
    'a save of several with If-Match',
    save({ records: [{ id: 1, version: 1 }] }, { 'if-match': '"1"' }),
    BAD,
  ),
  row(
    'a save of one new record with If-Match',
    save({ data: { firstName: 'x' } }, { 'if-match': '"1"' }),
    BAD,
  ),
  row('a create with If-Match', c.create('crm.Contact', {}, { 'if-match': '"0"' }), BAD),
  row(
    'a create of several with an id among them',
    withBody('PUT', CONTACTS, json({ records: [{}, { id: 1, version: 1 }] })),
    BAD,
    {
      says: 'records[1]',
    },
  ),
  row('a create of an empty list', withBody('PUT', CONTACTS, '{"records":[]}'), BAD),
  ...[5, 'x', {}, [5], ['nope'], ['firstName', 'password'], [''], ['__proto__']].map((fields) =>
    row(`a save that asks for ${json(fields)}`, save({ data: { firstName: 'x' }, fields }), BAD),
  ),
  ...[5, 'x', [], { nope: [] }, { firstName: ['x'] }, { createdBy: 'name' }, { createdBy: ['password'] }].map(
    (related) => row(`a save that is to relate ${json(related)}`, save({ records: [{}], related }), BAD),
  ),
  row('a save in an unknown model', withBody('POST', '/ws/rest/crm.Nothing', '{"records":[{}]}'), NO_MODEL),
  row(
    'a save in verso.auth.Users, which is no model',
    withBody('POST', '/ws/rest/verso.auth.Users', '{"records":[{}]}'),
    NO_MODEL,
  ),
  row(
    'a save with a form as its body',
    withBody('POST', CONTACTS, 'records=1', { 'content-type': 'application/x-www-form-urlencoded' }),
    MEDIA,
  ),
]

const removals: readonly Case[] = [
  row('a removeAll without a body', { method: 'POST', path: `${CONTACTS}/removeAll` }, BAD),
  row('a removeAll of data', withBody('POST', `${CONTACTS}/removeAll`, '{"data":{"id":1}}'), BAD),
  ...[...NO_LISTS, undefined, null].map((records) =>
    row(`a removeAll of ${json(records)}`, removeAll(records), BAD),
  ),
  ...[1, '1', null, [], {}, { version: 1 }, { id: '1' }, { id: null }, { id: true }].map((record) =>
    row(`a removeAll of the record ${json(record)}`, removeAll([record]), BAD),
  ),
  ...[0, -1, 1.5, 999, 2 ** 53].map((id) =>
    row(`a removeAll of the id ${id}`, removeAll([{ id }]), NOT_FOUND),
  ),
  ...['1', -1, 1.5, true, {}].map((version) =>
    row(`a removeAll of the version ${json(version)}`, removeAll([{ id: 1, version }]), BAD),
  ),
  row('a removeAll of one twice', removeAll([{ id: 1 }, { id: 1 }]), BAD, { says: 'repeats' }),
  row('a removeAll of a stale version', removeAll([{ id: 1, version: 0 }]), CONFLICT),
  row('a removeAll with an unknown record', removeAll([{ id: 1, version: 1 }, { id: 999 }]), NOT_FOUND),
  row('a removeAll of 1,001', removeAll(many(1_001)), BAD),
  row('a removeAll with If-Match', removeAll([{ id: 1 }], { 'if-match': '"1"' }), BAD),
  row(
    'a removeAll of a referenced record',
    withBody('POST', '/ws/rest/rel.Company/removeAll', '{"records":[{"id":2},{"id":1}]}'),
    [409, 'still-referenced'],
  ),
  row(
    'a removeAll in an unknown model',
    withBody('POST', '/ws/rest/x/removeAll', '{"records":[{"id":1}]}'),
    NO_MODEL,
  ),
]

const massUpdates: readonly Case[] = [
  row('an updateMass without a body', { method: 'POST', path: `${CONTACTS}/updateMass` }, BAD),
  ...[
    undefined,
    null,
    {},
    [],
    'x',
    5,
    { criteria: [] },
    { criteria: {} },
    { _domain: '' },
    { _domain: 5 },
  ].map((data) => row(`an updateMass with the data ${json(data)}`, mass({ data }), BAD)),
  ...[
    { nope: 1 },
    { _domain: 'nope = 1' },
    { _domain: "password = 'x'" },
    { _domains: {} },
    { _domains: [{}] },
  ].map((data) => row(`an updateMass with the data ${json(data)}`, mass({ data }), BAD)),
  ...[undefined, null, [], {}, [null], [5], ['x'], [{}], [[]], [{ notes: 'x' }, { notes: 'y' }]].map(
    (records) => row(`an updateMass with the records ${json(records)}`, mass({ records }), BAD),
  ),
  ...['1', -1, 1.5, true, []].map((expected) =>
    row(`an updateMass that expects ${json(expected)}`, mass({ expected }), BAD),
  ),
  row('an updateMass of another number of records than expected', mass({ expected: 7 }), CONFLICT, {
    says: '"current":1',
  }),
  row('an updateMass with invalid values', mass({ records: [{ firstName: 5, nope: 1 }] }), INVALID, {
    faults: ['firstName', 'nope'],
  }),
  row('an updateMass of a password', mass({ records: [{ password: 'long enough!' }] }), INVALID, {
    faults: ['password'],
  }),
  row('an updateMass with If-Match', mass({}, { 'if-match': '"1"' }), BAD),
  row('an updateMass in an unknown model', withBody('POST', '/ws/rest/x/updateMass', '{}'), NO_MODEL),
]

const looks: readonly Case[] = [
  row('a copy of an unknown record', c.get(`${CONTACTS}/999/copy`), NOT_FOUND),
  row('a copy of an id that is no number', c.get(`${CONTACTS}/x/copy`), NOT_FOUND),
  row('a copy in an unknown model', c.get('/ws/rest/x/1/copy'), NO_MODEL),
  row('GET details of an unknown record', c.get(`${CONTACTS}/999/details`), NOT_FOUND),
  ...[
    '',
    'nope',
    'password',
    'pin',
    '__proto__',
    'constructor',
    'a.b',
    '.',
    '..',
    'firstName.x',
    'createdBy.password',
    "firstName'--",
    '%00',
    '%F0%9F%98%80',
    'firstName&name=email',
    'x'.repeat(5_000),
    'createdBy.'.repeat(50),
  ].map((name) => row(`GET details?name=${show(name)}`, c.get(`${TARGET}/details?name=${name}`), BAD)),
  row('GET details with a path as the name', c.get(`${TARGET}/details?name=createdBy.name`), c.DONE),
  row('a verify without a body', { method: 'POST', path: `${CONTACTS}/verify` }, BAD),
  ...[null, [], 'x', 5, {}, { id: 1 }, { version: 1 }, { id: '1', version: 1 }, { id: 1, version: '1' }].map(
    (data) => row(`a verify with ${json(data)}`, verify(data), BAD),
  ),
  row('a verify of a stale version', verify({ id: 1, version: 0 }), CONFLICT),
  row('a verify of an unknown record', verify({ id: 999, version: 0 }), NOT_FOUND),
  row('a verify of a current version', verify({ id: 1, version: 1 }), c.DONE),
  row('a verify in an unknown model', withBody('POST', '/ws/rest/x/verify', '{}'), NO_MODEL),
  row('GET the fields of an unknown model', c.get('/ws/meta/fields/crm.Nothing'), NO_MODEL),
  row(
    'GET the fields of verso.auth.Users, which is no model',
    c.get('/ws/meta/fields/verso.auth.Users'),
    NO_MODEL,
  ),
  row('GET the fields without a model', c.get('/ws/meta/fields'), NOT_FOUND),
  row('GET unknown metadata', c.get('/ws/meta/views/crm.Contact'), NOT_FOUND),
]

const paths: readonly [method: string, path: string][] = [
  ['POST', CONTACTS],
  ['POST', `${CONTACTS}/removeAll`],
  ['POST', `${CONTACTS}/updateMass`],
  ['POST', `${CONTACTS}/verify`],
  ['GET', `${TARGET}/copy`],
  ['GET', `${TARGET}/details`],
  ['GET', '/ws/meta/models'],
  ['GET', '/ws/meta/fields/crm.Contact'],
]
const access: readonly Case[] = paths.flatMap(([method, path]) => {
  const sent = method === 'GET' ? { method, path } : withBody(method, path, '{"records":[{"id":1}]}')
  const { headers = {} } = sent as { headers?: object }
  const others = ['PATCH', ...(path === CONTACTS ? [] : ['PUT', 'DELETE', method === 'GET' ? 'POST' : 'GET'])]
  return [
    row(`${method} ${path} without a session`, { ...sent, headers: { ...headers, cookie: '' } }, LOGIN),
    ...(method === 'GET'
      ? []
      : [
          row(
            `${method} ${path} from another site`,
            { ...sent, headers: { ...headers, 'sec-fetch-site': 'cross-site' } },
            FORBIDDEN,
          ),
          row(
            `${method} ${path} from another origin`,
            { ...sent, headers: { ...headers, origin: 'https://evil.example' } },
            FORBIDDEN,
          ),
        ]),
    ...others.map((other) => row(`${other} ${path}`, { method: other, path }, METHOD)),
  ]
})

const readOnly: readonly Case[] = [
  row('a create of a model', c.create('com.axelor.meta.db.MetaModel', { name: 'X' }), FORBIDDEN),
  row('an update of a model', withBody('POST', `${META}/1`, '{"data":{"version":0,"name":"X"}}'), FORBIDDEN),
  row('a save of models', withBody('POST', META, '{"records":[{"id":1,"version":0}]}'), FORBIDDEN),
  row('a delete of a model', c.remove(`${META}/1`), FORBIDDEN),
  row('a removeAll of models', withBody('POST', `${META}/removeAll`, '{"records":[{"id":1}]}'), FORBIDDEN),
  row(
    'an updateMass of models',
    withBody('POST', `${META}/updateMass`, '{"data":{"_domain":"id > 0"},"records":[{"name":"X"}]}'),
    FORBIDDEN,
  ),
]

export const manyRecords: readonly Case[] = [saves, removals, massUpdates, looks, access, readOnly].flat()
