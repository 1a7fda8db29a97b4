// A batch permits what its requests permit alone, reveals no more, and reports the index of a rejected request.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Records } from '../../src/wire.js'
import { onEveryEngine, catchError, startService, type Service } from '../targets.js'
import {
  grantee,
  officeModels,
  permit,
  PROJECT,
  rootOf,
  TEAM,
  type UserWithPermissions,
} from './office-fixture.js'

const PERSON = 'rel.Person'
const NORTH = { condition: "region = 'north'" }
const GRANTS = [
  { model: PROJECT, canRead: true, readable: ['name', 'region', 'team'], ...NORTH },
  { model: PROJECT, canCreate: true, writable: ['name', 'region', 'team'], ...NORTH },
  { model: PROJECT, canUpdate: true, writable: ['name', 'region', 'team'], ...NORTH },
  { model: PROJECT, canRemove: true, condition: "region = 'north' and name != 'kept'" },
  { model: TEAM, canRead: true, condition: "name = 'ours'" },
]

onEveryEngine((engine) => {
  let service: Service
  let root: Records
  let user: UserWithPermissions
  let [north, south, kept, ours, theirs] = [0, 0, 0, 0, 0]

  beforeAll(async () => {
    service = await startService(engine, { models: officeModels })
    root = rootOf(service)
    user = await grantee(service, GRANTS)
    const make = async (model: string, data: object) => (await root.create(model, data)).data.id
    north = await make(PROJECT, { name: 'n', region: 'north', secret: 'HIDDEN' })
    south = await make(PROJECT, { name: 's', region: 'south' })
    kept = await make(PROJECT, { name: 'kept', region: 'north' })
    ours = await make(TEAM, { name: 'ours' })
    theirs = await make(TEAM, { name: 'theirs' })
  })
  afterAll(() => service.close())

  interface Pair {
    readonly alone: (records: Records) => Promise<unknown>
    readonly request: () => object
  }
  const create = (model: string, data: () => object): Pair => ({
    alone: (records) => records.create(model, data()),
    request: () => ({ op: 'create', model, data: data() }),
  })
  const update = (model: string, id: () => number, data: object, version = 0): Pair => ({
    alone: (records) => records.update(model, id(), { version, ...data }),
    request: () => ({ op: 'update', model, id: id(), version, data }),
  })
  const remove = (model: string, id: () => number, version?: number): Pair => ({
    alone: (records) => records.remove(model, id(), version === undefined ? {} : { version }),
    request: () => ({ op: 'delete', model, id: id(), version }),
  })
  const assert = (model: string, id: () => number, version = 0): Pair => ({
    alone: (records) => records.verify(model, { id: id(), version }),
    request: () => ({ op: 'assert', model, id: id(), version }),
  })

  const REJECTED: Readonly<Record<string, readonly [kind: string, pair: Pair]>> = {
    'a create of an unknown model': ['unknown-model', create(PERSON, () => ({}))],
    'an assert of an unknown model': ['unknown-model', assert(PERSON, () => 1)],
    'a create without permission': ['forbidden', create(TEAM, () => ({ name: 'ours' }))],
    'a create that no condition permits': ['forbidden', create(PROJECT, () => ({ region: 'south' }))],
    'a create with a field that is not writable': [
      'invalid',
      create(PROJECT, () => ({ region: 'north', secret: 's' })),
    ],
    'an update without permission': ['forbidden', update(TEAM, () => ours, { name: 'x' })],
    'an update of a hidden record without any update permission': [
      'not-found',
      update(TEAM, () => theirs, { name: 'x' }),
    ],
    'an update of a hidden record': ['not-found', update(PROJECT, () => south, { name: 'x' })],
    'an update to values that no condition permits': [
      'forbidden',
      update(PROJECT, () => north, { region: 'south' }),
    ],
    'an outdated update': ['conflict', update(PROJECT, () => north, { name: 'x' }, 5)],
    'an outdated update of a hidden record': ['not-found', update(PROJECT, () => south, { name: 'x' }, 5)],
    'a delete without permission': ['forbidden', remove(TEAM, () => ours)],
    'a delete of a hidden record': ['not-found', remove(PROJECT, () => south)],
    'a delete that no condition permits': ['forbidden', remove(PROJECT, () => kept)],
    'an outdated delete': ['conflict', remove(PROJECT, () => north, 5)],
    'an outdated delete of a hidden record': ['not-found', remove(PROJECT, () => south, 5)],
    'an assert of a hidden record': ['not-found', assert(PROJECT, () => south)],
    'an outdated assert': ['conflict', assert(PROJECT, () => north, 5)],
    'an outdated assert of a hidden record': ['not-found', assert(TEAM, () => theirs, 5)],
    'a reference to a hidden record': [
      'invalid',
      create(PROJECT, () => ({ region: 'north', team: { id: theirs } })),
    ],
  }

  test.for(Object.entries(REJECTED))('%s is rejected in a batch as it is alone', async ([, [kind, pair]]) => {
    const alone = await catchError(pair.alone(user.client))
    const good = { op: 'create', model: PROJECT, data: { region: 'north' } }
    const { total } = await root.find(PROJECT)
    const error = await catchError(user.client.batch([good, pair.request(), good]))
    expect([alone.kind, error.kind, error.details.data?.['index']]).toEqual([kind, kind, 1])
    expect(error.details.data).toEqual({ ...alone.details.data, index: 1 })
    // The path of a field has a prefix here.
    expect(error.message.replaceAll('requests[1].', '')).toBe(alone.message)
    expect(JSON.stringify(error.details)).not.toContain('HIDDEN')
    expect((await root.find(PROJECT)).total).toBe(total)
  })

  test('a permitted batch succeeds, and its answer has only readable fields', async () => {
    const made = (await root.create(PROJECT, { name: 'm', region: 'north', secret: 'HIDDEN' })).data.id
    const { data } = await user.client.batch([
      { op: 'assert', model: TEAM, id: ours, version: 0 },
      { op: 'update', model: PROJECT, id: made, version: 0, data: { team: { id: ours } } },
      { op: 'create', model: PROJECT, data: { name: 'new', region: 'north' } },
      { op: 'delete', model: PROJECT, id: north },
    ])
    expect(data).toMatchObject([
      { id: ours, version: 0 },
      { id: made, version: 1, team: { id: ours, name: 'ours' } },
      { name: 'new', version: 0 },
      north,
    ])
    for (const record of data.slice(1, 3)) expect(record).not.toHaveProperty('secret')
    expect(data[1]).toEqual(await user.client.read(PROJECT, made))
  })

  test('a record created and written again in a batch is checked after each request', async () => {
    const made = (data: object) => ({ op: 'create', model: PROJECT, ref: 'a', data })
    const change = (data: object) => ({
      ...{ op: 'update', model: PROJECT, id: { $ref: 'a' }, version: 0, data },
    })
    const [south1, north1] = [{ region: 'south' }, { name: 'n', region: 'north' }]
    const { data } = await user.client.batch([made(north1), change({ name: 'm' })])
    expect(data).toMatchObject([
      { version: 0, name: 'n' },
      { version: 1, name: 'm' },
    ])
    for (const record of data) expect(record).not.toHaveProperty('secret')
    const rejectedBatch = async (...requests: readonly object[]) => {
      const { total } = await root.find(PROJECT)
      const { kind, details } = await catchError(user.client.batch(requests))
      expect((await root.find(PROJECT)).total).toBe(total)
      return [kind, details.data?.['index']]
    }
    expect(await rejectedBatch(made(south1), change(north1))).toEqual(['forbidden', 0])
    expect(await rejectedBatch(made(north1), change(south1))).toEqual(['forbidden', 1])
    const remove = { op: 'delete', model: PROJECT, id: { $ref: 'a' } }
    expect(await rejectedBatch(made({ ...north1, name: 'kept' }), remove)).toEqual(['forbidden', 1])
    expect(await rejectedBatch(made(south1), remove)).toEqual(['forbidden', 0])
    const maker = await grantee(
      service,
      GRANTS.filter((grant) => !('canUpdate' in grant)),
    )
    const error = await catchError(maker.client.batch([made(north1), change({ name: 'm' })]))
    expect([error.kind, error.details.data?.['index']]).toEqual(['forbidden', 1])
  })

  test('a repeated batch returns only ids and versions to a user who may read less by now', async () => {
    const other = await grantee(service, GRANTS)
    const gone = (await root.create(PROJECT, { name: 'gone', region: 'north' })).data.id
    const requests = [
      { op: 'create', model: PROJECT, data: { name: 'told once', region: 'north' } },
      { op: 'delete', model: PROJECT, id: gone },
      { op: 'assert', model: TEAM, id: ours, version: 0 },
    ]
    const options = { idempotencyKey: 'less by now' }
    const { data } = await other.client.batch(requests, options)
    const [made] = data
    if (typeof made !== 'object') throw new Error('a record was expected')
    expect(made).toMatchObject({ name: 'told once' })
    await permit(service, other, GRANTS.slice(1))
    // The models must still be visible to the user: unknown models are rejected earlier.
    expect(await other.client.batch(requests, options)).toEqual({
      data: [{ id: made.id, version: 0 }, gone, { id: ours, version: 0 }],
      replayed: true,
    })
  })
})
