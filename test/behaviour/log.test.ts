import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser, changePassword } from '../../src/service/auth/accounts.js'
import { changesBetween, changesSince } from '../log.js'
import type { Records } from '../../src/wire.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  beforeAll(async () => {
    service = await startService(engine)
    records = await enter(service, transport)
  })
  afterAll(() => service.close())

  const by = { id: 1, $version: 0, name: 'Ada' }

  test('an empty JSON array is distinct from null in Changes and in past versions', async () => {
    const { data } = await records.create('crm.Contact', { firstName: 'A', phones: [] })
    await records.update('crm.Contact', data.id, { version: 0, phones: null })
    await records.update('crm.Contact', data.id, { version: 1, phones: [] })
    const changes = await changesBetween(service.app.db.reader, 'crm.Contact', data.id, -1, 99)
    const phones = changes.reverse().map((change) => change.changes['phones'])
    expect(phones).toEqual([
      { before: null, after: [] },
      { before: [], after: null },
      { before: null, after: [] },
    ])
    await records.update('crm.Contact', data.id, { version: 2, firstName: 'B' })
    expect(await records.readAt('crm.Contact', data.id, 0)).toMatchObject({ phones: [] })
    expect(await records.readAt('crm.Contact', data.id, 1)).toMatchObject({ phones: null })
  })

  test('every write makes one Change with the values before and after', async () => {
    const { data } = await records.create('crm.Contact', { firstName: 'A', notes: 'n', pin: 'secret-pin' })
    await records.update('crm.Contact', data.id, { version: 0, firstName: 'B', notes: 'n', pin: 'other-pin' })
    await records.update('crm.Contact', data.id, { version: 1, phones: [1] })
    await records.update('crm.Contact', data.id, { version: 2 })
    await records.remove('crm.Contact', data.id)
    const changes = await changesBetween(service.app.db.reader, 'crm.Contact', data.id, -1, 99)
    const common = {
      model: 'crm.Contact',
      id: data.id,
      by,
      seq: expect.any(Number),
      on: expect.stringMatching(/Z$/),
    }
    expect(changes.reverse()).toEqual([
      {
        ...common,
        version: 0,
        action: 'create',
        changes: {
          firstName: { before: null, after: 'A' },
          fullName: { before: null, after: 'A' },
          notes: { before: null, after: 'n' },
        },
      },
      {
        ...common,
        version: 1,
        action: 'update',
        changes: { firstName: { before: 'A', after: 'B' }, fullName: { before: 'A', after: 'B' } },
      },
      { ...common, version: 2, action: 'update', changes: { phones: { before: null, after: [1] } } },
      { ...common, version: 3, action: 'update', changes: {} },
      {
        ...common,
        version: 4,
        action: 'delete',
        changes: {
          firstName: { before: 'B', after: null },
          fullName: { before: 'B', after: null },
          notes: { before: 'n', after: null },
          phones: { before: [1], after: null },
        },
      },
    ])
  })

  test('a rejected write makes no Change', async () => {
    const before = await changesSince(service.app.db.reader, 0, 10_000)
    const { data } = await records.create('test.Limited', { code: 'AB' })
    await catchError(records.create('test.Limited', { code: 'AB' }))
    await catchError(records.update('test.Limited', data.id, { version: 5, code: 'CD' }))
    await catchError(records.update('test.Limited', data.id, { version: 0, code: 'TOOLONG' }))
    await catchError(records.remove('test.Limited', data.id, { version: 5 }))
    const after = await changesSince(service.app.db.reader, 0, 10_000)
    expect(after.length).toBe(before.length + 1)
  })

  test('sequence numbers of the change log increase in the order of the writes', async () => {
    const before = await changesSince(service.app.db.reader, 0, 10_000)
    for (let index = 0; index < 5; index++) await records.create('crm.Contact', { firstName: `O${index}` })
    const last = before.at(-1)?.seq ?? 0
    const since = await changesSince(service.app.db.reader, last, 10)
    expect(since.map((change) => change.changes['firstName']?.after)).toEqual(['O0', 'O1', 'O2', 'O3', 'O4'])
    expect(since.every((change, index) => index === 0 || change.seq > (since[index - 1]?.seq ?? 0))).toBe(
      true,
    )
  })

  test('the change log includes accounts, without their passwords', async () => {
    const username = `log-${engine}-${transport}`
    const id = await addUser(service.app, { username, password: 'a first password', roles: ['editor'] })
    await changePassword(service.app, username, 'a second password')
    const changes = await changesBetween(service.app.db.reader, 'verso.auth.User', id, -1, 99)
    expect(changes.map((change) => [change.action, change.version, change.by])).toEqual([
      ['update', 1, null],
      ['create', 0, null],
    ])
    expect(JSON.stringify(changes)).not.toMatch(/password|argon2/)
  })
})
