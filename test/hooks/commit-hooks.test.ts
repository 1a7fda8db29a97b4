// Hooks after the commit run from the change log: in order for each record, at least once, whatever fails.
import pino from 'pino'
import { afterEach, expect, test } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { startCommitHooks } from '../../src/service/background/commit-hooks.js'
import { createContext } from '../../src/service/context/context.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { recordsFor } from '../../src/service/records/records.js'
import { runBatch } from '../../src/service/records/batch.js'
import { updateRecord } from '../../src/service/records/save.js'
import { retryFailedHooks } from '../../src/service/background/commit-status.js'
import { quoteIdentifier, toTableName } from '../../src/store/engine/names.js'
import { openDatabase } from '../../src/store/open.js'
import { CountingDatabase } from '../counting-database.js'
import { catchError, identityIn, onEveryEngine, preparedLocation, type Engine } from '../targets.js'
import {
  CallNotes,
  createTaskModels,
  LINE,
  startCommitService,
  TASK,
  type CommitService,
  type CommitServiceOptions,
} from './commit-fixture.js'

const SEND = `${TASK}/send`
const running: CommitService[] = []

async function start(engine: Engine, options: CommitServiceOptions = {}): Promise<CommitService> {
  const service = await startCommitService(engine, options)
  running.push(service)
  return service
}

afterEach(async () => {
  for (const service of running.splice(0)) await service.close()
})

/** Fails for one title, until it is told to succeed. */
function failFor(notes: CallNotes, title: string): { isRepaired: boolean } {
  const state = { isRepaired: false }
  notes.act = ({ after }) => {
    if (after?.['title'] === title && !state.isRepaired) throw new Error('the receiver is down')
  }
  return state
}

onEveryEngine((engine) => {
  test('a hook gets each change once, in order, with the record before and after', async () => {
    const service = await start(engine)
    const { notes, hooks } = service
    const parent = await service.create('parent')
    const first = await service.create('a', {
      parent: { id: parent.id },
      lines: [{ text: 'x' }],
      pin: '1234',
    })
    const second = await service.update(first, { title: 'b' })
    await service.remove(second)
    await hooks.settle()
    const calls = notes.calls.filter(({ id }) => id === first.id)
    expect(calls.map(({ action, version, attempt }) => [action, version, attempt])).toEqual([
      ['create', 0, 1],
      ['update', 1, 1],
      ['delete', 2, 1],
    ])
    const [created, updated, removed] = calls
    expect(created?.before).toBeUndefined()
    expect(created?.after).toMatchObject({ title: 'a', state: 'open', parent: { id: parent.id } })
    expect(created?.after?.['lines']).toEqual([{ id: expect.any(Number) as number }])
    expect(Object.keys(created?.after ?? {})).not.toContain('pin')
    expect(updated?.before).toMatchObject({ title: 'a' })
    expect(updated?.after).toMatchObject({ title: 'b' })
    expect([...(updated?.changed ?? [])]).toEqual(['title'])
    expect(removed?.before).toMatchObject({ title: 'b', parent: { id: parent.id } })
    expect(removed?.after).toBeUndefined()
    expect(calls.map(({ seq }) => seq)).toEqual(calls.map(({ seq }) => seq).sort((a, b) => a - b))
    expect(updated?.user).toBeNull()
    expect(Object.isFrozen(updated)).toBe(true)
    expect(Object.isFrozen(created?.after?.['lines'])).toBe(true)
    expect(service.otherNotes.calls).toHaveLength(notes.calls.length)
  })

  test('a hook that lags behind sees each version as it was', async () => {
    const location = await preparedLocation(engine, createTaskModels(new CallNotes(), new CallNotes()))
    const first = await start(engine, { location })
    await first.hooks.stop()
    let record = await first.create('v0')
    for (const title of ['v1', 'v2', 'v3']) record = await first.update(record, { title })
    const { notes, hooks } = await start(engine, { location })
    await hooks.settle()
    expect(notes.titles()).toEqual(['v0', 'v1', 'v2', 'v3'])
    expect(notes.calls.map(({ before }) => before?.['title'])).toEqual([undefined, 'v0', 'v1', 'v2'])
    expect(first.notes.calls).toEqual([])
  })

  test('the author of a change is the user of the call, with current permissions', async () => {
    const service = await start(engine)
    const { app, notes, hooks } = service
    const identity = await identityIn(service)
    notes.act = async ({ records, id }) => {
      if ((await records.of(TASK).read(id))['state'] === 'open')
        await records.of(TASK).update(id, { version: 0, state: 'closed' })
    }
    const { data } = await recordsFor(app, identity).create(TASK, { title: 'mine' })
    await hooks.settle()
    await hooks.settle()
    expect(notes.calls[0]?.user).toEqual({
      id: identity.id,
      username: identity.username,
      name: identity.name,
      roles: ['administrator'],
      isAdmin: true,
    })
    const { data: history } = await recordsFor(app, identity).history(TASK, data.id)
    expect(history.map(({ by }) => by?.id)).toEqual([identity.id, identity.id])
  })

  test('after the account was disabled or deleted, only asSystem works', async () => {
    const service = await start(engine)
    const { app, notes, hooks } = service
    const leaver = { username: 'leaver', name: 'Lea', password: 'a long password' }
    const id = await addUser(app, { ...leaver, roles: ['administrator'] })
    const identity = { id, version: 0, username: 'leaver', name: 'Lea' }
    await hooks.stop()
    await recordsFor(app, identity).create(TASK, { title: 'last' })
    const users = app.catalog.user
    await updateRecord(createContext(app, SERVICE_PRINCIPAL), users, {
      id,
      data: { version: 0, disabled: true },
    })
    const kinds: string[] = []
    notes.act = async ({ records, id: task }) => {
      kinds.push((await catchError(records.of(TASK).read(task))).kind)
      kinds.push((await catchError(records.transaction(async (own) => own.of(TASK).read(task)))).kind)
      expect(await records.asSystem().of(TASK).read(task)).toMatchObject({ title: 'last' })
    }
    const again = startCommitHooks(app)
    await again.settle()
    await again.stop()
    expect(notes.calls[0]?.user).toMatchObject({ username: 'leaver' })
    expect(kinds).toEqual(['forbidden', 'forbidden'])
    expect(await service.jobs()).toEqual([])
  })

  test('the whole batch and all lines are readable when a hook starts', async () => {
    const service = await start(engine)
    const { app, notes, hooks } = service
    const other = await openDatabase(service.location.url, { poolSize: 3, statementTimeoutMs: 10_000 })
    const seen: number[][] = []
    notes.act = async () => {
      const [tasks] = await other.reader.all(
        `select count(*) as n from ${quoteIdentifier(toTableName(TASK))}`,
      )
      const [lines] = await other.reader.all(
        `select count(*) as n from ${quoteIdentifier(toTableName(LINE))}`,
      )
      seen.push([Number(tasks?.['n']), Number(lines?.['n'])])
    }
    const lines = [{ text: 'a' }, { text: 'b' }]
    await runBatch(createContext(app, SERVICE_PRINCIPAL), [
      { op: 'create', model: TASK, data: { title: '1', lines } },
      { op: 'create', model: TASK, data: { title: '2', lines } },
    ])
    await hooks.settle()
    await other.close()
    expect(seen).toEqual([
      [2, 4],
      [2, 4],
    ])
  })

  test('a refused write runs no hook', async () => {
    const service = await start(engine)
    const { notes, hooks } = service
    const task = await service.create('only')
    await catchError(service.update({ ...task, version: 7 }, { title: 'x' }))
    await catchError(service.create('wrong', { state: 'unknown' }))
    await catchError(service.remove({ ...task, version: 7 }))
    await hooks.settle()
    expect(notes.titles()).toEqual(['only'])
  })

  test('a failed change is retried with backoff, and later changes of its record wait behind it', async () => {
    const service = await start(engine)
    const { notes, otherNotes, hooks, clock } = service
    const receiver = failFor(notes, 'bad')
    const bad = await service.create('bad')
    const good = await service.create('good')
    await hooks.settle()
    const later = await service.update(bad, { title: 'better' })
    await service.update(later, { title: 'best' })
    await service.update(good, { title: 'still good' })
    await hooks.settle()
    // Another record and another hook go on.
    expect(notes.titles().sort()).toEqual(['bad', 'good', 'still good'])
    expect(otherNotes.titles().sort()).toEqual(['bad', 'best', 'better', 'good', 'still good'])
    const [first, ...behind] = await service.jobs()
    expect(first).toMatchObject({ hook: SEND, record: bad.id, attempts: 1, isDead: false })
    expect(first?.error).toBe('the receiver is down')
    expect((first?.nextMs ?? 0) - (first?.createdMs ?? 0)).toBeGreaterThanOrEqual(750)
    expect((first?.nextMs ?? 0) - (first?.createdMs ?? 0)).toBeLessThanOrEqual(1_100)
    expect(behind.map(({ attempts, nextMs }) => [attempts, nextMs])).toEqual([
      [0, 0],
      [0, 0],
    ])
    clock.advance(1_100)
    await hooks.settle()
    expect(notes.versionsOf(bad.id)).toEqual([0, 0])
    receiver.isRepaired = true
    clock.advance(2_100)
    await hooks.settle()
    expect(notes.versionsOf(bad.id)).toEqual([0, 0, 0, 1, 2])
    expect(notes.calls.filter(({ id }) => id === bad.id).map(({ attempt }) => attempt)).toEqual([
      1, 2, 3, 1, 1,
    ])
    expect(await service.jobs()).toEqual([])
  })

  test('after ten attempts a change is a dead letter, holds nothing back, and runs again on request', async () => {
    const service = await start(engine)
    const { app, notes, hooks, clock } = service
    const receiver = failFor(notes, 'bad')
    const bad = await service.create('bad')
    await hooks.settle()
    await service.update(bad, { title: 'next' })
    for (let attempt = 1; attempt < 10; attempt++) {
      clock.advance(60 * 60_000)
      await hooks.settle()
    }
    expect(notes.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1])
    expect(notes.titles().at(-1)).toBe('next')
    const [dead, ...others] = await service.jobs()
    expect(dead).toMatchObject({ attempts: 10, isDead: true, error: 'the receiver is down' })
    expect(others).toEqual([])
    clock.advance(24 * 60 * 60_000)
    await hooks.settle()
    expect(notes.calls).toHaveLength(11)
    receiver.isRepaired = true
    expect(await retryFailedHooks(app.db, [dead?.id ?? 0])).toBe(1)
    await hooks.settle()
    expect(notes.titles().at(-1)).toBe('bad')
    expect(notes.calls.at(-1)?.attempt).toBe(1)
    expect(await service.jobs()).toEqual([])
  })

  test('a run that never ends counts as failed after its time, and others go on', async () => {
    const service = await start(engine, { hookOptions: { timeLimitMs: 50 } })
    const { notes, hooks } = service
    notes.act = ({ after }) => (after?.['title'] === 'hangs' ? new Promise(() => undefined) : undefined)
    await service.create('hangs')
    await service.create('works')
    await hooks.settle()
    expect(notes.titles().sort()).toEqual(['hangs', 'works'])
    expect(await service.jobs()).toMatchObject([{ attempts: 1, error: 'did not finish within 0.05 s' }])
  })

  test('a run that has ended writes nothing any more: its signal is aborted, and its records refuse calls', async () => {
    const service = await start(engine, { hookOptions: { timeLimitMs: 50 } })
    const { notes, hooks, clock } = service
    let isLate = true
    notes.act = async ({ id, version, records, signal }) => {
      if (version > 0) return
      if (isLate) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      await records.asSystem().of(TASK).update(id, { version, state: 'closed' })
    }
    const task = await service.create('slow')
    await hooks.settle()
    const [call] = notes.calls
    expect(call?.signal.aborted).toBe(true)
    for (const records of [call?.records, call?.records.asSystem()]) {
      await expect(records?.of(TASK).read(task.id)).rejects.toThrow('The run of this hook has ended')
      await expect(records?.transaction(async () => undefined)).rejects.toThrow('has ended')
    }
    isLate = false
    clock.advance(2_000)
    await hooks.settle()
    // The hook of the first change has made a second one.
    await hooks.settle()
    // The late run has written nothing, the second one has.
    expect(notes.versionsOf(task.id)).toEqual([0, 0, 1])
    expect(await service.jobs()).toEqual([])
  })

  test('a restart continues where the hook stopped, and a new hook begins at its first start', async () => {
    const models = createTaskModels(new CallNotes(), new CallNotes())
    const location = await preparedLocation(engine, models)
    const notes = new CallNotes()
    const first = await start(engine, { location, notes })
    await first.create('first')
    await first.hooks.settle()
    await first.hooks.stop()
    await first.create('between')
    const second = await start(engine, { location, notes })
    await second.create('second')
    await second.hooks.settle()
    // The order is kept for each record only.
    expect(notes.titles().sort()).toEqual(['between', 'first', 'second'])
  })

  test('changes before the first start of a hook are not delivered', async () => {
    const models = createTaskModels(new CallNotes(), new CallNotes())
    const location = await preparedLocation(engine, models)
    const first = await start(engine, { location })
    await first.hooks.stop()
    await first.create('old')
    await first.app.db.transaction((tx) => tx.run('delete from verso_hook'))
    const second = await start(engine, { location })
    await second.create('new')
    await second.hooks.settle()
    expect(second.notes.titles()).toEqual(['new'])
  })

  test('a stop during a run lets it finish, and leaves the rest of the page to the next start', async () => {
    const models = createTaskModels(new CallNotes(), new CallNotes())
    const location = await preparedLocation(engine, models)
    const first = await start(engine, { location })
    const started = withResolvers()
    const finish = withResolvers()
    first.notes.act = async () => {
      started.resolve(undefined)
      await finish.promise
    }
    await first.hooks.stop()
    let task = await first.create('0')
    for (const title of ['1', '2']) task = await first.update(task, { title })
    const hooks = startCommitHooks(first.app)
    await started.promise
    const stopped = hooks.stop()
    finish.resolve(undefined)
    await stopped
    expect(first.notes.titles()).toEqual(['0'])
    const second = await start(engine, { location })
    await second.hooks.settle()
    expect(second.notes.titles()).toEqual(['1', '2'])
  })

  test('a node that has lost its lease stores nothing, and the other node runs the change', async () => {
    const models = createTaskModels(new CallNotes(), new CallNotes())
    const location = await preparedLocation(engine, models)
    const first = await start(engine, { location })
    const second = await start(engine, { location })
    const begun = withResolvers()
    const finish = withResolvers()
    first.notes.act = async () => {
      begun.resolve(undefined)
      await finish.promise
      throw new Error('too late')
    }
    await first.create('contested')
    await begun.promise
    // As if the first node had been suspended for longer than its lease.
    await first.app.db.transaction((tx) =>
      tx.run(`update verso_hook set lease = 'nobody', leased_until_ms = 0`),
    )
    await expect.poll(() => second.notes.titles(), { timeout: 60_000 }).toEqual(['contested'])
    finish.resolve(undefined)
    await first.hooks.stop()
    await second.hooks.settle()
    expect(await second.jobs()).toEqual([])
    expect(second.notes.titles()).toEqual(['contested'])
  })

  test('a compacted change log is reported, and the hook continues with the oldest change', async () => {
    const models = createTaskModels(new CallNotes(), new CallNotes())
    const location = await preparedLocation(engine, models)
    const first = await start(engine, { location })
    await first.hooks.stop()
    const task = await first.create('0')
    await first.update(task, { title: '1' })
    await first.app.db.transaction(async (tx) => {
      await tx.run(`delete from verso_log where model = '${TASK}' and version = 0`)
      await tx.run(`insert into verso_epoch (name, value) select 'log-horizon', max(seq) - 1 from verso_log`)
    })
    const second = await start(engine, { location })
    await second.hooks.settle()
    expect(second.notes.titles()).toEqual(['1'])
    expect(second.notes.calls[0]?.before).toMatchObject({ title: '0' })
  })

  test('whatever a hook throws is stored as text and ends nothing', async () => {
    const log = pino({ level: 'error' }, { write: () => undefined })
    const service = await start(engine, { log, expects: ['internal'] })
    const { notes, hooks } = service
    const throwing = {
      get: () => {
        throw new Error('a getter')
      },
    }
    const thrown = [
      ...[null, undefined, '', 'text\0', Symbol('s'), Object.create(null) as object, new Error('')],
      Object.assign(new Error('x'), { message: { code: 7 } }),
      Object.defineProperty(new Error('x'), 'message', throwing),
      Object.defineProperty(new Error('x'), 'details', { ...throwing, enumerable: true }),
    ]
    notes.act = ({ after }) => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- a hook may throw anything
      throw thrown[Number(after?.['title'])]
    }
    for (const index of thrown.keys()) await service.create(String(index))
    await hooks.settle()
    expect((await service.jobs()).map(({ error }) => error)).toEqual([
      'null',
      'undefined',
      'threw an empty text',
      'text',
      'Symbol(s)',
      'threw a value that has no text',
      'Error',
      '[object Object]',
      'threw a value that has no text',
      'x',
    ])
  })

  test('a node without work runs few statements, however many hooks there are', async () => {
    const models = createTaskModels(new CallNotes(), new CallNotes())
    const location = await preparedLocation(engine, models)
    const options = { poolSize: 3, statementTimeoutMs: 10_000 }
    const database = new CountingDatabase(await openDatabase(location.url, options))
    const { hooks, create } = await start(engine, { location, database })
    await create('first')
    await hooks.settle()
    const startMs = performance.now()
    const statements = await database.statementsOf(
      () => new Promise<void>((resolve) => setTimeout(resolve, 3_000)),
    )
    // Each second one look at the Log, one at the leases, and the wait for the next change; each third second a renewal.
    const seconds = Math.ceil((performance.now() - startMs) / 1_000) + 1
    expect(statements.length).toBeGreaterThan(2)
    expect(statements.length).toBeLessThanOrEqual(5 * seconds)
    expect(statements.filter((sql) => !sql.startsWith('select')).length).toBeLessThanOrEqual(seconds)
  })

  test('the answer of a write does not wait for hooks', async () => {
    const service = await start(engine)
    const finish = withResolvers()
    service.notes.act = () => finish.promise
    service.otherNotes.act = () => finish.promise
    for (let i = 0; i < 20; i++) await service.create(`n${i}`)
    finish.resolve(undefined)
    await service.hooks.settle()
    expect(service.notes.calls).toHaveLength(20)
  })
})

interface Resolvers {
  readonly promise: Promise<unknown>
  readonly resolve: (value: unknown) => void
}

function withResolvers(): Resolvers {
  let resolve: (value: unknown) => void = () => undefined
  const promise = new Promise((done) => {
    resolve = done
  })
  return { promise, resolve }
}
