// Invalid batches of every kind.
import {
  BAD,
  CONFLICT,
  INVALID,
  LOGIN,
  MEDIA,
  NO_MODEL,
  NOT_FOUND,
  row,
  show,
  TAKEN,
  withBody,
  type Case,
} from './case.js'

const METHOD = [405, 'method'] as const
const FORBIDDEN = [403, 'forbidden'] as const
const [CONTACT, COMPANY, PERSON] = ['crm.Contact', 'rel.Company', 'rel.Person']
const PATH = '/ws/batch'

const sent = (body: unknown, headers = {}) => withBody('POST', PATH, JSON.stringify(body), headers)
const batch = (...requests: readonly unknown[]) => sent({ requests })
const made = { op: 'create', model: CONTACT, data: {}, ref: 'a' }
const create = (data: unknown, model = PERSON) => ({ op: 'create', model, data })
const at = (index: number, ...keys: readonly string[]) => keys.map((key) => `requests[${index}].${key}`)

const bodies: Case[] = [
  ...[null, 5, 'x', [], {}, { request: [] }, { requests: null }, { requests: {} }].map((body) =>
    row(`a batch whose body is ${JSON.stringify(body)}`, sent(body), BAD),
  ),
  row('a batch without requests', batch(), BAD, { says: 'a list of at least one request' }),
  row('a batch of 1,001 requests', batch(...Array.from({ length: 1_001 }, () => made)), BAD, {
    says: 'A batch can have at most 1000 requests',
  }),
  row('a batch that is no JSON', withBody('POST', PATH, '{"requests": ['), BAD),
  row('a batch as a form', withBody('POST', PATH, 'requests=1', { 'content-type': 'text/plain' }), MEDIA),
  row('a batch with If-Match', sent({ requests: [made] }, { 'if-match': '"1"' }), BAD),
  row('a batch with an empty key', sent({ requests: [made] }, { 'idempotency-key': '' }), BAD),
  row('a batch without a session', sent({ requests: [made] }, { cookie: '' }), LOGIN),
  ...['GET', 'PUT', 'DELETE', 'PATCH'].map((method) =>
    row(`a batch by ${method}`, { method, path: PATH }, METHOD),
  ),
]

/** One request, and the paths that the errors must name. */
const shapes: readonly (readonly [request: unknown, ...paths: string[]])[] = [
  [{}, 'op', 'model'],
  [{ op: 'Create', model: CONTACT, data: {} }, 'op'],
  [{ op: 'constructor', model: CONTACT, data: {} }, 'op'],
  [{ op: ['create'], model: CONTACT, data: {} }, 'op'],
  [{ op: 'create', model: 5, data: {} }, 'model'],
  [{ op: 'create', model: '', data: {} }, 'model'],
  [{ op: 'create', model: CONTACT }, 'data'],
  [{ op: 'create', model: CONTACT, data: [] }, 'data'],
  [{ op: 'create', model: CONTACT, data: null }, 'data'],
  [{ op: 'create', model: CONTACT, data: { id: 1, version: 1 } }, 'data.id', 'data.version'],
  [{ op: 'create', model: CONTACT, data: {}, id: 1, version: 1 }, 'id', 'version'],
  [{ op: 'create', model: CONTACT, data: {}, verson: 1 }, 'verson'],
  [{ op: 'create', model: CONTACT, data: {}, ref: '' }, 'ref'],
  [{ op: 'create', model: CONTACT, data: {}, ref: 'a b' }, 'ref'],
  [{ op: 'create', model: CONTACT, data: {}, ref: 'ä' }, 'ref'],
  [{ op: 'create', model: CONTACT, data: {}, ref: 5 }, 'ref'],
  [{ op: 'create', model: CONTACT, data: {}, ref: 'a'.repeat(65) }, 'ref'],
  [{ op: 'create', model: CONTACT, data: {}, ref: { $ref: 'a' } }, 'ref'],
  [{ op: 'update', model: CONTACT }, 'data', 'id'],
  [{ op: 'update', model: CONTACT, id: 1, data: {} }, 'version'],
  [{ op: 'update', model: CONTACT, id: 1, version: null, data: { version: null } }, 'version'],
  [{ op: 'update', model: CONTACT, id: 1, version: '1', data: {} }, 'version'],
  [{ op: 'update', model: CONTACT, id: 1, version: 1.5, data: {} }, 'version'],
  [{ op: 'update', model: CONTACT, id: 1, data: { version: -1 } }, 'data.version'],
  [{ op: 'update', model: CONTACT, id: 1, version: 1, data: { version: 2 } }, 'data.version'],
  [{ op: 'update', model: CONTACT, id: 1, version: 1, data: { id: 2 } }, 'data.id'],
  [{ op: 'update', model: CONTACT, id: 1, version: 1, data: {}, ref: 'a' }, 'ref'],
  ...[0, -1, '1', 1.5, 2 ** 53, null, [1], {}].map(
    (id) => [{ op: 'update', model: CONTACT, id, version: 1, data: {} }, 'id'] as const,
  ),
  [{ op: 'update', model: CONTACT, id: { $ref: 'none' }, version: 1, data: {} }, 'id'],
  [{ op: 'update', model: CONTACT, id: { $ref: 5 }, version: 1, data: {} }, 'id'],
  [{ op: 'delete', model: CONTACT }, 'id'],
  [{ op: 'delete', model: CONTACT, id: 1, version: '1' }, 'version'],
  [{ op: 'delete', model: CONTACT, id: 1, data: { version: 1 } }, 'data'],
  [{ op: 'assert', model: CONTACT, id: 1 }, 'version'],
  [{ op: 'assert', model: CONTACT, id: 1, version: -1 }, 'version'],
  [{ op: 'assert', model: CONTACT, id: 1, version: 1, data: {} }, 'data'],
  [{ op: 'assert', model: CONTACT }, 'id', 'version'],
]

const faults: Case[] = [
  ...shapes.map(([request, ...paths], index) =>
    row(
      `a batch with ${show(JSON.stringify(request))}, with errors at ${paths.join()} (${index})`,
      batch(made, request),
      BAD,
      {
        faults: at(1, ...paths).sort(),
        says: '"index":1',
      },
    ),
  ),
  ...[null, 5, 'create', [made]].map((request) =>
    row(`a batch with ${JSON.stringify(request)} for a request`, batch(made, request), BAD, {
      faults: ['requests[1]'],
    }),
  ),
  row('a batch with one ref twice', batch(made, { op: 'assert' }, made), BAD, {
    faults: [...at(1, 'id', 'model', 'version'), ...at(2, 'ref')],
    says: 'is already the ref of requests[0]',
  }),
  row('a batch with 100,000 strange keys', batch(Object.fromEntries(strange())), BAD),
  row('a batch with a strange key of 10,000 letters', batch({ ...made, ['k'.repeat(10_000)]: 1 }), BAD),
]

function* strange(): Generator<[string, number]> {
  for (let index = 0; index < 100_000; index++) yield [`k${index}`, 1]
}

const values: Case[] = [
  row('a batch about a model that is not there', batch(made, create({}, 'no.Model')), NO_MODEL, {
    says: '"index":1',
  }),
  row('a batch about __proto__', batch(create({}, '__proto__')), NO_MODEL),
  row('a batch that writes read-only records', batch(create({}, 'com.axelor.meta.db.MetaModel')), FORBIDDEN),
  row('a batch with a new key', batch(create({}, 'verso.auth.ApiKey')), FORBIDDEN),
  row('a batch with an unknown field', batch(made, create({ nme: 'x' })), INVALID, {
    faults: at(1, 'nme'),
    says: 'did you mean \\"name\\"',
  }),
  row('a batch with a ref to nothing', batch(made, create({ boss: { $ref: 'b' } })), INVALID, {
    faults: at(1, 'boss'),
  }),
  row('a batch with a ref of another model', batch(made, create({ boss: { $ref: 'a' } })), INVALID, {
    faults: at(1, 'boss'),
  }),
  ...[
    { $ref: 5 },
    { $ref: null },
    { $ref: { $ref: 'a' } },
    { $ref: 'a', id: 1 },
    { id: { $ref: 'a' }, version: 0 },
  ].map((boss) =>
    row(`a batch with the reference ${JSON.stringify(boss)}`, batch(made, create({ boss })), INVALID, {
      faults: at(1, 'boss'),
    }),
  ),
  row(
    'a batch with a ref as the value of a text field',
    batch(made, create({ name: { $ref: 'a' } })),
    INVALID,
    {
      faults: at(1, 'name'),
    },
  ),
  row(
    'a create with a ref outside of a batch',
    withBody('PUT', `/ws/rest/${PERSON}`, JSON.stringify({ data: { boss: { $ref: 'a' } } })),
    INVALID,
  ),
  row(
    'a batch with one ref twice in a list',
    batch(
      { op: 'create', model: 'rel.Circle', ref: 'c', data: { name: 'C' } },
      create({ circles: [{ $ref: 'c' }, { $ref: 'c' }] }),
    ),
    INVALID,
    { faults: at(1, 'circles[1]') },
  ),
  row(
    'a batch with a stale update',
    batch(made, { op: 'update', model: CONTACT, id: 1, version: 0, data: {} }),
    CONFLICT,
    {
      says: '"index":1',
    },
  ),
  row(
    'a batch with a stale assert',
    batch(made, { op: 'assert', model: CONTACT, id: 1, version: 2 }),
    CONFLICT,
    {
      says: '"index":1',
    },
  ),
  row(
    'a batch that asserts an unknown record',
    batch(made, { op: 'assert', model: CONTACT, id: 999, version: 0 }),
    NOT_FOUND,
  ),
  row(
    'a batch that deletes an unknown record',
    batch(made, { op: 'delete', model: CONTACT, id: 999 }),
    NOT_FOUND,
  ),
  row('a batch with what is taken', batch(made, create({ code: 'AA' }, 'test.Limited')), TAKEN, {
    faults: at(1, 'code'),
    says: '"index":1',
  }),
  row(
    'a batch with the same unique value twice',
    batch(create({ code: 'ZZ' }, 'test.Limited'), create({ code: 'ZZ' }, 'test.Limited')),
    TAKEN,
    {
      faults: at(1, 'code'),
    },
  ),
  row(
    'a batch that deletes a referenced record',
    batch(made, { op: 'delete', model: COMPANY, id: 1 }),
    [409, 'still-referenced'],
    {
      says: '"index":1',
    },
  ),
]

export const batches: readonly Case[] = [...bodies, ...faults, ...values]
