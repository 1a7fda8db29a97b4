// Plain records of one request are written together. Errors name the request that they belong to, as if each was written alone.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordsFor } from '../../src/service/records/records.js'
import type { Records } from '../../src/wire.js'
import { catchError, identityIn, onEveryEngine, startService, type Service } from '../targets.js'

const EVERYTHING = 'test.Everything'

onEveryEngine((engine) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine)
    records = recordsFor(service.app, await identityIn(service))
  })
  afterAll(() => service.close())

  test('a stale record in the middle of a batch is reported with its index, and nothing is written', async () => {
    const drafts = Array.from({ length: 6 }, (_, index) => ({ label: `n${index}` }))
    const { data } = await records.save(EVERYTHING, drafts)
    await records.update(EVERYTHING, data[3]?.id ?? 0, { version: 0, label: 'changed' })
    const requests = data.map(({ id }) => ({
      op: 'update',
      model: EVERYTHING,
      id,
      version: 0,
      data: { label: 'x' },
    }))
    const error = await catchError(records.batch(requests))
    expect([error.kind, error.details.data?.['index']]).toEqual(['conflict', 3])
    const after = await records.find(EVERYTHING, { sortBy: 'id' })
    expect(after.data.map(({ version }) => version)).toEqual([0, 0, 0, 1, 0, 0])
  })
})
