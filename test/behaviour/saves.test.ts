// Several records in one request: all of them are written, or none.
import { describe, expect, test } from 'vitest'
import type { Refusal } from '../../src/errors.js'
import { openDatabase } from '../../src/store/open.js'
import type { WireRecord } from '../../src/wire.js'
import { enter, newPlace, onEveryEngine, onEveryTarget, refusalOf, startService } from '../targets.js'
import * as twins from '../twins.js'
import { idsOf, inShort, useFamily, type Family } from './family.js'

const [COMPANY, PERSON, BADGE] = ['rel.Company', 'rel.Person', 'rel.Badge']

onEveryTarget((engine, door) => {
  const family = useFamily(engine, door)
  const { records, make, change, read, changesOf, refusedWhole } = family

  const save = async (model: string, all: readonly unknown[]) => (await records().save(model, all)).data

  test('those without an id are made and the others changed, and the answer has their order', async () => {
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

  test('a record that is saved as it is gets one version and one Change, as in an update', async () => {
    const company = await make(COMPANY, { name: 'same' })
    const changes = await changesOf(async () => {
      const [saved] = await save(COMPANY, [company])
      expect(saved?.version).toBe(1)
    })
    expect(inShort(changes)).toEqual([`${COMPANY} ${company.id} update 1`])
  })

  test('records that move between the lists of others raise each owner once', async () => {
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
  test.for(Object.keys(faults))('%s in the last of many leaves nothing written', async (name) => {
    const { model, good, last, expected } = await (faults[name] ?? missingFault)()
    const refusal = await refusedWhole(() => records().save(model, [...good, last]))
    expect(summary(refusal)).toEqual(expected)
    // Without it they are fine.
    expect(await save(model, good)).toHaveLength(good.length)
  })

  test('a number that a refused save would have used is given to the next', async () => {
    const [first] = await save(BADGE, [{}])
    await refusalOf(records().save(BADGE, [{}, {}, { holder: { id: 987_654 } }]))
    const [next] = await save(BADGE, [{}])
    expect(numberOf(next) - numberOf(first)).toBe(1)
  })

  test('the faults of all records are named at once, with their places', async () => {
    const refusal = await refusedWhole(() =>
      records().save(COMPANY, [{ name: 5 }, { name: 'fine' }, { nme: 'x', addresses: [{}] }]),
    )
    expect(Object.keys(refusal.details.errors ?? {}).sort()).toEqual([
      'records[0].name',
      'records[2].addresses[0].city',
      'records[2].name',
      'records[2].nme',
    ])
  })

  test('a record that stands in it twice is refused, also inside of another', async () => {
    const company = await make(COMPANY, { name: 'twice' })
    const twice = { id: company.id, version: 0, name: 'x' }
    const again = `changes ${COMPANY} ${company.id}, which is changed in this request already`
    const roots = await refusedWhole(() => records().save(COMPANY, [twice, { name: 'y' }, twice]))
    expect(roots.details.errors).toEqual({ 'records[2]': again })
    const inside = await refusedWhole(() => records().save(COMPANY, [twice, { name: 'y', parent: twice }]))
    expect(inside.details.errors).toEqual({ 'records[1].parent': again })
  })

  test('a conflict is about committed values only, whatever the records before it would have changed', async () => {
    const parent = await make(COMPANY, { name: 'committed' })
    const child = await make(COMPANY, { name: 'child', parent: { id: parent.id } })
    await change(COMPANY, child.id, { version: 0, name: 'child 1' })
    const refusal = await refusedWhole(() =>
      records().save(COMPANY, [
        { id: parent.id, version: 0, name: 'never committed' },
        { id: child.id, version: 0, name: 'stale' },
      ]),
    )
    expect(refusal).toMatchObject({ kind: 'conflict', details: { data: { entityId: child.id, current: 1 } } })
    expect(refusal.details.data?.['theirs']).toMatchObject({
      parent: { id: parent.id, $version: 0, name: 'committed' },
    })
    expect(JSON.stringify(refusal.details)).not.toContain('never committed')
  })

  test('the answer shows what was asked for: fields, and neighbours ready to be sent back', async () => {
    const company = await make(COMPANY, { name: 'shown', code: `S${door}` })
    const options = { wanted: { fields: ['name', 'company.code'], related: { circles: ['name'] } } }
    const person = { name: 'P', company: { id: company.id }, circles: [{ name: 'C' }] }
    const { data } = await records().save(PERSON, [person], options)
    const [circle] = idsOf(data[0], 'circles')
    expect(data).toEqual([
      {
        ...{ id: data[0]?.id, version: 0, name: 'P' },
        company: { id: company.id, $version: 0, name: 'shown', code: `S${door}` },
        circles: [{ id: circle?.id, version: 0, name: 'C' }],
      },
    ])
    const { data: made } = await records().create(PERSON, { name: 'Q' }, { wanted: { fields: [] } })
    expect(Object.keys(made)).toEqual(['id', 'version'])
    const update = { version: 0, company: null }
    const { data: changed } = await records().update(PERSON, made.id, update, {
      wanted: { fields: ['name'] },
    })
    expect(changed).toEqual({ id: made.id, version: 1, name: 'Q' })
  })

  test('what the answer cannot show is refused before anything is written', async () => {
    for (const wanted of [{ fields: ['nope'] }, { related: { name: ['x'] } }, { fields: 'name' }])
      expect((await refusedWhole(() => records().save(PERSON, [{}], { wanted }))).kind).toBe('bad-request')
    const secret = await refusedWhole(() => records().save('rel.Door', [{}], { wanted: { fields: ['pin'] } }))
    expect(['bad-request', 'invalid']).toContain(secret.kind)
  })

  test('a save that is repeated under its key is answered, not done again', async () => {
    const company = await make(COMPANY, { name: 'once' })
    const sent = [{ id: company.id, version: 0, name: 'once 2' }, { name: 'made once' }]
    const options = { idempotencyKey: `save ${door}`, wanted: { fields: ['name'] } }
    const first = await records().save(COMPANY, sent, options)
    const changes = await changesOf(async () => {
      expect(await records().save(COMPANY, sent, options)).toEqual({ data: first.data, replayed: true })
    })
    expect(changes).toEqual([])
    const others = [sent, sent.slice(0, 1), [...sent].reverse()]
    for (const [index, other] of others.entries()) {
      const changed = index === 0 ? { idempotencyKey: options.idempotencyKey } : options
      expect((await refusalOf(records().save(COMPANY, other, changed))).kind).toBe('key-reused')
    }
  })

  test('1,000 records are saved at once, and one more is refused', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => ({ name: `many ${index}` }))
    expect(await save('rel.Circle', many)).toHaveLength(1_000)
    const refusal = await refusedWhole(() => records().save('rel.Circle', [...many, { name: 'one more' }]))
    expect(refusal.kind).toBe('bad-request')
  })
})

interface FaultCase {
  readonly model: string
  readonly good: readonly object[]
  readonly last: object
  readonly expected: object
}

/** Each fails at another place of the work: before the transaction, at its beginning, in the middle, in the statement itself. */
function makeFaults({ make, change, records }: Family): Readonly<Record<string, () => Promise<FaultCase>>> {
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
    'a stale version': async () => {
      const { id } = await make(COMPANY, { name: 'stale' })
      await change(COMPANY, id, { version: 0, name: 'newer' })
      const last = { id, version: 0, name: 'older' }
      return { model: COMPANY, good: await good(), last, expected: { kind: 'conflict', id } }
    },
    'a stale neighbour': async () => {
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
    'a reference that is not there': async () => ({
      ...{ model: COMPANY, good: await good(), last: { name: 'alone', parent: { id: 987_654 } } },
      expected: { kind: 'invalid', fields: ['records[2].parent'] },
    }),
    'a record that is gone': async () => {
      const { id } = await make(COMPANY, { name: 'gone' })
      await records().remove(COMPANY, id)
      const last = { id, version: 0, name: 'back' }
      return { model: COMPANY, good: await good(), last, expected: { kind: 'not-found' } }
    },
    'a taken badge, after numbers were given,': async () => {
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

function summary({ kind, details }: Refusal): object {
  const fields = Object.keys(details.errors ?? {})
  const id = kind === 'conflict' ? details.data?.['entityId'] : undefined
  return { kind, ...(fields.length > 0 ? { fields } : {}), ...(id === undefined ? {} : { id }) }
}

function numberOf(badge: WireRecord | undefined): number {
  return Number(String(badge?.['number']).slice(2))
}

describe('broken twins', () => {
  onEveryEngine((engine) => {
    test('a store without a transaction around a save is caught', async () => {
      const place = await newPlace(engine)
      const options = { poolSize: 4, statementTimeoutMs: 10_000 }
      const database = twins.readCheckWrite(await openDatabase(place.url, options))
      const service = await startService(engine, { place, database })
      try {
        const records = await enter(service, 'direct')
        const attempt = records.save(COMPANY, [{ name: 'left behind' }, { name: 'x', parent: { id: 9 } }])
        expect((await refusalOf(attempt)).kind).toBe('invalid')
        expect((await records.find(COMPANY)).data).toHaveLength(1)
      } finally {
        await service.close()
        place.remove()
      }
    })
  })
})
