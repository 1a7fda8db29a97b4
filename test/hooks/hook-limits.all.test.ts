// The limits of hooks and transactions that take time to reach.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { RecordsHandle } from '../../src/model/definition/typed-records.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createRecordsHandle } from '../../src/service/hooks/records-handle.js'
import { quoteIdentifier, toTableName } from '../../src/store/engine/names.js'
import type { Records } from '../../src/wire.js'
import { catchError, countAnew, enter, onEveryEngine, startService, type Service } from '../targets.js'

const SLOW = 'limit.Slow'
const TEXT = 'limit.Text'
const SLOW_MS = 300
/** A search folds the text of each record. PostgreSQL takes longer, and blocks nobody meanwhile. */
const TEXTS = { sqlite: 40_000, postgres: 50 }

const MODELS = [
  defineModel({
    name: SLOW,
    fields: { name: { type: 'string' } },
    hooks: {
      afterSave: async ({ records }) => {
        const endMs = performance.now() + SLOW_MS
        while (performance.now() < endMs) await records.of(SLOW).find({ limit: 1 })
      },
    },
  }),
  defineModel({ name: TEXT, fields: { text: { type: 'text' } } }),
].map((definition) => ({ file: 'limit.ts', definition }))

onEveryEngine((engine) => {
  let service: Service
  let records: Records
  let handle: RecordsHandle

  beforeAll(async () => {
    service = await startService(engine, { models: MODELS, expects: ['internal', 'busy'] })
    records = await enter(service, 'http')
    handle = createRecordsHandle(service.app, async () => SERVICE_PRINCIPAL)
  })
  afterAll(async () => {
    // A test has inserted rows without counting them.
    await countAnew(service, TEXT)
    await service.close()
  })

  test('all hooks of a request have 10 s together, and then nothing is written', async () => {
    const error = await catchError(
      records.save(
        SLOW,
        Array.from({ length: 60 }, () => ({ name: 'a' })),
      ),
    )
    expect(error.kind).toBe('hook-failed')
    expect(error.message).toContain('The hooks of this request did not finish within 10 s')
    expect((await records.find(SLOW)).total).toBe(0)
  })

  test('a search in a transaction that scans a large table does not block the others', async () => {
    const table = quoteIdentifier(toTableName(TEXT))
    const words = 'été '.repeat(250)
    await service.app.db.transaction(async (tx) => {
      await tx.run(
        `insert into ${table} ("version", "text", "createdOn") ` +
          `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${TEXTS[engine]}) ` +
          `select 0, '${words}', '2026-01-01T00:00:00.000Z' from n`,
      )
    })
    const search = { filter: "text like '%zzz%'", limit: 1 }
    const delays = monitorEventLoopDelay({ resolution: 10 })
    delays.enable()
    const searching = handle.transaction((inside) => inside.of(TEXT).find(search))
    if (engine === 'sqlite') {
      const error = await catchError(searching)
      expect(error.kind).toBe('busy')
      expect(error.message).toContain('A search in a transaction took more than 500 ms')
      expect(error.message).toContain('nothing was changed')
      // The rest of the machine may hold up the process, too.
      expect(delays.max / 1e6).toBeLessThan(1_500)
    } else expect(await searching).toMatchObject({ total: 0 })
    // The transaction that was refused has left nothing open.
    expect((await handle.of(TEXT).find({ filter: { id: 1 }, fields: [] })).total).toBe(1)
    expect((await handle.transaction((inside) => inside.of(TEXT).find({ filter: { id: 1 } }))).total).toBe(1)
  })
})
