// Security events are records of the service with Changes; they outlive their accounts.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EVENT_MODEL } from '../../src/model/catalog/auth-models.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { appendEvent } from '../../src/service/auth/events.js'
import { changesSince } from '../log.js'
import { enter, onEveryTarget, PASSWORD, catchError, startService, type Service } from '../targets.js'

onEveryTarget((engine, transport) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  test('an event is a record with a Change, and remains when its account is deleted', async () => {
    const { app } = service
    const userId = await addUser(app, { username: 'grace', password: PASSWORD, roles: [] })
    await app.db.transaction((tx) =>
      appendEvent(app, tx, { kind: 'key-made', userId, address: '10.0.0.1', note: 'x'.repeat(300) }),
    )
    const records = await enter(service, transport)
    const find = async () =>
      (
        await records.search(EVENT_MODEL, {
          data: { criteria: [{ fieldName: 'kind', operator: '=', value: 'key-made' }] },
        })
      ).data[0]
    expect(await find()).toMatchObject({
      ...{ kind: 'key-made', address: '10.0.0.1', note: 'x'.repeat(255) },
      user: { id: userId, name: 'grace' },
    })
    const changes = await changesSince(app.db.reader, 0, 1_000)
    expect(changes.find(({ model, changes: made }) => model === EVENT_MODEL && made['note'])).toMatchObject({
      ...{ action: 'create', version: 0, by: null },
      changes: { kind: { before: null, after: 'key-made' }, user: { before: null, after: { id: userId } } },
    })
    await records.remove(USER_MODEL, userId, { version: 0 })
    expect(await find()).toMatchObject({ kind: 'key-made', user: null })
  })

  test('a client cannot create an event', async () => {
    const records = await enter(service, transport)
    expect((await catchError(records.create(EVENT_MODEL, { kind: 'login' }))).kind).toBe('forbidden')
  })

  test('an event is rolled back with its transaction', async () => {
    const { app } = service
    const count = async () => (await changesSince(app.db.reader, 0, 1_000)).length
    const before = await count()
    const fails = app.db.transaction(async (tx) => {
      await appendEvent(app, tx, { kind: 'logout' })
      throw new Error('undone')
    })
    await expect(fails).rejects.toThrow('undone')
    expect(await count()).toBe(before)
  })
})
