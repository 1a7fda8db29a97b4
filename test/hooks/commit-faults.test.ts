// Errors of the database while hooks after the commit run: they concern one change, and repeat no run that has succeeded.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { createContext } from '../../src/service/context/context.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { startCommitHooks } from '../../src/service/background/commit-hooks.js'
import { listFailedHooks, retryFailedHooks } from '../../src/service/background/commit-status.js'
import { createRecord, updateRecord } from '../../src/service/records/save.js'
import type { Database, SqlValue } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { withStatements } from '../mutants/commit-hooks.js'
import { onEveryEngine, preparedLocation, startService, type Engine } from '../targets.js'
import {
  CallNotes,
  createTaskModels,
  startCommitService,
  type CommitService,
  type CommitServiceOptions,
} from './commit-fixture.js'

const HOUR_MS = 3_600_000
const PATIENTLY = { timeout: 60_000, interval: 20 }

const running: { readonly close: () => Promise<void> }[] = []
afterEach(async () => {
  for (const service of running.splice(0)) await service.close()
})

/** Decides which statements fail, and sees all of them. */
type Watch = (sql: string, params: readonly SqlValue[]) => boolean

interface FaultyService extends CommitService {
  /** Statements for which this is true fail. */
  fails: Watch
}

async function startFaulty(engine: Engine, options: CommitServiceOptions = {}): Promise<FaultyService> {
  const state: { fails: Watch } = { fails: () => false }
  const location = options.location ?? (await newDatabase(engine))
  const check = (sql: string, params: readonly SqlValue[] = []) => {
    if (state.fails(sql, params)) throw new Error('the statement failed')
  }
  const inner: Database = await openDatabase(location.url, { poolSize: 10, statementTimeoutMs: 10_000 })
  const database = withStatements(inner, {
    all: async (sql, params, next) => {
      check(sql, params)
      return next()
    },
    run: (tx) => async (sql, params) => {
      check(sql, params)
      return tx.run(sql, params)
    },
  })
  const service = await startCommitService(engine, { ...options, location, database })
  running.push(service)
  return Object.assign(state, service)
}

const newDatabase = (engine: Engine) =>
  preparedLocation(engine, createTaskModels(new CallNotes(), new CallNotes()))

/** Every statement that reads the author of this change. */
const readsAuthor =
  (seq: number): Watch =>
  (sql, params) =>
    sql.startsWith('select by_user') && params[0] === seq

onEveryEngine((engine) => {
  test('a call that cannot be built is a failure of its change alone, and at last a dead letter', async () => {
    const service = await startFaulty(engine)
    const { notes, hooks, clock } = service
    await hooks.stop()
    const records = await Promise.all(['a', 'b', 'c'].map((title) => service.create(title)))
    const bad = records[1]
    const [row] = await service.app.db.reader.all(
      `select seq from verso_log where model = 'job.Task' and record = ${bad?.id ?? 0}`,
    )
    service.fails = readsAuthor(Number(row?.['seq']))
    const again = startCommitHooks(service.app)
    await again.settle()
    expect(notes.titles().sort()).toEqual(['a', 'c'])
    const isSend = ({ hook }: { hook: string }) => hook.endsWith('/send')
    expect((await service.jobs()).filter(isSend)).toMatchObject([
      { record: bad?.id, attempts: 1, isDead: false, error: 'the statement failed' },
    ])
    for (let attempt = 2; attempt <= 10; attempt++) {
      clock.advance(HOUR_MS)
      await again.settle()
    }
    expect((await service.jobs()).filter(isSend)).toMatchObject([{ attempts: 10, isDead: true }])
    expect(notes.titles().sort()).toEqual(['a', 'c'])
    await again.stop()
  })

  test('a record whose versions cannot be read does not hold back or repeat others', async () => {
    const service = await startFaulty(engine)
    const { notes, hooks, clock } = service
    await hooks.stop()
    const bad = await service.create('bad')
    await service.update(bad, { title: 'later' })
    await service.create('good')
    let isBroken = true
    service.fails = (sql, params) =>
      isBroken && sql.includes('where model = ? and record = ?') && params.includes(bad.id)
    const again = startCommitHooks(service.app)
    await again.settle()
    expect(notes.titles()).toEqual(['good'])
    isBroken = false
    clock.advance(2_000)
    await again.settle()
    expect(notes.titles()).toEqual(['good', 'bad', 'later'])
    await again.stop()
  })

  test('a result that cannot be stored is stored later, and its hooks do not run again', async () => {
    const service = await startFaulty(engine)
    const { notes, hooks } = service
    let left = 3
    service.fails = (sql) => sql.startsWith('update verso_hook set position') && left-- > 0
    for (const title of ['a', 'b']) await service.create(title)
    await hooks.settle()
    expect(left).toBeLessThan(0)
    expect(notes.titles().sort()).toEqual(['a', 'b'])
  })

  test('the result of a retry that cannot be stored is stored later, and it does not run again', async () => {
    const service = await startFaulty(engine)
    const { notes, hooks, clock } = service
    notes.act = ({ attempt }) => {
      if (attempt === 1) throw new Error('refused')
    }
    await service.create('a')
    await hooks.settle()
    let left = 3
    service.fails = (sql) => sql.startsWith('delete from verso_hook_job') && left-- > 0
    clock.advance(2_000)
    await hooks.settle()
    expect(left).toBeLessThan(0)
    expect(notes.calls.map(({ attempt }) => attempt)).toEqual([1, 2])
  })

  test('the first look at the change log begins at its end', async () => {
    const location = await newDatabase(engine)
    const first = await startFaulty(engine, { location })
    for (const title of ['a', 'b', 'c']) await first.create(title)
    await first.hooks.settle()
    await first.hooks.stop()
    const starts: SqlValue[] = []
    first.fails = (sql, params) => {
      if (sql.includes('select distinct model from')) starts.push(params[0] ?? null)
      return false
    }
    const again = startCommitHooks(first.app)
    await again.settle()
    await expect.poll(() => starts.length, PATIENTLY).toBeGreaterThan(0)
    const [last] = await first.app.db.reader.all('select max(seq) as "last" from verso_log')
    expect(starts[0]).toBe(Number(last?.['last']))
    await again.stop()
  })

  test('the end of other retries does not let a record run twice at the same time', async () => {
    const service = await startFaulty(engine)
    const { app, notes, hooks, clock } = service
    const held = new Map<unknown, () => void>()
    const isHeld = (title: string) => () => held.has(title)
    let isBroken = true
    const current = new Map<number, number>()
    let most = 0
    notes.act = async ({ id, after }) => {
      current.set(id, (current.get(id) ?? 0) + 1)
      most = Math.max(most, current.get(id) ?? 0)
      const title = after?.['title']
      try {
        if (isBroken) throw new Error('refused')
        if (title === 'other' || title === 'slow')
          await new Promise<void>((resolve) => held.set(title, resolve))
      } finally {
        current.set(id, (current.get(id) ?? 0) - 1)
      }
    }
    const record = await service.create('dead')
    await hooks.settle()
    await app.db.transaction((tx) => tx.run('update verso_hook_job set dead = 1'))
    const second = await service.update(record, { title: 'second' })
    await service.create('other')
    await hooks.settle()
    isBroken = false
    clock.advance(2_000)
    await expect.poll(isHeld('other'), PATIENTLY).toBe(true)
    const titles = async () => (await service.jobs()).map(({ record: id }) => id)
    await expect.poll(async () => (await titles()).filter((id) => id === record.id).length, PATIENTLY).toBe(1)
    await service.update(second, { title: 'slow' })
    await expect.poll(isHeld('slow'), PATIENTLY).toBe(true)
    held.get('other')?.()
    await expect.poll(titles, PATIENTLY).toEqual([record.id])
    await retryFailedHooks(app.db, 'all')
    // The retry is looked for every second.
    await sleep(2_200)
    held.get('slow')?.()
    await hooks.settle()
    expect(notes.titles().filter((title) => title === 'dead')).toHaveLength(2)
    expect(most).toBe(1)
  })

  test('a renewal does not extend a lease that another node has taken', async () => {
    const service = await startFaulty(engine)
    const { app, notes, hooks, clock } = service
    await hooks.stop()
    const task = await service.create('v0')
    await service.update(task, { title: 'v1' })
    let finish: () => void = () => undefined
    notes.act = () => new Promise<void>((resolve) => (finish = resolve))
    const again = startCommitHooks(app)
    await expect.poll(() => notes.titles(), PATIENTLY).toEqual(['v0'])
    let renewals = 0
    service.fails = (sql) => {
      if (sql.startsWith('update verso_hook set leased_until_ms')) renewals++
      // The node cannot read who has the lease.
      return sql.startsWith('select h.name, h.position, h.lease')
    }
    clock.advance(60_000)
    await app.db.transaction((tx) => tx.run(`update verso_hook set lease = 'other' where name like '%/send'`))
    await expect.poll(() => renewals, PATIENTLY).toBeGreaterThan(1)
    finish()
    await sleep(200)
    service.fails = () => false
    await again.stop()
    expect(notes.titles()).toEqual(['v0'])
  })

  test('changed has no computed fields, and a change of a secret alone runs the hook', async () => {
    const notes = new CallNotes()
    const Sum = defineModel({
      name: 'job.Sum',
      fields: {
        a: { type: 'integer' },
        label: { type: 'string', computed: 'no. {a}' },
        pin: { type: 'string', secret: true },
      },
      hooks: { afterCommit: notes.run },
    })
    const plainNotes = new CallNotes()
    const Plain = defineModel({
      name: 'job.Plain',
      fields: { a: { type: 'integer' } },
      hooks: { afterCommit: plainNotes.run },
    })
    const models = [Sum, Plain].map((definition) => ({ file: 'sum.ts', definition }))
    const service = await startService(engine, { models })
    running.push(service)
    const { app } = service
    const hooks = startCommitHooks(app)
    for (const name of ['job.Sum', 'job.Plain']) {
      const model = app.catalog.get(name)
      const context = () => createContext(app, SERVICE_PRINCIPAL)
      const { id } = (await createRecord(context(), model, { a: 1 })).data
      const secret = name === 'job.Sum' ? { pin: '1' } : { a: 1 }
      await updateRecord(context(), model, { id, data: { version: 0, ...secret } })
      await updateRecord(context(), model, { id, data: { version: 1, a: 2 } })
    }
    await hooks.settle()
    await hooks.stop()
    expect(notes.calls.map(({ changed }) => [...changed])).toEqual([['a'], [], ['a']])
    expect(plainNotes.calls.map(({ version }) => version)).toEqual([0, 2])
  })

  test('a failed change that was retried is due now, and those behind it wait', async () => {
    const service = await startFaulty(engine)
    const { app, notes, hooks } = service
    notes.act = () => {
      throw new Error('refused')
    }
    const task = await service.create('a')
    await hooks.settle()
    await service.update(task, { title: 'b' })
    await hooks.settle()
    await hooks.stop()
    const [waiting] = await listFailedHooks(app.db.reader, 10)
    expect(Date.parse(waiting?.nextAttemptOn ?? '')).toBeGreaterThan(service.clock.now())
    await retryFailedHooks(app.db, 'all')
    const [first, second] = await listFailedHooks(app.db.reader, 10)
    expect(Date.parse(first?.nextAttemptOn ?? '')).toBeLessThanOrEqual(service.clock.now())
    expect(second?.nextAttemptOn).toBeNull()
  })
})
