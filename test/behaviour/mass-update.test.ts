// A mass update changes all matching records, each with its own version and Change, or none of them.
import { describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import type { MassUpdate, Records } from '../../src/wire.js'
import { models } from '../models.js'
import {
  enter,
  preparedLocation,
  onEveryEngine,
  onEveryTarget,
  catchError,
  startService,
  type Engine,
} from '../targets.js'
import { inShort, useRelatedService } from './related-service.js'
import { searchingBy } from '../query-pool.js'
import { unshared, unsharedTransaction } from '../queryables.js'

const [COMPANY, PERSON, NODE] = ['rel.Company', 'rel.Person', 'rel.Node']
const Node = defineModel({
  name: NODE,
  fields: {
    name: { type: 'string' },
    parent: { type: 'many-to-one', target: NODE },
    children: { type: 'one-to-many', target: NODE, mappedBy: 'parent', owned: true },
  },
})
const named = (name: string) => ({ criteria: [{ fieldName: 'name', operator: '=', value: name }] })

onEveryTarget((engine, transport) => {
  const { records, make, change, read, changesOf, expectRolledBack } = useRelatedService(engine, transport, {
    models: [...models, { file: 'node.ts', definition: Node }],
  })
  const updateMass = async (model: string, request: MassUpdate) =>
    (await records().updateMass(model, request)).data
  const people = async (name: string, count: number, data: object = {}) => {
    const all = Array.from({ length: count }, () => ({ name, ...data }))
    return (await records().save(PERSON, all)).data
  }

  test('a mass update gives every matching record one version and one Change, and changes no other record', async () => {
    const [a, b] = await people('mass', 2)
    const [other] = await people('not mass', 1)
    const changes = await changesOf(async () => {
      expect(await updateMass(PERSON, { data: named('mass'), values: { rate: '1.50' } })).toBe(2)
    })
    expect(inShort(changes)).toEqual([`${PERSON} ${a?.id} update 1`, `${PERSON} ${b?.id} update 1`])
    expect(changes.map((each) => each.changes)).toEqual([
      { rate: { before: null, after: '1.50' } },
      { rate: { before: null, after: '1.50' } },
    ])
    expect(await read(PERSON, a?.id ?? 0)).toMatchObject({
      version: 1,
      rate: '1.50',
      updatedBy: { name: 'Ada' },
    })
    expect(await read(PERSON, other?.id ?? 0)).toEqual(other)
  })

  test('a mass update skips records that have the value already, and does not count them', async () => {
    const all = await people('some', 3)
    await change(PERSON, all[1]?.id ?? 0, { version: 0, isActive: true })
    const changes = await changesOf(async () => {
      const request = { data: named('some'), values: { isActive: true }, expected: 3 }
      expect(await updateMass(PERSON, request)).toBe(2)
      expect(await updateMass(PERSON, request)).toBe(0)
    })
    expect(inShort(changes)).toEqual([`${PERSON} ${all[0]?.id} update 1`, `${PERSON} ${all[2]?.id} update 1`])
  })

  test('a mass update accepts the conditions of a search: paths, texts with parameters, several of them', async () => {
    const company = await make(COMPANY, { name: 'Employer' })
    await people('employed', 2, { company: { id: company.id } })
    const asked = [
      { criteria: [{ fieldName: 'company.name', operator: '=', value: 'Employer' }] },
      { _domain: 'self.company.id = :id', _domainContext: { id: company.id } },
      { _domains: [{ domain: "name = 'employed'" }, { domain: 'company = :c', context: { c: company.id } }] },
    ]
    for (const [index, data] of asked.entries())
      expect(await updateMass(PERSON, { data, values: { rate: `${index}.25` } })).toBe(2)
  })

  test('a mass update recomputes computed fields and can set or clear references', async () => {
    const { data: contact } = await records().create('crm.Contact', { firstName: 'Mass', lastName: 'A' })
    const data = { criteria: [{ fieldName: 'firstName', operator: '=', value: 'Mass' }] }
    expect(await updateMass('crm.Contact', { data, values: { lastName: 'B' } })).toBe(1)
    expect(await read('crm.Contact', contact.id)).toMatchObject({ fullName: 'Mass B', version: 1 })
    const [person] = await people('moves', 1)
    const company = await make(COMPANY, { name: 'target' })
    expect(await updateMass(PERSON, { data: named('moves'), values: { company: { id: company.id } } })).toBe(
      1,
    )
    expect(await read(PERSON, person?.id ?? 0)).toMatchObject({ company: { id: company.id } })
    expect(await updateMass(PERSON, { data: named('moves'), values: { company: null } })).toBe(1)
  })

  test("a mass update that moves members increments each owner's version once, and does not count owners", async () => {
    const [from, to] = [
      await make(NODE, { name: 'from', children: [{ name: 'moving' }, { name: 'moving' }] }),
      await make(NODE, { name: 'to' }),
    ]
    const changes = await changesOf(async () => {
      expect(await updateMass(NODE, { data: named('moving'), values: { parent: { id: to.id } } })).toBe(2)
    })
    expect(inShort(changes)).toHaveLength(4)
    expect(inShort(changes)).toContain(`${NODE} ${from.id} update 1`)
    expect(inShort(changes)).toContain(`${NODE} ${to.id} update 1`)
  })

  test('a mass update with another number of matches than expected is a conflict, and nothing is written', async () => {
    await people('three', 3)
    const request = { data: named('three'), values: { rate: '9' } }
    for (const expected of [0, 2, 4]) {
      const error = await expectRolledBack(() => updateMass(PERSON, { ...request, expected }))
      expect(error).toMatchObject({
        kind: 'conflict',
        details: { data: { entityName: PERSON, expected, current: 3 } },
      })
    }
    expect(await updateMass(PERSON, { ...request, expected: 3 })).toBe(3)
    expect(await updateMass(PERSON, { ...request, values: { rate: '8' }, expected: null })).toBe(3)
  })

  test('a mass update without a condition is rejected as bad-request', async () => {
    const conditions = [undefined, null, {}, { criteria: [] }, { _domains: [] }, { operator: 'and' }]
    for (const data of [...conditions, { _archived: true }, { _domain: null }])
      expect((await expectRolledBack(() => updateMass(PERSON, { data, values: { rate: '1' } }))).kind).toBe(
        'bad-request',
      )
  })

  test('a mass update rejects lists, nested records, secrets and invalid values', async () => {
    const company = await make(COMPANY, { name: 'nested' })
    await people('nested', 1)
    const attempts: readonly [model: string, values: object, fault: string][] = [
      [PERSON, { circles: [] }, 'circles'],
      [PERSON, { circles: [{ name: 'new' }] }, 'circles'],
      [PERSON, { company: { name: 'new' } }, 'company'],
      [PERSON, { company: { id: company.id, version: 0, name: 'changed' } }, 'company'],
      [COMPANY, { addresses: [] }, 'addresses'],
      ['rel.Door', { pin: '1234' }, 'pin'],
      [PERSON, { nme: 'x' }, 'nme'],
      [PERSON, { rate: 'x' }, 'rate'],
      [COMPANY, { name: null }, 'name'],
    ]
    for (const [model, values, fault] of attempts) {
      const data = model === 'rel.Door' ? { _domain: "code = 'x'" } : named('nested')
      const error = await expectRolledBack(() => updateMass(model, { data, values }))
      expect([error.kind, Object.keys(error.details.errors ?? {})]).toEqual(['invalid', [fault]])
    }
    for (const values of [undefined, null, {}, [], 'x', 5])
      expect((await catchError(updateMass(PERSON, { data: named('nested'), values }))).kind).toBe(
        'bad-request',
      )
    for (const expected of [-1, 1.5, '1', true, {}])
      expect(
        (await catchError(updateMass(PERSON, { data: named('nested'), values: { rate: '1' }, expected })))
          .kind,
      ).toBe('bad-request')
  })

  test('a mass update with an id or a version among its values is rejected as bad-request', async () => {
    await people('keyed', 1)
    for (const key of [{ id: 1 }, { version: 0 }]) {
      const request = { data: named('keyed'), values: { ...key, name: 'x' } }
      expect((await expectRolledBack(() => records().updateMass(PERSON, request))).kind).toBe('bad-request')
    }
  })

  test('a mass update that fails in one record changes none', async () => {
    for (const name of ['unique', 'unique']) await make(COMPANY, { name })
    const code = { code: `U${transport}` }
    const taken = await expectRolledBack(() => updateMass(COMPANY, { data: named('unique'), values: code }))
    expect(taken.kind).toBe('not-unique')
    await people('gone', 2)
    const values = { company: { id: 987_654 } }
    expect((await expectRolledBack(() => updateMass(PERSON, { data: named('gone'), values }))).kind).toBe(
      'invalid',
    )
  })

  test('a mass update repeated under its idempotency key returns the first count', async () => {
    await people('repeat', 2)
    const request = { data: named('repeat'), values: { name: 'repeated' }, expected: 2 }
    const options = { idempotencyKey: `mass ${transport}` }
    expect(await records().updateMass(PERSON, request, options)).toEqual({ data: 2, replayed: false })
    expect(await records().updateMass(PERSON, request, options)).toEqual({ data: 2, replayed: true })
    const other = { ...request, expected: 1 }
    expect((await catchError(records().updateMass(PERSON, other, options))).kind).toBe('key-reused')
  })

  test('a mass update changes 1,000 records, and rejects 1,001 matches', async () => {
    await people('many', 1_000)
    expect(await updateMass(PERSON, { data: named('many'), values: { rate: '2' } })).toBe(1_000)
    await people('many', 1)
    const error = await expectRolledBack(() =>
      updateMass(PERSON, { data: named('many'), values: { rate: '3' } }),
    )
    expect(error).toMatchObject({
      kind: 'bad-request',
      message: expect.stringMatching(/^1001 records match/),
    })
  })
})

onEveryEngine((engine) => {
  test('a mass update of records that exceed the memory limit is rejected, and of fewer succeeds', async () => {
    const service = await startService(engine)
    const records = await enter(service, 'direct')
    const notes = 'x'.repeat(1_000_000)
    for (let count = 0; count < 20; count++) await records.create('crm.Contact', { lastName: 'Large', notes })
    const filter = (criteria: object[]) => ({
      data: { operator: 'and', criteria },
      values: { notes: `${notes}y` },
    })
    const large = { fieldName: 'lastName', operator: '=', value: 'Large' }
    const error = await catchError(records.updateMass('crm.Contact', filter([large])))
    expect([error.kind, error.message]).toEqual(['bad-request', expect.stringContaining('too large')])
    const few = { fieldName: 'id', operator: '<=', value: 10 }
    expect((await records.updateMass('crm.Contact', filter([large, few]))).data).toBe(10)
    await service.close()
  })
})

describe('records changed between the search and the transaction of a mass update', () => {
  onEveryEngine((engine) => {
    const update = { data: named('ready'), values: { name: 'done' } }

    test.for([1, 3])(
      'a record that no longer matches keeps its concurrent edit, with %i matches',
      async (count) => {
        await onRacedService(engine, count, async ({ records, meanwhile }) => {
          meanwhile((victim) => records.update(PERSON, victim, { version: 0, name: 'mine' }))
          expect(await records.updateMass(PERSON, update)).toEqual({ data: count - 1, replayed: false })
          expect(await namesOf(records)).toEqual(['mine', ...Array.from({ length: count - 1 }, () => 'done')])
        })
      },
    )

    test.for([1, 3])(
      'a record that still matches is updated on top of a concurrent edit, with %i matches',
      async (count) => {
        await onRacedService(engine, count, async ({ records, meanwhile }) => {
          meanwhile((victim) => records.update(PERSON, victim, { version: 0, rate: '5' }))
          expect(await records.updateMass(PERSON, update)).toEqual({ data: count, replayed: false })
          const { data } = await records.search(PERSON, { fields: ['name', 'rate'] })
          expect(data[0]).toMatchObject({ version: 2, name: 'done', rate: '5.00' })
        })
      },
    )

    test('a match deleted concurrently makes a mass update with an expected number a conflict', async () => {
      await onRacedService(engine, 3, async ({ records, meanwhile }) => {
        meanwhile((victim) => records.remove(PERSON, victim))
        const error = await catchError(records.updateMass(PERSON, { ...update, expected: 3 }))
        expect(error).toMatchObject({ kind: 'conflict', details: { data: { expected: 3, current: 2 } } })
        expect(await namesOf(records)).toEqual(['ready', 'ready'])
      })
    })

    test('a mutant that does not check the condition again in the transaction is caught', async () => {
      await onRacedService(
        engine,
        2,
        async ({ records, meanwhile }) => {
          meanwhile((victim) => records.update(PERSON, victim, { version: 0, name: 'mine' }))
          await records.updateMass(PERSON, update).catch(() => undefined)
          expect(await namesOf(records)).not.toEqual(['mine', 'done'])
        },
        withoutSecondLook,
      )
    })
  })
})

interface Race {
  readonly records: Records
  /** Runs `work` on the first match, between the search and the transaction of the next mass update. */
  readonly meanwhile: (work: (victim: number) => Promise<unknown>) => void
}

async function onRacedService(
  engine: Engine,
  count: number,
  work: (race: Race) => Promise<void>,
  mutant: (db: Database) => Database = (db) => db,
): Promise<void> {
  const location = await preparedLocation(engine)
  const inner = mutant(await openDatabase(location.url, { poolSize: 4, statementTimeoutMs: 10_000 }))
  let between: (() => Promise<unknown>) | undefined
  const queryPool = searchingBy(inner.queryPool, (queryable) =>
    unshared({
      all: async (sql, params) => {
        const rows = await queryable.all(sql, params)
        const once = between
        between = undefined
        await once?.()
        return rows
      },
    }),
  )
  const database: Database = {
    ...{ dialect: inner.dialect, reader: inner.reader, queryPool, blobs: inner.blobs },
    commits: inner.commits,
    writability: () => inner.writability(),
    gauges: () => inner.gauges(),
    measure: () => inner.measure(),
    transaction: (task, options) => inner.transaction(task, options),
    close: () => inner.close(),
  }
  const service = await startService(engine, { location, database })
  try {
    const records = await enter(service, 'direct')
    const all = Array.from({ length: count }, () => ({ name: 'ready' }))
    const { data: made } = await records.save(PERSON, all)
    await work({
      records,
      meanwhile: (task) => {
        between = () => task(made[0]?.id ?? 0)
      },
    })
  } finally {
    await service.close()
    location.remove()
  }
}

async function namesOf(records: Records): Promise<unknown[]> {
  return (await records.find(PERSON, { fields: 'name' })).data.map(({ name }) => name)
}

/** A mutant whose transaction does not check the condition again: every record that was found still matches. */
function withoutSecondLook(db: Database): Database {
  return {
    ...{
      dialect: db.dialect,
      reader: db.reader,
      queryPool: db.queryPool,
      blobs: db.blobs,
      commits: db.commits,
      writability: () => db.writability(),
      gauges: () => db.gauges(),
      measure: () => db.measure(),
    },
    transaction: (work, options) =>
      db.transaction(
        (tx) =>
          work(
            unsharedTransaction({
              all: (sql, params) => tx.all(sql.replaceAll('t."name" = ?', '(t."name" = ? or true)'), params),
              run: (sql, params) => tx.run(sql, params),
              insert: (sql, params) => tx.insert(sql, params),
            }),
          ),
        options,
      ),
    close: () => db.close(),
  }
}
