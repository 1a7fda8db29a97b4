// Services for tests: an empty database, a first user, requests over HTTP as any user.
import { expect, test } from 'vitest'
import {
  ConfigError,
  createTestVerso,
  createVerso,
  defineHooks,
  type RoutePlugin,
  type Verso,
} from 'verso-records'
import { shareDatabase } from '../mutants/embedding.js'
import { Project, Task, taskRules } from './models.js'

const MODELS = [Project, Task]

const reports: RoutePlugin = (fastify, _, done) => {
  fastify.get('/me', { config: { access: 'login' } }, ({ verso }) => ({ name: verso.user?.username }))
  done()
}

test('is empty and shares nothing, and a mutant that shares the database is caught', async () => {
  await using verso = await createVerso({ db: 'sqlite::memory:', models: MODELS, hooks: [taskRules] })
  await verso.system.of(Task).create({ title: 'Real' })
  const isIsolated = async (service: Pick<Verso, 'test'>) => {
    const testing = await service.test()
    const { total } = await testing.system.of(Task).find()
    await testing.system.of(Task).create({ title: 'Trial' })
    const isLeftAlone = (await verso.system.of(Task).find({ filter: { title: 'Trial' } })).total === 0
    if (testing.system !== verso.system) await testing.close()
    return total === 0 && isLeftAlone
  }
  expect(await isIsolated(verso)).toBe(true)
  expect(await isIsolated(shareDatabase(verso))).toBe(false)
  expect((await verso.system.of(Task).find({ filter: { title: 'Real' } })).total).toBe(1)
})

test('has the hooks and routes, and a first user who is an administrator', async () => {
  await using verso = await createVerso({
    db: 'sqlite::memory:',
    models: MODELS,
    hooks: [taskRules],
    routes: [reports],
  })
  await using testing = await verso.test()
  const task = await testing.my.of(Task).create({ title: 'shout' })
  expect(task).toMatchObject({ title: 'SHOUT', createdBy: { id: testing.user.id } })
  const { username } = testing.user
  expect((await testing.login({ username, password: testing.password })).user.id).toBe(testing.user.id)
  expect(await (await testing.fetch('/ext/me')).json()).toEqual({ name: username })
})

test('sends requests as other users, and without a user', async () => {
  await using testing = await createTestVerso({ db: 'postgres://nowhere', models: MODELS, routes: reports })
  await testing.addUser({ username: 'bob', password: testing.password, roles: ['reader'] })
  const bob = await testing.findUser('bob')
  expect(await (await testing.fetch('/ext/me', {}, bob)).json()).toEqual({ name: 'bob' })
  expect((await testing.fetch('/ext/me', {}, null)).status).toBe(401)
  const create = {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: '{"data":{"title":"a"}}',
  }
  expect((await testing.fetch('/ws/rest/embed.Task', create)).status).toBe(200)
  expect((await testing.fetch('/ws/rest/embed.Task', create, bob)).status).toBe(403)
})

test('refuses wrong options', async () => {
  await expect(createTestVerso({ models: [{ name: 'x' } as never] })).rejects.toThrow(ConfigError)
  await expect(createTestVerso(undefined as never)).rejects.toThrow(ConfigError)
})

test('errors of calls with all permissions are concealed from users, and shown to administrators', async () => {
  const verso = await createTestVerso({
    models: [Project, Task],
    routes: async (fastify) => {
      const login = { config: { access: 'login' } } as const
      const stale = { version: 9, title: 'b' }
      fastify.post<{ Params: { id: string } }>('/system/:id', login, async ({ params }) =>
        verso.system.of(Task).update(Number(params.id), stale),
      )
      fastify.post<{ Params: { id: string } }>('/verb/:id', login, async ({ params }) =>
        verso.system.update('embed.Task', Number(params.id), stale),
      )
      fastify.post<{ Params: { id: string } }>('/user/:id', login, async ({ params, verso: caller }) => {
        const user = await verso.findUser(caller.user?.username ?? '')
        if (user) return verso.records(user).asSystem().of(Task).update(Number(params.id), stale)
      })
    },
  })
  await verso.addUser({ username: 'bob', name: 'Bob', password: 'red kite over hills', roles: [] })
  const bob = await verso.findUser('bob')
  const { id } = await verso.my.of(Task).create({ title: 'top secret' })
  for (const name of ['system', 'verb', 'user']) {
    const send = async (user?: typeof bob) => {
      const response = await verso.fetch(`/ext/${name}/${id}`, { method: 'POST' }, user)
      return `${response.status} ${await response.text()}`
    }
    expect(await send(bob), name).toMatch(/^409 (?!.*top secret)/)
    expect(await send(), name).toMatch(/^409 .*top secret/)
  }
  await verso.close()
})

test('waits for hooks after the commit, lists those that failed, and repeats them', async () => {
  const mails: string[] = []
  let isDown = true
  const mail = defineHooks(Task, {
    afterCommit: ({ after }) => {
      if (isDown && after?.title === 'Fails') throw new Error('the mail server is down')
      mails.push(String(after?.title))
    },
  })
  await using testing = await createTestVerso({ models: MODELS, hooks: [mail] })
  await testing.my.of(Task).create({ title: 'Works' })
  const failing = await testing.my.of(Task).create({ title: 'Fails' })
  await testing.settleHooks()
  expect(mails).toEqual(['Works'])
  const [failed, ...others] = await testing.failedHooks()
  expect(others).toEqual([])
  expect(failed).toMatchObject({
    hook: 'embed.Task/afterCommit',
    record: failing.id,
    error: 'the mail server is down',
  })
  isDown = false
  expect(await testing.retryHooks([failed?.id ?? 0])).toBe(1)
  await expect.poll(() => mails).toEqual(['Works', 'Fails'])
  await expect.poll(() => testing.failedHooks()).toEqual([])
  isDown = true
  await testing.my.of(Task).create({ title: 'Fails' })
  await testing.settleHooks()
  const [given] = await testing.failedHooks()
  expect(await testing.discardHooks([given?.id ?? 0])).toBe(1)
  expect(await testing.failedHooks()).toEqual([])
  expect(mails).toEqual(['Works', 'Fails'])
})
