// The borders of hooks: nothing is written after a refusal, nothing is shown that a user may not see, and the Log knows every member.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ConfigError, VersoError } from '../../src/errors.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { HooksOf, PendingSaveCall } from '../../src/model/definition/hooks.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createRecordsHandle } from '../../src/service/hooks/records-handle.js'
import { openDatabase } from '../../src/store/open.js'
import { recordsFor } from '../../src/service/records/records.js'
import { importRecords } from '../../src/service/transfer/import.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { withStatements } from '../mutants/commit-hooks.js'
import { catchError, enter, onEveryEngine, startService, type Service } from '../targets.js'
import { grantee } from '../permissions/office-fixture.js'
import { sourcesIn, writeFiles } from '../transfer/transfer-fixture.js'

type Rules = Partial<Record<keyof HooksOf, (call: PendingSaveCall) => unknown>>
let rules: Rules = {}

const run =
  (name: keyof HooksOf) =>
  (call: unknown): never =>
    rules[name]?.(call as PendingSaveCall) as never

const MODELS = [
  defineModel({
    name: 'edge.Order',
    fields: {
      title: { type: 'string' },
      pin: { type: 'string', secret: 'password' },
      hidden: { type: 'string' },
      lead: { type: 'many-to-one', target: 'edge.Member' },
      notes: { type: 'text' },
      label: { type: 'string', computed: '{title}!' },
      lines: { type: 'one-to-many', target: 'edge.Line', mappedBy: 'order', owned: true },
    },
    hooks: { beforeSave: run('beforeSave'), validate: run('validate'), afterSave: run('afterSave') },
  }),
  defineModel({
    name: 'edge.Line',
    fields: {
      name: { type: 'string' },
      order: { type: 'many-to-one', target: 'edge.Order' },
      parts: { type: 'one-to-many', target: 'edge.Part', mappedBy: 'line', owned: true },
    },
    hooks: { beforeSave: ({ after }) => ({ name: after.name }) },
  }),
  defineModel({
    name: 'edge.Part',
    fields: { name: { type: 'string' }, line: { type: 'many-to-one', target: 'edge.Line' } },
  }),
  defineModel({
    name: 'edge.Team',
    fields: {
      name: { type: 'string', required: true },
      lead: { type: 'many-to-one', target: 'edge.Member' },
    },
  }),
  defineModel({ name: 'edge.Member', fields: { pin: { type: 'string', secret: 'password' } } }),
].map((definition) => ({ file: 'edge.ts', definition }))

onEveryEngine((engine) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine, { models: MODELS, expects: ['internal'] })
    records = await enter(service, 'http')
  })
  afterAll(() => service.close())
  beforeEach(() => {
    rules = {}
  })

  async function countTeams(): Promise<number> {
    return (await records.find('edge.Team')).total
  }

  const create = (values: object = {}) => records.create('edge.Order', { title: 'a', ...values })

  test('a call that waits behind a failed one writes nothing', async () => {
    rules = {
      afterSave: ({ records: inside }) =>
        Promise.all([inside.of('edge.Team').create({}), inside.of('edge.Team').create({ name: 'leak' })]),
    }
    const before = await countTeams()
    for (let round = 0; round < 5; round++) await catchError(create())
    await sleep(50)
    expect(await countTeams()).toBe(before)
  })

  test('a hook that is refused while it writes leaves nothing, also later', async () => {
    const endMs = performance.now() + 1_400
    rules = {
      afterSave: async ({ records: inside }) => {
        for (let count = 0; performance.now() < endMs; count++) {
          await inside.of('edge.Team').create({ name: `late ${count}` })
          await sleep(5)
        }
      },
    }
    const before = await countTeams()
    expect((await catchError(create())).kind).toBe('hook-failed')
    await sleep(700)
    expect(await countTeams()).toBe(before)
  })

  test('a line that a hook creates is in the answer, in the Change and in the history', async () => {
    rules = {
      afterSave: async ({ id, records: inside }) => {
        await inside.of('edge.Line').create({ name: 'shipping', order: { id } })
      },
    }
    const { data } = await create()
    expect(data['lines']).toHaveLength(1)
    expect(data.version).toBe(0)
    const [change] = (await records.history('edge.Order', data.id)).data
    expect(change?.changes['lines']?.after).toHaveLength(1)
  })

  test('a line is not written if its beforeSave returns what is stored, and only its parts change', async () => {
    const { data } = await create({ lines: [{ name: 'a', parts: [{ name: 'b' }] }] })
    const [line] = data['lines'] as readonly WireRecord[]
    const [part] = (await records.read('edge.Line', line?.id ?? 0))['parts'] as readonly WireRecord[]
    await records.update('edge.Order', data.id, {
      version: 0,
      lines: [{ id: line?.id, version: 0, parts: [{ id: part?.id, version: 0, name: 'c' }] }],
    })
    expect(await records.read('edge.Line', line?.id ?? 0)).toMatchObject({ version: 0 })
    expect(await records.read('edge.Part', part?.id ?? 0)).toMatchObject({ version: 1, name: 'c' })
  })

  test('a line that a transaction of a program creates after its order is in the Change of the order', async () => {
    const handle = createRecordsHandle(service.app, async () => SERVICE_PRINCIPAL)
    const id = await handle.transaction(async (inside) => {
      const order = await inside.of('edge.Order').create({ title: 'a' })
      await inside.of('edge.Line').create({ name: 'x', order: { id: order.id } })
      return order.id
    })
    const [change] = (await records.history('edge.Order', id)).data
    expect(change?.changes['lines']?.after).toHaveLength(1)
  })

  test('a password is never stored as a hook sends it', async () => {
    rules = { beforeSave: () => ({ pin: 'red kite over hills' }) }
    await expect(create()).rejects.toBeInstanceOf(VersoError)
    rules = {
      afterSave: ({ records: inside }) =>
        inside.of('edge.Team').create({ name: 't', lead: { pin: 'red kite over hills' } }),
    }
    await expect(create()).rejects.toBeInstanceOf(VersoError)
    const stored = await service.app.db.reader.all('select "pin" from "edge.Member"')
    expect(stored.filter(({ pin }) => pin !== null && !String(pin).startsWith('$argon2'))).toEqual([])
  })

  test('the error of a call with all permissions shows nothing to a user with fewer', async () => {
    const { data: team } = await records.create('edge.Team', { name: 'a secret name' })
    const limited = await limitedRecords()
    rules = {
      afterSave: ({ records: inside }) =>
        inside.asSystem().of('edge.Team').update(team.id, { version: 7, name: 'b' }),
    }
    const error = await catchError(limited.create('edge.Order', { title: 'x' }))
    expect(error.kind).toBe('conflict')
    expect(JSON.stringify([error.message, error.details.data, error.details.errors])).not.toMatch(
      /secret name|edge\.Team/,
    )
    const full = await catchError(create())
    expect(full.details.data).toMatchObject({ theirs: { name: 'a secret name' } })
  })

  test('a rule of a record that is written with all permissions: the user gets the messages about visible fields', async () => {
    rules = {
      afterSave: async ({ after, records: inside }) => {
        if (after['title'] === 'x') await inside.asSystem().of('edge.Order').create({ title: 'inner' })
      },
      validate: ({ after }) => (after['title'] === 'inner' ? { title: 'is inner', hidden: 'is wrong' } : {}),
    }
    const limited = await limitedRecords()
    const error = await catchError(limited.create('edge.Order', { title: 'x' }))
    expect([error.kind, error.details.errors, error.message]).toEqual([
      'invalid',
      { title: 'is inner' },
      'Nothing was written: title is inner; it breaks a rule about values that you may not see',
    ])
    const full = await catchError(create({ title: 'x' }))
    expect(full.details.errors).toEqual({ title: 'is inner', hidden: 'is wrong' })
    rules.validate = ({ after }) => (after['title'] === 'inner' ? { hidden: 'is wrong' } : {})
    const nothing = await catchError(limited.create('edge.Order', { title: 'x' }))
    expect(nothing.message).toBe(
      'A rule about records that you may not see refused this (invalid); nothing was changed',
    )
    expect(nothing.details.errors).toBeUndefined()
  })

  test('a message about a field that the user may not see does not name it', async () => {
    rules = { validate: () => ({ hidden: 'contains a secret' }) }
    const limited = await limitedRecords()
    const error = await catchError(limited.create('edge.Order', { title: 'x' }))
    expect(error.kind).toBe('invalid')
    expect(JSON.stringify([error.message, error.details])).not.toMatch(/hidden|contains/)
  })

  test('a message about a hidden field does not replace the others', async () => {
    rules = { validate: () => ({ hidden: 'contains a secret', title: 'is boring' }) }
    const limited = await limitedRecords()
    const error = await catchError(limited.create('edge.Order', { title: 'x' }))
    expect(error.details.errors).toEqual({ title: 'is boring' })
    expect(error.message).toBe(
      'Nothing was written: title is boring; it breaks a rule about values that you may not see',
    )
  })

  test('an invalid value that a hook sets for a hidden field does not name it', async () => {
    rules = { beforeSave: () => ({ hidden: 'x'.repeat(300), title: 'x'.repeat(300) }) }
    const limited = await limitedRecords()
    const error = await catchError(limited.create('edge.Order', { title: 'x' }))
    expect(Object.keys(error.details.errors ?? {})).toEqual(['title'])
    expect(error.message).not.toContain('hidden')
    const full = await catchError(create())
    expect(Object.keys(full.details.errors ?? {}).sort()).toEqual(['hidden', 'title'])
  })

  test('a guess of a hidden value counts as a change, also if a hook has written the record before', async () => {
    const all = { model: 'edge.Order', canRead: true, canUpdate: true }
    const { client: limited } = await grantee(service, [
      { ...all, condition: "title = 'open'" },
      { ...all, readable: ['title'], writable: ['title'] },
    ])
    for (const guess of ['right', 'wrong']) {
      const { id } = (await create({ hidden: 'right' })).data
      const { id: other } = (await create()).data
      rules = {
        afterSave: async ({ id: saved, records: inside }) => {
          if (saved !== other) return
          const orders = inside.asSystem().of('edge.Order')
          const { version } = await orders.read(id)
          await orders.update(id, { version, notes: 'x' })
        },
      }
      const error = await catchError(
        limited.batch([
          { op: 'update', model: 'edge.Order', id: other, version: 0, data: { title: 'b' } },
          { op: 'update', model: 'edge.Order', id, version: 0, data: { hidden: guess } },
        ]),
      )
      expect(error.kind, guess).toBe('forbidden')
    }
  })

  test('rules do not run with a reference to a record that the user may not see', async () => {
    const { data: member } = await records.create('edge.Member', {})
    const limited = await limitedRecords({ readable: ['title', 'lead'], writable: ['title', 'lead'] })
    const seen: unknown[] = []
    rules = { validate: ({ after }) => void seen.push(after['lead']) }
    const errors: unknown[] = []
    for (const id of [member.id, 987_654]) {
      const error = await catchError(limited.create('edge.Order', { title: 'x', lead: { id } }))
      errors.push([
        error.kind,
        error.message.replace(String(id), '?'),
        Object.keys(error.details.errors ?? {}),
      ])
    }
    expect(errors[0]).toEqual(errors[1])
    expect(seen.every((lead) => lead === null)).toBe(true)
  })

  test('a hook may set a reference to a record that the user may not see', async () => {
    const { data: member } = await records.create('edge.Member', {})
    const limited = await limitedRecords()
    rules = { beforeSave: () => ({ lead: { id: member.id } }) }
    const { data } = await limited.create('edge.Order', { title: 'x' })
    expect((await records.read('edge.Order', data.id))['lead']).toMatchObject({ id: member.id })
    rules = { beforeSave: () => ({ lead: { id: 987_654 } }) }
    const error = await catchError(limited.create('edge.Order', { title: 'x' }))
    expect([error.kind, error.message]).toEqual([
      'invalid',
      'Nothing was written: it breaks a rule about values that you may not see',
    ])
  })

  test('a list that a hook makes too long is not named if the user may not see it', async () => {
    const limited = await limitedRecords()
    const lines = Array.from({ length: 999 }, () => ({ name: 'a' }))
    const { id } = (await create({ lines })).data
    await records.create('edge.Line', { order: { id } })
    rules = {
      afterSave: ({ after, records: inside }) =>
        after['title'] === 'x' ? inside.asSystem().of('edge.Line').create({ order: { id } }) : undefined,
    }
    const error = await catchError(limited.create('edge.Order', { title: 'x' }))
    expect([error.kind, error.message]).toEqual([
      'invalid',
      'Nothing was written: it breaks a rule about values that you may not see',
    ])
    const full = await catchError(create({ title: 'x' }))
    expect(full.message).toContain(`edge.Order ${id} already has 1000 lines`)
  })

  test('a removal by a hook does not name a model that the user may not see', async () => {
    const { data: member } = await records.create('edge.Member', {})
    await records.create('edge.Team', { name: 't', lead: { id: member.id } })
    const limited = await limitedRecords()
    rules = { afterSave: ({ records: inside }) => inside.asSystem().of('edge.Member').remove(member.id) }
    const error = await catchError(limited.create('edge.Order', { title: 'x' }))
    expect(error.kind).toBe('still-referenced')
    expect(JSON.stringify([error.message, error.details.data ?? null])).not.toMatch(/edge\./)
    const full = await catchError(create())
    expect(full.message).toContain(`edge.Member ${member.id} is still referenced by edge.Team`)
  })

  test('the database may retry a transaction whose work catches an error of the engine', async () => {
    const inner = await openDatabase(service.location.url, { poolSize: 3, statementTimeoutMs: 10_000 })
    let failures = 0
    const database = withStatements(inner, {
      run: (tx) => async (sql, params) => {
        if (sql.startsWith('update "edge.Team"')) throw new Error(`the engine has failed ${++failures}`)
        return tx.run(sql, params)
      },
    })
    const faulty = await startService(engine, { models: MODELS, location: service.location, database })
    const { data: team } = await records.create('edge.Team', { name: 'a' })
    const handle = createRecordsHandle(faulty.app, async () => SERVICE_PRINCIPAL)
    const work = handle.transaction(async (inside) => {
      try {
        await inside.of('edge.Team').update(team.id, { version: 0, name: 'b' })
      } catch {
        throw new VersoError('forbidden', 'its own error')
      }
    })
    await expect(work).rejects.toThrow('the engine has failed 1')
    await faulty.close()
  })

  test('records in a transaction have the limits of answers', async () => {
    const handle = createRecordsHandle(service.app, async () => SERVICE_PRINCIPAL)
    const notes = 'x'.repeat(1_000_000)
    for (let count = 0; count < 40; count++) await records.create('edge.Order', { notes })
    const found = handle.transaction((inside) =>
      inside.of('edge.Order').find({ fields: ['notes'], limit: 1_000 }),
    )
    const error = await catchError(found)
    expect(error.kind).toBe('too-large')
    expect(error.message).toContain('find fewer of them with "limit"')
    const few = await handle.transaction((inside) =>
      inside.of('edge.Order').find({ fields: ['notes'], limit: 10 }),
    )
    expect(few.data).toHaveLength(10)
  })

  test('a hook that removes the record of the request is refused in words', async () => {
    rules = { afterSave: ({ id, records: inside }) => inside.of('edge.Order').remove(id ?? 0) }
    const error = await catchError(create())
    expect(error.kind).toBe('hook-failed')
    expect(error.message).toContain('Throw a VersoError in the hook')
  })

  test('a hook that removes a record which the request writes later is refused in words', async () => {
    const { id: first } = (await create()).data
    const { id: second } = (await create()).data
    rules = {
      afterSave: async ({ id, records: inside }) => {
        if (id === first) await inside.of('edge.Order').remove(second)
      },
    }
    const write = records.save('edge.Order', [
      { id: first, version: 0, title: 'b' },
      { id: second, version: 0, title: 'b' },
    ])
    const error = await catchError(write)
    expect(error.kind).toBe('hook-failed')
    expect(error.message).toContain(`A hook has removed edge.Order ${second}, which this request writes`)
    expect(await records.read('edge.Order', first)).toMatchObject({ version: 0 })
  })

  test('an import stores each line between its hooks, with computed values of what they set', async () => {
    const totals: number[] = []
    rules = {
      beforeSave: async ({ after, records: inside }) => {
        totals.push((await inside.of('edge.Order').find({ filter: { title: 'imported' } })).total)
        return after['title'] === 'raw' ? { title: 'imported' } : undefined
      },
    }
    const lines = [90_001, 90_002, 90_003].map((id) => ({ id, version: 2, title: 'raw' }))
    await importLines(lines)
    expect(totals).toEqual([0, 1, 2])
    expect(await records.read('edge.Order', 90_002)).toMatchObject({ title: 'imported', label: 'imported!' })
  })

  test('an import of lines and their order: the Log and the counters know the order of each line', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'verso-edge-'))
    try {
      const files = writeFiles(folder, {
        'edge.Order.ndjson': `${JSON.stringify({ id: 85_001, version: 0, title: 'a' })}\n`,
        'edge.Line.ndjson': `${JSON.stringify({ id: 85_002, version: 0, name: 'b', order: { id: 85_001 } })}\n`,
      })
      await importRecords(service.app, sourcesIn(service.app, files))
    } finally {
      rmSync(folder, { recursive: true })
    }
    const [change] = (await records.history('edge.Line', 85_002)).data
    expect(change?.changes['order']?.after).toMatchObject({ id: 85_001 })
    expect((await records.find('edge.Line', { filter: 'order = 85001' })).total).toBe(1)
  })

  test('an import names the line whose hook refuses it', async () => {
    rules = {
      afterSave: ({ after }) => {
        if (after['title'] === 'bad') throw new VersoError('forbidden', 'bad titles are refused')
      },
    }
    const lines = ['good', 'bad'].map((title, index) => ({ id: 91_001 + index, version: 0, title }))
    const error = await importLines(lines).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toContain('edge.Order.ndjson:2: bad titles are refused')
    expect((await records.find('edge.Order', { filter: 'id > 91000' })).total).toBe(0)
  })

  async function importLines(lines: readonly object[]): Promise<unknown> {
    const folder = mkdtempSync(path.join(tmpdir(), 'verso-edge-'))
    try {
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      const files = writeFiles(folder, { 'edge.Order.ndjson': text })
      return await importRecords(service.app, sourcesIn(service.app, files))
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  async function limitedRecords(more: object = {}): Promise<Records> {
    const username = `limited${Math.random()}`.replace('.', '')
    const { data: role } = await records.create('verso.auth.Role', { name: username })
    const grant = { role: { id: role.id }, model: 'edge.Order', canRead: true, canCreate: true }
    await records.create('verso.auth.Permission', {
      ...grant,
      readable: ['title'],
      writable: ['title'],
      ...more,
    })
    const password = 'red kite over hills'
    const id = await addUser(service.app, { username, name: 'Limited', password, roles: [username] })
    const { version } = await records.read('verso.auth.User', id)
    return recordsFor(service.app, { id, version, username, name: 'Limited' })
  }
})
