// The life of an embedded service: its options, its server, its end, and the services for tests.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import {
  ConfigError,
  createVerso,
  defineHooks,
  every,
  extendModel,
  type RoutePlugin,
  type Verso,
  type VersoOptions,
} from 'verso-records'
import { catchError, newLocation, onEveryEngine } from '../targets.js'
import { priority, Project, Task, taskRules } from './models.js'

const MODELS = [Project, Task]
const opened: Verso[] = []
afterEach(async () => {
  for (const verso of opened.splice(0)) await verso.close()
})

/** Opens a service on an empty database, which closes after the test. */
async function open(options: Partial<VersoOptions> = {}): Promise<Verso> {
  const verso = await createVerso({
    db: 'sqlite::memory:',
    models: MODELS,
    ...options,
    http: { port: 0, ...options.http },
  })
  opened.push(verso)
  return verso
}

async function findErrors(options: unknown): Promise<readonly string[]> {
  const error: unknown = await createVerso(options as VersoOptions).catch((each: unknown) => each)
  if (!(error instanceof ConfigError)) throw new Error(`expected a ConfigError, not ${String(error)}`)
  return error.errors
}

test('the public face has no internals', async () => {
  expect(Object.keys(await import('verso-records')).sort()).toEqual([
    'ConfigError',
    'VersoError',
    'createTestVerso',
    'createVerso',
    'defineHooks',
    'defineModel',
    'defineRoutes',
    'every',
    'extendModel',
    'isConflict',
  ])
})

describe('options', () => {
  test('all problems of the options and the models are in one error, and no database is created', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'verso-options-'))
    const file = path.join(folder, 'verso.db')
    const errors = await findErrors({
      db: `sqlite:${file}`,
      model: [Task],
      models: [Project, { name: 'embed.Wrong', fields: { a: { type: 'strin' } } }],
      settings: { maxPagesize: 5, db: 'sqlite:x', poolSize: 'ten' },
      http: { prot: 80, compression: 'yes' },
      runsBackgroundWork: 'no',
    })
    expect(errors).toEqual([
      'model: there is no such option (did you mean "models"?)',
      'runsBackgroundWork must be true or false',
      'settings.maxPagesize: there is no such option (did you mean "maxPageSize"?)',
      'settings.db: there is no such option: write createVerso({ db, … })',
      'settings.poolSize must be a number of 0 or more',
      'http.prot: there is no such option (did you mean "port"?)',
      'http.compression must be true or false',
      expect.stringMatching(/^models\[1\]: embed\.Wrong.*did you mean "string"\?/),
    ])
    expect(existsSync(file)).toBe(false)
    rmSync(folder, { recursive: true })
  })

  test.each<readonly [string, unknown, RegExp]>([
    ['an undefined model', { models: [undefined] }, /^models\[0\]: it is undefined\. Check the name of the/],
    [
      'a path',
      { models: ['./models'] },
      /^models\[0\]: "\.\/models" is a string\. createVerso does not load/,
    ],
    [
      'a module',
      { models: [{ Task, Project }] },
      /^models\[0\]: this is an object of models: .*Object\.values/,
    ],
    ['an empty object', { models: [{}] }, /^models\[0\]: this is not a model, because it has neither a name/],
    ['a function', { models: [() => Task] }, /^models\[0\]: this is a function/],
    ['a number', { models: [7] }, /^models\[0\]: this is not a model/],
    ['one model', { models: Task }, /^models must be a list, such as models: \[Task\]/],
    ['no models', {}, /^models must be a list/],
    [
      'bare hooks',
      { models: MODELS, hooks: [{ validate: () => null }] },
      /^hooks\[0\]: list what defineHooks/,
    ],
    ['undefined hooks', { models: MODELS, hooks: [undefined] }, /^hooks\[0\]: it is undefined/],
    ['hooks without a list', { models: MODELS, hooks: taskRules }, /^hooks must be a list/],
    [
      'hooks of another model',
      { models: [Project], hooks: [taskRules] },
      /extends "embed\.Task".*not a model/,
    ],
    ['a path of routes', { models: MODELS, routes: ['./routes'] }, /^routes\[0\]: list functions/],
    ['not a schedule', { models: MODELS, schedules: [{ name: 'x' }] }, /schedules\[0\] is not a schedule/],
    ['a schedule without a list', { models: MODELS, schedules: 5 }, /^schedules must be a list/],
    ['a number as database', { models: MODELS, db: 5 }, /^db must be a string/],
    ['a setting of http', { models: MODELS, port: 80 }, /^port: .* write http: \{ port: … \}/],
    ['a setting', { models: MODELS, maxPageSize: 1 }, /^maxPageSize: .*write settings: \{ maxPageSize: … \}/],
    ['settings without an object', { models: MODELS, settings: 5 }, /^settings must be an object/],
    ['no options', undefined, /write createVerso/],
  ])('%s: is rejected with advice', async (_, options, message) => {
    const errors = await findErrors(options)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatch(message)
  })

  test('an extension of a misspelled model names the right one', async () => {
    const models = [...MODELS, extendModel({ name: 'embed.Tsak', fields: {} })]
    expect(await findErrors({ models })).toEqual([
      'models[2]: extends "embed.Tsak" (did you mean "embed.Task"?), which is not a model',
    ])
  })

  test('hooks that are null are reported with their place', async () => {
    const broken = extendModel({ name: 'embed.Task', hooks: null as never })
    expect(await findErrors({ models: MODELS, hooks: [broken] })).toEqual([
      expect.stringMatching(/^hooks\[0\]: embed\.Task: hooks/) as string,
    ])
  })

  test('undefined stands for the default', async () => {
    const verso = await open({ settings: { maxPageSize: undefined as never }, hooks: undefined })
    expect(await verso.system.of(Task).find({ limit: 5 })).toMatchObject({ total: 0 })
  })

  test('a wrong route stops the start', async () => {
    const routes: RoutePlugin = (fastify, _, done) => {
      fastify.get('/open', () => 'everybody')
      done()
    }
    await expect(createVerso({ db: 'sqlite::memory:', models: MODELS, routes })).rejects.toThrow(/access/)
  })
})

onEveryEngine((engine) => {
  test('extensions and hooks apply to an embedded service, each once', async () => {
    const location = await newLocation(engine)
    let saves = 0
    const counted = defineHooks(Task, {
      afterSave: () => {
        saves++
      },
    })
    const verso = await createVerso({
      db: location.url,
      models: [...MODELS, Task, priority, taskRules, counted],
      hooks: [taskRules, counted, counted],
    })
    const task = await verso.system.of('embed.Task').create({ title: 'shout', priority: 3 })
    expect(task).toMatchObject({ title: 'SHOUT', priority: 3 })
    expect(saves).toBe(1)
    const error = await catchError(verso.system.of(Task).create({ title: 'x' }))
    expect([error.kind, error.details.errors]).toEqual(['invalid', { title: 'must be longer' }])
    await verso.close()
    location.remove()
  })

  test('a service with work in the background closes, with a request on its way', async () => {
    const location = await newLocation(engine)
    const verso = await createVerso({
      db: location.url,
      models: MODELS,
      schedules: [every('1h', 'nothing', () => undefined)],
      http: { port: 0 },
    })
    await verso.listen()
    const answer = fetch(`${verso.url}/healthz`)
    await Promise.all([verso.close(), answer.catch(() => undefined)])
    await expect(verso.system.of(Task).find()).rejects.toThrow()
    location.remove()
  })
})

describe('the server', () => {
  test('listens once, on the URL that it returns', async () => {
    const verso = await open()
    expect(() => verso.url).toThrow('call await verso.listen() first')
    const [first, second] = await Promise.all([verso.listen(), verso.listen()])
    expect(second).toEqual(first)
    expect(verso.url).toBe(first[0])
    expect((await fetch(`${verso.url}/healthz`)).status).toBe(200)
  })

  test('listens after the port has become free', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const verso = await open({ http: { host: '127.0.0.1', port } })
    await expect(verso.listen()).rejects.toThrow(/EADDRINUSE/)
    expect(() => verso.url).toThrow('call await verso.listen() first')
    other.close()
    await once(other, 'close')
    expect(await verso.listen()).toEqual([`http://127.0.0.1:${port}`])
  })
})

describe('close', () => {
  test.each([
    ['right after the start', async () => undefined],
    ['while it starts to listen', async (verso: Verso) => void verso.listen().catch(() => undefined)],
    ['while it listens', async (verso: Verso) => verso.listen()],
    ['twice', async (verso: Verso) => void verso.close()],
  ])('ends the service %s', async (_, before) => {
    const verso = await open()
    await before(verso)
    const [url] = await verso.listen().catch(() => [])
    await Promise.all([verso.close(), verso.close()])
    await verso.close()
    if (url !== undefined) await expect(fetch(`${url}/healthz`)).rejects.toThrow()
    await expect(verso.listen()).rejects.toThrow('The service is closed')
    await expect(verso.system.of(Task).find()).rejects.toThrow()
  })

  test('runs at the end of a block', async () => {
    let left: Verso
    {
      await using verso = await open()
      left = verso
      expect((await verso.system.of(Task).find()).total).toBe(0)
    }
    await expect(left.listen()).rejects.toThrow('The service is closed')
  })
})
