// A save of several records in one request writes all of them, or none.
import { describe, expect, test } from 'vitest'
import type { VersoError } from '../../src/errors.js'
import { openDatabase } from '../../src/store/open.js'
import type { WireRecord } from '../../src/wire.js'
import {
  enter,
  preparedLocation,
  onEveryEngine,
  onEveryTarget,
  catchError,
  startService,
} from '../targets.js'
import * as mutants from '../mutants/records.js'
import { idsOf, inShort, useRelatedService, type RelatedService } from './related-service.js'

const [COMPANY, PERSON, BADGE] = ['rel.Company', 'rel.Person', 'rel.Badge']

onEveryTarget((engine, transport) => {
  const family = useRelatedService(engine, transport)
  const { records, make, change, read, changesOf, expectRolledBack } = family

  const save = async (model: string, all: readonly unknown[]) => (await records().save(model, all)).data

  test('a save creates records without an id, updates the others, and answers in their order', async () => {
    const [left, right] = [await make(COMPANY, { name: 'left' }), await make(COMPANY, { name: 'right' })]
    const changes = await changesOf(async () => {
      const saved = await save(COMPANY, [
        { id: right.id, version: 0, name: 'right 2' },
        { name: 'new', addresses: [{ city: 'Kiel' }] },
        { id: left.id, version: 0, name: 'left 2' },
        { id: null, version: null, name: 'also new' },
      ])
      expect(saved.map(({ name, version }) => [name, version])).toEqual([
        ['right 2', 1],
        ['new', 0],
        ['left 2', 1],
        ['also new', 0],
      ])
      for (const record of saved) expect(await read(COMPANY, record.id)).toEqual(record)
    })
    expect(inShort(changes.filter(({ model }) => model === COMPANY))).toEqual([
      `${COMPANY} ${right.id} update 1`,
      expect.stringMatching(/create 0$/),
      `${COMPANY} ${left.id} update 1`,
      expect.stringMatching(/create 0$/),
    ])
  })

  test('a record saved unchanged gets one version and one Change, as in an update', async () => {
    const company = await make(COMPANY, { name: 'same' })
    const changes = await changesOf(async () => {
      const [saved] = await save(COMPANY, [company])
      expect(saved?.version).toBe(1)
    })
    expect(inShort(changes)).toEqual([`${COMPANY} ${company.id} update 1`])
  })

  test("a save that moves members between owners increments each owner's version once", async () => {
    const [from, to] = [
      await make(COMPANY, { name: 'from', addresses: [{ city: 'A' }, { city: 'B' }] }),
      await make(COMPANY, { name: 'to' }),
    ]
    const moved = idsOf(from, 'addresses').map(({ id }) => ({ id, version: 0, company: { id: to.id } }))
    const changes = await changesOf(() => save('rel.Address', moved))
    expect(inShort(changes).toSorted()).toEqual(
      [
        ...moved.map(({ id }) => `rel.Address ${id} update 1`),
        `${COMPANY} ${from.id} update 1`,
        `${COMPANY} ${to.id} update 1`,
      ].toSorted(),
    )
    expect(idsOf(await read(COMPANY, to.id), 'addresses')).toEqual(moved.map(({ id }) => ({ id })))
  })

  const faults = makeFaults(family)
  test.for(Object.keys(faults))('%s in the last of several records writes nothing', async (name) => {
    const { model, good, last, expected } = await (faults[name] ?? missingFault)()
    const error = await expectRolledBack(() => records().save(model, [...good, last]))
    expect(summary(error)).toEqual(expected)
    // The others can be saved without it.
    expect(await save(model, good)).toHaveLength(good.length)
  })

  test('a sequence number of a rejected save is used by the next one', async () => {
    const [first] = await save(BADGE, [{}])
    await catchError(records().save(BADGE, [{}, {}, { holder: { id: 987_654 } }]))
    const [next] = await save(BADGE, [{}])
    expect(numberOf(next) - numberOf(first)).toBe(1)
  })

  test('a save reports the errors of all records at once, with their paths', async () => {
    const error = await expectRolledBack(() =>
      records().save(COMPANY, [{ name: 5 }, { name: 'fine' }, { nme: 'x', addresses: [{}] }]),
    )
    expect(Object.keys(error.details.errors ?? {}).sort()).toEqual([
      'records[0].name',
      'records[2].addresses[0].city',
      'records[2].name',
      'records[2].nme',
    ])
  })

  test('a record twice in a save, also nested, is rejected as invalid', async () => {
    const company = await make(COMPANY, { name: 'twice' })
    const twice = { id: company.id, version: 0, name: 'x' }
    const again = `changes ${COMPANY} ${company.id}, which this request already changes in another place`
    const roots = await expectRolledBack(() => records().save(COMPANY, [twice, { name: 'y' }, twice]))
    expect(roots.details.errors).toEqual({ 'records[2]': again })
    const inside = await expectRolledBack(() =>
      records().save(COMPANY, [twice, { name: 'y', parent: twice }]),
    )
    expect(inside.details.errors).toEqual({ 'records[1].parent': again })
  })

  test('a conflict in a save shows committed values only', async () => {
    const parent = await make(COMPANY, { name: 'committed' })
    const child = await make(COMPANY, { name: 'child', parent: { id: parent.id } })
    await change(COMPANY, child.id, { version: 0, name: 'child 1' })
    const error = await expectRolledBack(() =>
      records().save(COMPANY, [
        { id: parent.id, version: 0, name: 'never committed' },
        { id: child.id, version: 0, name: 'stale' },
      ]),
    )
    expect(error).toMatchObject({ kind: 'conflict', details: { data: { entityId: child.id, current: 1 } } })
    expect(error.details.data?.['theirs']).toMatchObject({
      parent: { id: parent.id, $version: 0, name: 'committed' },
    })
    expect(JSON.stringify(error.details)).not.toContain('never committed')
  })

  test('the answer to a save has the requested fields and related records', async () => {
    const company = await make(COMPANY, { name: 'shown', code: `S${transport}` })
    const options = { returning: { fields: ['name', 'company.code'], related: { circles: ['name'] } } }
    const person = { name: 'P', company: { id: company.id }, circles: [{ name: 'C' }] }
    const { data } = await records().save(PERSON, [person], options)
    const [circle] = idsOf(data[0], 'circles')
    expect(data).toEqual([
      {
        ...{ id: data[0]?.id, version: 0, name: 'P' },
        company: { id: company.id, $version: 0, name: 'shown', code: `S${transport}` },
        circles: [{ id: circle?.id, version: 0, name: 'C' }],
      },
    ])
    const { data: made } = await records().create(PERSON, { name: 'Q' }, { returning: { fields: [] } })
    expect(Object.keys(made)).toEqual(['id', 'version'])
    const update = { version: 0, company: null }
    const { data: changed } = await records().update(PERSON, made.id, update, {
      returning: { fields: ['name'] },
    })
    expect(changed).toEqual({ id: made.id, version: 1, name: 'Q' })
  })

  test('a save that requests unknown or secret fields is rejected before it writes', async () => {
    for (const returning of [{ fields: ['nope'] }, { related: { name: ['x'] } }, { fields: 'name' }])
      expect((await expectRolledBack(() => records().save(PERSON, [{}], { returning }))).kind).toBe(
        'bad-request',
      )
    const secret = await expectRolledBack(() =>
      records().save('rel.Door', [{}], { returning: { fields: ['pin'] } }),
    )
    expect(['bad-request', 'invalid']).toContain(secret.kind)
  })

  test('a save repeated under its idempotency key returns the first answer and writes nothing', async () => {
    const company = await make(COMPANY, { name: 'once' })
    const sent = [{ id: company.id, version: 0, name: 'once 2' }, { name: 'made once' }]
    const options = { idempotencyKey: `save ${transport}`, returning: { fields: ['name'] } }
    const first = await records().save(COMPANY, sent, options)
    const changes = await changesOf(async () => {
      expect(await records().save(COMPANY, sent, options)).toEqual({ data: first.data, replayed: true })
    })
    expect(changes).toEqual([])
    const others = [sent, sent.slice(0, 1), [...sent].reverse()]
    for (const [index, other] of others.entries()) {
      const changed = index === 0 ? { idempotencyKey: options.idempotencyKey } : options
      expect((await catchError(records().save(COMPANY, other, changed))).kind).toBe('key-reused')
    }
  })

  test('a save takes 1,000 records, and rejects 1,001', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => ({ name: `many ${index}` }))
    expect(await save('rel.Circle', many)).toHaveLength(1_000)
    const error = await expectRolledBack(() => records().save('rel.Circle', [...many, { name: 'one more' }]))
    expect(error.kind).toBe('bad-request')
  })
})

interface FaultCase {
  readonly model: string
  readonly good: readonly object[]
  readonly last: object
  readonly expected: object
}

/** Each fails at another stage: before the transaction, at its start, in the middle, in the statement itself. */
function makeFaults({
  make,
  change,
  records,
}: RelatedService): Readonly<Record<string, () => Promise<FaultCase>>> {
  const good = async () => {
    const { id } = await make(COMPANY, { name: 'there' })
    return [
      { name: 'new', addresses: [{ city: 'X' }] },
      { id, version: 0, name: 'changed' },
    ]
  }
  return {
    'a wrong type': async () => ({
      ...{ model: COMPANY, good: await good(), last: { name: 7 } },
      expected: { kind: 'invalid', fields: ['records[2].name'] },
    }),
    'an outdated version': async () => {
      const { id } = await make(COMPANY, { name: 'stale' })
      await change(COMPANY, id, { version: 0, name: 'newer' })
      const last = { id, version: 0, name: 'older' }
      return { model: COMPANY, good: await good(), last, expected: { kind: 'conflict', id } }
    },
    'an outdated related record': async () => {
      const { id } = await make(COMPANY, { name: 'stale' })
      await change(COMPANY, id, { version: 0, name: 'newer' })
      const last = { name: 'with it', parent: { id, version: 0, name: 'older' } }
      return { model: COMPANY, good: await good(), last, expected: { kind: 'conflict', id } }
    },
    'a unique violation': async () => {
      const taken = await make(COMPANY, { name: 'taken', code: `T${Math.random()}`.slice(0, 16) })
      const last = { name: 'second', code: taken['code'] }
      const expected = { kind: 'not-unique', fields: ['records[2].code'] }
      return { model: COMPANY, good: await good(), last, expected }
    },
    'a reference to a missing record': async () => ({
      ...{ model: COMPANY, good: await good(), last: { name: 'alone', parent: { id: 987_654 } } },
      expected: { kind: 'invalid', fields: ['records[2].parent'] },
    }),
    'a deleted record': async () => {
      const { id } = await make(COMPANY, { name: 'gone' })
      await records().remove(COMPANY, id)
      const last = { id, version: 0, name: 'back' }
      return { model: COMPANY, good: await good(), last, expected: { kind: 'not-found' } }
    },
    'a duplicate reference after sequence numbers': async () => {
      const holder = await make(PERSON, { name: 'holder' })
      const held = { holder: { id: holder.id } }
      await make(BADGE, held)
      const expected = { kind: 'not-unique', fields: ['records[2].holder'] }
      return { model: BADGE, good: [{}, {}], last: held, expected }
    },
  }
}

async function missingFault(): Promise<FaultCase> {
  throw new Error('there is no such fault')
}

function summary({ kind, details }: VersoError): object {
  const fields = Object.keys(details.errors ?? {})
  const id = kind === 'conflict' ? details.data?.['entityId'] : undefined
  return { kind, ...(fields.length > 0 ? { fields } : {}), ...(id === undefined ? {} : { id }) }
}

function numberOf(badge: WireRecord | undefined): number {
  return Number(String(badge?.['number']).slice(2))
}

describe('mutants of the save', () => {
  onEveryEngine((engine) => {
    test('a mutant without a transaction around a save is caught', async () => {
      const location = await preparedLocation(engine)
      const options = { poolSize: 4, statementTimeoutMs: 10_000 }
      const database = mutants.readCheckWrite(await openDatabase(location.url, options))
      const service = await startService(engine, { location, database })
      try {
        const records = await enter(service, 'direct')
        const attempt = records.save(COMPANY, [{ name: 'left behind' }, { name: 'x', parent: { id: 9 } }])
        expect((await catchError(attempt)).kind).toBe('invalid')
        expect((await records.find(COMPANY)).data).toHaveLength(1)
      } finally {
        await service.close()
        location.remove()
      }
    })
  })
})
