import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Records } from '../../src/wire.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'

const CONTACT = 'crm.Contact'

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine)
    records = await enter(service, transport)
  })
  afterAll(() => service.close())

  test('a conflict reports base, ours and theirs of every field that either side changed', async () => {
    const { data } = await records.create(CONTACT, {
      firstName: 'A',
      lastName: 'B',
      email: 'e',
      notes: 'n',
    })
    const { data: theirs } = await records.update(CONTACT, data.id, {
      version: 0,
      firstName: 'A2',
      email: 'e2',
      notes: 'n2',
    })
    const error = await catchError(
      records.update(CONTACT, data.id, { version: 0, firstName: 'A3', lastName: 'B3', email: 'e2' }),
    )
    expect(error.kind).toBe('conflict')
    expect(error.details.data).toEqual({
      entityName: CONTACT,
      entityId: data.id,
      expected: 0,
      current: 1,
      baseKnown: true,
      mergeable: false,
      fields: {
        firstName: { base: 'A', ours: 'A3', theirs: 'A2', verdict: 'clash' },
        lastName: { base: 'B', ours: 'B3', theirs: 'B', verdict: 'ours' },
        email: { base: 'e', ours: 'e2', theirs: 'e2', verdict: 'same' },
        notes: { base: 'n', ours: 'n', theirs: 'n2', verdict: 'theirs' },
      },
      changedBy: { id: 1, $version: 0, name: 'Ada' },
      changedOn: theirs['updatedOn'],
      theirs,
    })
    expect(await records.read(CONTACT, data.id)).toEqual(theirs)
  })

  test('a conflict over several versions is mergeable if both sides changed different fields', async () => {
    const { data } = await records.create(CONTACT, { firstName: 'A', phones: { home: 1 } })
    await records.update(CONTACT, data.id, { version: 0, email: 'x' })
    await records.update(CONTACT, data.id, { version: 1, email: 'y', notes: 'z' })
    const error = await catchError(records.update(CONTACT, data.id, { version: 0, phones: { home: 2 } }))
    expect(error.details.data).toMatchObject({
      mergeable: true,
      current: 2,
      fields: {
        phones: { base: { home: 1 }, ours: { home: 2 }, theirs: { home: 1 }, verdict: 'ours' },
        email: { base: null, theirs: 'y', verdict: 'theirs' },
        notes: { base: null, theirs: 'z', verdict: 'theirs' },
      },
    })
  })

  test('a conflict about a future version has no base', async () => {
    const { data } = await records.create(CONTACT, { firstName: 'A' })
    const error = await catchError(
      records.update(CONTACT, data.id, { version: 7, firstName: 'B', lastName: null }),
    )
    expect(error).toMatchObject({
      kind: 'conflict',
      details: { data: { expected: 7, current: 0, baseKnown: false } },
    })
    expect(error.details.data).toMatchObject({
      mergeable: false,
      fields: {
        firstName: { ours: 'B', theirs: 'A', verdict: 'clash' },
        lastName: { ours: null, theirs: null, verdict: 'same' },
      },
    })
  })

  test('a conflict has no base if the change log of the record is gone', async () => {
    const { data } = await records.create(CONTACT, { firstName: 'A' })
    await records.update(CONTACT, data.id, { version: 0, firstName: 'B' })
    await service.app.db.transaction((tx) =>
      tx.run('delete from verso_log where model = ? and record = ?', [CONTACT, data.id]),
    )
    const error = await catchError(records.update(CONTACT, data.id, { version: 0, firstName: 'C' }))
    expect(error.details.data).toMatchObject({ baseKnown: false, mergeable: false })
    expect(error.details.data?.['fields']).toEqual({
      firstName: { ours: 'C', theirs: 'B', verdict: 'clash' },
    })
  })

  test('a conflict about a secret field or a delete is not mergeable', async () => {
    const { data } = await records.create(CONTACT, { firstName: 'A', pin: '1' })
    await records.update(CONTACT, data.id, { version: 0, pin: '2' })
    const secret = await catchError(records.update(CONTACT, data.id, { version: 0, pin: '3' }))
    expect(secret.details.data).toMatchObject({ fields: {}, mergeable: false })
    const removal = await catchError(records.remove(CONTACT, data.id, { version: 0 }))
    expect(removal.details.data).toMatchObject({ mergeable: false })
  })

  test('a conflict has no base if the change log names an unknown field', async () => {
    const { data } = await records.create(CONTACT, { firstName: 'A' })
    await records.update(CONTACT, data.id, { version: 0, firstName: 'B' })
    await service.app.db.transaction((tx) =>
      tx.run(
        `update verso_log set changes = '{"nickName":{"before":"A","after":"B"}}' where model = ? and record = ? and version = 1`,
        [CONTACT, data.id],
      ),
    )
    const error = await catchError(records.update(CONTACT, data.id, { version: 0, email: 'x' }))
    expect(error.details.data).toMatchObject({ baseKnown: false, mergeable: false })
  })

  test('a conflict never contains a secret', async () => {
    const { data } = await records.create(CONTACT, { firstName: 'A', pin: 'first-pin' })
    await records.update(CONTACT, data.id, { version: 0, pin: 'second-pin' })
    const error = await catchError(records.update(CONTACT, data.id, { version: 0, pin: 'third-pin' }))
    expect(JSON.stringify(error.details)).not.toMatch(/-pin/)
  })
})
