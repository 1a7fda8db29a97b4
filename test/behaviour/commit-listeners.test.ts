import { afterAll, beforeAll, expect, test } from 'vitest'
import { onEveryEngine, startService, identityIn, type Service } from '../targets.js'
import { recordsFor } from '../../src/service/records/records.js'
import { CommitNotifier } from '../../src/store/engine/commit-notifier.js'

const CONTACT = 'crm.Contact'

onEveryEngine((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  test('a commit listener that throws makes no write fail, and none run again', async () => {
    const { app } = service
    let calls = 0
    const stop = app.db.commits.listen(() => {
      calls += 1
      throw new Error('a defect of a listener')
    })
    const records = recordsFor(app, await identityIn(service))
    const written = await Promise.all(
      ['a', 'b', 'c'].map((name) => records.create(CONTACT, { firstName: name })),
    )
    stop()
    expect(calls).toBeGreaterThan(0)
    const { data } = await records.find(CONTACT)
    expect(data.map(({ id }) => id)).toEqual(written.map(({ data: { id } }) => id).sort((a, b) => a - b))
  })
})

test('a listener that throws does not keep others from their signal', () => {
  class Signals extends CommitNotifier {
    protected startListening(): void {
      // Nothing to watch.
    }
    protected stopListening(): void {
      // Nothing was watched.
    }
  }
  const signals = new Signals()
  let calls = 0
  signals.listen(() => {
    throw new Error('a defect of a listener')
  })
  signals.listen(() => {
    calls += 1
  })
  signals.publish()
  expect(calls).toBe(1)
})
