// One error rejects a whole batch and carries the index of its request.
import { describe, expect, test } from 'vitest'
import type { VersoError } from '../../src/errors.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { commitsPart } from '../mutants/batch.js'
import {
  enter,
  preparedLocation,
  onEveryEngine,
  onEveryTarget,
  catchError,
  startService,
  type Engine,
} from '../targets.js'
import { idsOf, useRelatedService, type RelatedService } from './related-service.js'

const [COMPANY, ADDRESS, PERSON, CIRCLE] = ['rel.Company', 'rel.Address', 'rel.Person', 'rel.Circle']

onEveryTarget((engine, transport) => {
  const family = useRelatedService(engine, transport)
  const { records, make, change, expectRolledBack } = family
  const batch = async (...requests: readonly object[]) => (await records().batch(requests)).data
  const rejectedBatch = (...requests: readonly object[]) => expectRolledBack(() => records().batch(requests))

  const faults = makeFaults(family)
  test.for(Object.keys(faults))(
    '%s rejects the whole batch, and the error has the index of its request',
    async (name) => {
      const { good, fault, expected } = await (faults[name] ?? missingFault)()
      const error = await rejectedBatch(...good, fault, { op: 'create', model: PERSON, data: {} })
      expect(summary(error)).toEqual({ index: good.length, ...expected })
      expect(await batch(...good)).toHaveLength(good.length)
    },
  )

  test("a conflict in a batch has the content of a single update's conflict, and the index", async () => {
    const company = await make(COMPANY, { name: 'base' })
    await change(COMPANY, company.id, { version: 0, name: 'theirs' })
    const data = { name: 'ours', seat: { $ref: 's' } }
    const error = await rejectedBatch(
      { op: 'create', model: ADDRESS, ref: 's', data: { city: 'S' } },
      { op: 'update', model: COMPANY, id: company.id, version: 0, data },
    )
    expect(error.kind).toBe('conflict')
    expect(error.details.data).toMatchObject({
      ...{ index: 1, entityName: COMPANY, entityId: company.id, expected: 0, current: 1 },
      fields: {
        name: { base: 'base', ours: 'ours', theirs: 'theirs', verdict: 'clash' },
        seat: { base: null, ours: { $ref: 's' }, theirs: null, verdict: 'ours' },
      },
    })
  })

  test('an error message names the model only if all errors of the batch are of one model', async () => {
    const unknown = (model: string) => ({ op: 'create', model, data: { fone: 1 } })
    expect((await rejectedBatch(unknown(CIRCLE), unknown(CIRCLE))).message).toMatch(
      /^rel\.Circle was not written: /,
    )
    expect((await rejectedBatch(unknown(CIRCLE), unknown(PERSON))).message).toMatch(
      /^Nothing was written: requests\[0\].*; requests\[1\]/,
    )
  })

  test('a batch of one request rejects an outdated update, delete or assert as a conflict', async () => {
    const company = await make(COMPANY, { name: 'base' })
    await change(COMPANY, company.id, { version: 0, name: 'theirs' })
    const stale = { model: COMPANY, id: company.id, version: 0 }
    for (const request of [
      { op: 'update', data: { code: `1${engine}${transport}` } },
      { op: 'delete' },
      { op: 'assert' },
    ])
      expect(summary(await rejectedBatch({ ...stale, ...request }))).toEqual({ kind: 'conflict', index: 0 })
  })

  test('a batch reports the field errors of all requests at once, with the index of the first', async () => {
    const error = await rejectedBatch(
      { op: 'create', model: PERSON, data: {} },
      { op: 'create', model: COMPANY, data: { name: 5, addresses: [{}] } },
      { op: 'create', model: PERSON, data: { nme: 'x', company: { $ref: 'none' } } },
    )
    expect(summary(error)).toEqual({
      ...{ kind: 'invalid', index: 1 },
      fields: ['requests[1].addresses[0].city', 'requests[1].name', 'requests[2].company', 'requests[2].nme'],
    })
  })

  test('a $ref names an earlier request and a record of the target model, and holds nothing else', async () => {
    const person = { op: 'create', model: PERSON, ref: 'p', data: { boss: { $ref: 'p' } } }
    const own = await rejectedBatch(person)
    expect(own.details.errors).toEqual({
      'requests[0].boss': 'refers to "p", which is not the ref of an earlier request',
    })
    const later = await rejectedBatch(
      { op: 'create', model: PERSON, data: { circles: [{ $ref: 'c' }] } },
      { op: 'create', model: CIRCLE, ref: 'c', data: { name: 'C' } },
    )
    expect(summary(later)).toEqual({ kind: 'invalid', index: 0, fields: ['requests[0].circles[0]'] })
    const other = await rejectedBatch(
      { op: 'create', model: CIRCLE, ref: 'c', data: { name: 'C' } },
      { op: 'create', model: PERSON, data: { boss: { $ref: 'c' }, company: { $ref: 'c', name: 'x' } } },
    )
    expect(other.details.errors).toEqual({
      'requests[1].boss': `refers to "c", which is a ${CIRCLE}, not a ${PERSON}`,
      'requests[1].company': 'must be a reference such as { "$ref": "a" }, without other keys',
    })
  })

  test('a record created in a batch cannot be changed or dropped through the list of another request', async () => {
    const company = await make(COMPANY, { name: 'adopts' })
    const address = { op: 'create', model: ADDRESS, ref: 'b', data: { city: 'B' } }
    const adopted = { op: 'update', model: COMPANY, id: company.id, version: 0 }
    const error = await rejectedBatch(address, { ...adopted, data: { addresses: [{ $ref: 'b' }] } })
    expect(error).toMatchObject({ kind: 'invalid', details: { data: { index: 1 } } })
    expect(error.message).toContain('which this request already creates')
    const inside = { ...address, data: { city: 'B', company: { id: company.id } } }
    const dropped = await rejectedBatch(inside, { ...adopted, data: { addresses: [] } })
    expect(dropped).toMatchObject({ kind: 'bad-request', details: { data: { index: 1 } } })
    expect(dropped.message).toContain('is created and deleted in the same request')
  })

  test('a batch that names a record twice is rejected, also if one of the two is nested', async () => {
    const company = await make(COMPANY, { name: 'once' })
    const named = { model: COMPANY, id: company.id, version: 0 }
    const update = { ...named, op: 'update', data: { name: 'x' } }
    for (const other of [update, { ...named, op: 'delete' }, { ...named, op: 'assert' }]) {
      const error = await rejectedBatch(update, other)
      expect(summary(error)).toEqual({ kind: 'bad-request', index: 1, fields: ['requests[1].id'] })
    }
    const inside = { id: company.id, version: 0, name: 'inside' }
    const nested = await rejectedBatch(update, { op: 'create', model: PERSON, data: { company: inside } })
    expect(summary(nested)).toEqual({ kind: 'invalid', index: 1, fields: ['requests[1].company'] })
  })

  test('a batch may not change a record that it asserts, directly or through its lists', async () => {
    const company = await make(COMPANY, { name: 'asserted', addresses: [{ city: 'A' }] })
    const [address] = idsOf(company, 'addresses')
    const assert = { op: 'assert', model: COMPANY, id: company.id, version: 0 }
    for (const other of [
      { op: 'create', model: ADDRESS, data: { city: 'B', company: { id: company.id } } },
      { op: 'delete', model: ADDRESS, id: address?.id },
      {
        ...{ op: 'create', model: PERSON },
        data: { company: { id: company.id, version: 0, name: 'inside' } },
      },
    ]) {
      const error = await rejectedBatch(other, assert)
      expect(error).toMatchObject({ kind: 'bad-request', details: { data: { index: 1 } } })
      expect(error.message).toContain('is both asserted and changed in this batch')
    }
    // A reference to the asserted record does not change it.
    await batch({ op: 'create', model: PERSON, data: { company: { id: company.id } } }, assert)
  })

  test('a batch takes 1,000 requests, and rejects 1,001 and none', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => ({
      ...{ op: 'create', model: CIRCLE },
      data: { name: `many ${index}` },
    }))
    expect(await batch(...many)).toHaveLength(1_000)
    const one = { op: 'create', model: CIRCLE, data: { name: 'one more' } }
    expect((await rejectedBatch(...many, one)).message).toContain('A batch can have at most 1000 requests')
    expect((await rejectedBatch()).message).toContain('a list of at least one request')
  })

  test('nested records count towards the limit of 1,000 records per batch', async () => {
    const of = (count: number) => ({
      ...{ op: 'create', model: COMPANY },
      data: { name: 'N', addresses: Array.from({ length: count }, (_, index) => ({ city: `${index}` })) },
    })
    expect(await batch(of(499), of(499))).toHaveLength(2)
    const error = await rejectedBatch(of(499), of(500))
    expect(error).toMatchObject({ kind: 'bad-request', details: { data: { index: 1 } } })
  })

  test('a batch cannot grow an owned list past 1,000 members across its requests', async () => {
    const addresses = Array.from({ length: 999 }, (_, index) => ({ city: `${index}` }))
    const company = await make(COMPANY, { name: 'full', addresses })
    const joins = { op: 'create', model: ADDRESS, data: { city: 'one more', company: { id: company.id } } }
    const update = { op: 'update', model: COMPANY, id: company.id, version: 0, data: { name: 'fuller' } }
    const error = await rejectedBatch(update, joins, joins)
    expect(error.details.errors).toEqual({ addresses: 'must have at most 1000 members' })
    expect(await batch(update, joins)).toHaveLength(2)
  })
})

interface FaultCase {
  readonly good: readonly object[]
  readonly fault: object
  readonly expected: object
}

/** Each fails at another stage: before the transaction, at its start, in the middle, at its end. */
function makeFaults({
  make,
  change,
  records,
}: RelatedService): Readonly<Record<string, () => Promise<FaultCase>>> {
  const good = async () => {
    const { id } = await make(COMPANY, { name: 'there' })
    return [
      { op: 'create', model: COMPANY, ref: 'good', data: { name: 'new', addresses: [{ city: 'X' }] } },
      { op: 'update', model: COMPANY, id, version: 0, data: { name: 'changed' } },
      { op: 'delete', model: PERSON, id: (await make(PERSON, { name: 'gone' })).id },
      { op: 'create', model: 'rel.Badge', data: {} },
    ]
  }
  const stale = async () => {
    const { id } = await make(COMPANY, { name: 'stale' })
    await change(COMPANY, id, { version: 0, name: 'newer' })
    return { model: COMPANY, id, version: 0 }
  }
  const gone = async () => {
    const { id } = await make(PERSON, {})
    await records().remove(PERSON, id)
    return { model: PERSON, id }
  }
  const of = async (fault: object, expected: object) => ({ good: await good(), fault, expected })
  return {
    'a wrong shape': () =>
      of({ op: 'upsert', model: COMPANY }, { kind: 'bad-request', fields: ['requests[4].op'] }),
    'a wrong type': () =>
      of(
        { op: 'create', model: COMPANY, data: { name: 7 } },
        { kind: 'invalid', fields: ['requests[4].name'] },
      ),
    'an unknown model': () => of({ op: 'create', model: 'no.Model', data: {} }, { kind: 'unknown-model' }),
    'a model that only the service writes': () =>
      of({ op: 'create', model: 'com.axelor.meta.db.MetaModel', data: {} }, { kind: 'forbidden' }),
    'a created API key': () =>
      of({ op: 'create', model: 'verso.auth.ApiKey', data: {} }, { kind: 'forbidden' }),
    'a stale update': async () => of({ op: 'update', ...(await stale()), data: {} }, { kind: 'conflict' }),
    'a stale delete': async () => of({ op: 'delete', ...(await stale()) }, { kind: 'conflict' }),
    'a stale assert': async () => of({ op: 'assert', ...(await stale()) }, { kind: 'conflict' }),
    'an assert of a future version': async () =>
      of({ op: 'assert', ...(await stale()), version: 2 }, { kind: 'conflict' }),
    'an update of a deleted record': async () =>
      of({ op: 'update', ...(await gone()), version: 0, data: {} }, { kind: 'not-found' }),
    'a delete of a deleted record': async () =>
      of({ op: 'delete', ...(await gone()) }, { kind: 'not-found' }),
    'an assert of a deleted record': async () =>
      of({ op: 'assert', ...(await gone()), version: 0 }, { kind: 'not-found' }),
    'a reference to a missing record': () =>
      of(
        { op: 'create', model: PERSON, data: { company: { id: 987_654 } } },
        { kind: 'invalid', fields: ['requests[4].company'] },
      ),
    'a duplicate unique value': async () => {
      const code = `T${Math.random()}`.slice(0, 12)
      await make(COMPANY, { name: 'first', code })
      const data = { name: 'second', code }
      return of({ op: 'create', model: COMPANY, data }, { kind: 'not-unique', fields: ['requests[4].code'] })
    },
    'a delete of a referenced record': async () => {
      const { id } = await make(COMPANY, { name: 'needed' })
      await make(PERSON, { company: { id } })
      return of({ op: 'delete', model: COMPANY, id }, { kind: 'still-referenced' })
    },
    'a delete of the owner of a referenced record': async () => {
      const { id, ...company } = await make(COMPANY, { name: 'parts', addresses: [{ city: 'P' }] })
      const [seat] = idsOf({ id, ...company }, 'addresses')
      await make(COMPANY, { name: 'sits there', seat })
      return of({ op: 'delete', model: COMPANY, id }, { kind: 'still-referenced' })
    },
  }
}

async function missingFault(): Promise<never> {
  throw new Error('there is no such fault')
}

function summary({ kind, details }: VersoError): object {
  const fields = Object.keys(details.errors ?? {}).sort()
  return { kind, index: details.data?.['index'], ...(fields.length > 0 ? { fields } : {}) }
}

describe('atomicity of a batch', () => {
  onEveryEngine((engine) => {
    test('a rejected batch writes nothing, and a mutant that commits a part is caught', async () => {
      expect(await leftBehind(engine)).toBe(0)
      expect(await leftBehind(engine, commitsPart)).toBe(1)
    })
  })
})

async function leftBehind(engine: Engine, mutant: (db: Database) => Database = (db) => db): Promise<number> {
  const location = await preparedLocation(engine)
  const database = mutant(await openDatabase(location.url, { poolSize: 4, statementTimeoutMs: 10_000 }))
  const service = await startService(engine, { location, database })
  try {
    const records = await enter(service, 'direct')
    const requests = [
      { op: 'create', model: CIRCLE, ref: 'c', data: { name: 'left behind' } },
      { op: 'update', model: CIRCLE, id: { $ref: 'c' }, version: 0, data: { name: 'and changed' } },
      { op: 'delete', model: CIRCLE, id: 987_654 },
    ]
    await catchError(records.batch(requests))
    return (await records.find(CIRCLE)).data.length
  } finally {
    await service.close()
    location.remove()
  }
}
