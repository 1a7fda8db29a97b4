// Hooks after the commit in processes of their own: they survive kills, and three nodes run each change once.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { startServerProcess, type ServerProcess } from '../faults/server-process.js'
import { HttpClient } from '../http-client.js'
import { newLocation, onEveryEngine, PASSWORD, USERNAME } from '../targets.js'
import { scratch, cleanUpAfterwards, newDatabase, start } from '../cli/program.js'
import { MARKED } from './marking-models.js'

cleanUpAfterwards()

const MODELS = fileURLToPath(new URL('marking-models.ts', import.meta.url))
const PATIENTLY = { timeout: 60_000, interval: 100 }

interface Mark {
  readonly seq: number
  readonly id: number
  readonly version: number
  readonly title: string
  readonly node: number
}

const running: ServerProcess[] = []
afterEach(async () => {
  for (const node of running.splice(0)) await node.kill()
})

let files = 0
const newMarks = () => {
  const file = path.join(scratch, `marks-${++files}`)
  writeFileSync(file, '')
  return file
}

const readMarks = (file: string): Mark[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Mark)

async function startNode(db: string, marks: string, more: { HOLD?: string } = {}): Promise<ServerProcess> {
  const options = { MODELS, BACKGROUND: 'on', MARKS: marks, ...more }
  const node = await startServerProcess(db, undefined, undefined, options)
  running.push(node)
  return node
}

onEveryEngine((engine) => {
  test('a change whose node is killed before its hook has run, runs after the restart', async () => {
    const location = await newLocation(engine)
    const marks = newMarks()
    const held = await startNode(location.url, marks, { HOLD: 'on' })
    const client = await HttpClient.login(held.url, USERNAME, PASSWORD)
    const { data } = await client.create(MARKED, { title: 'first' })
    await client.update(MARKED, data.id, { version: 0, title: 'second' })
    await held.kill()
    expect(readMarks(marks)).toEqual([])
    const next = await startNode(location.url, marks)
    await expect
      .poll(() => readMarks(marks).map(({ title }) => title), PATIENTLY)
      .toEqual(['first', 'second'])
    const again = await HttpClient.login(next.url, USERNAME, PASSWORD)
    await again.update(MARKED, data.id, { version: 1, title: 'third' })
    await expect.poll(() => readMarks(marks).map(({ version }) => version), PATIENTLY).toEqual([0, 1, 2])
    await next.kill()
    location.remove()
  })

  test('changes run at least once and in order for each record while nodes are killed', async () => {
    const location = await newLocation(engine)
    const marks = newMarks()
    const ids: number[] = []
    for (let round = 0; round < 3; round++) {
      const node = await startNode(location.url, marks)
      const client = await HttpClient.login(node.url, USERNAME, PASSWORD)
      for (let i = 0; i < 10; i++) {
        const { data } = await client.create(MARKED, { title: 'a' })
        await client.update(MARKED, data.id, { version: 0, title: 'b' })
        ids.push(data.id)
      }
      await node.kill()
    }
    await startNode(location.url, marks)
    const firstSeen = (id: number) => [
      ...new Set(readMarks(marks).flatMap((mark) => (mark.id === id ? mark.version : []))),
    ]
    for (const id of ids) await expect.poll(() => firstSeen(id), PATIENTLY).toEqual([0, 1])
  })
})

test('three nodes run each change once', async () => {
  const location = await newLocation('postgres')
  const marks = newMarks()
  const nodes = [await startNode(location.url, marks)]
  for (let i = 0; i < 2; i++) nodes.push(await startNode(location.url, marks))
  const clients = await Promise.all(nodes.map(({ url }) => HttpClient.login(url, USERNAME, PASSWORD)))
  const write = async (client: HttpClient) => {
    for (let i = 0; i < 40; i++) {
      const { data } = await client.create(MARKED, { title: 'a' })
      await client.update(MARKED, data.id, { version: 0, title: 'b' })
    }
  }
  await Promise.all(clients.map(write))
  await expect.poll(() => readMarks(marks).length, PATIENTLY).toBe(240)
  const found = readMarks(marks)
  expect(new Set(found.map(({ seq }) => seq)).size).toBe(240)
  expect(new Set(found.map(({ node }) => node)).size).toBe(1)
  for (const id of new Set(found.map((mark) => mark.id)))
    expect(found.filter((mark) => mark.id === id).map(({ version }) => version)).toEqual([0, 1])
})

test('no error of a hook ends the server: thrown, rejected, left behind, or thrown by a timer', async () => {
  const file = path.join(scratch, 'stray.ts')
  writeFileSync(
    file,
    `import { defineModel } from 'verso-records'
    export const Task = defineModel({
      name: 'stray.Task',
      fields: { title: { type: 'string' } },
      hooks: {
        afterCommit: {
          thrown: () => { throw new Error('thrown') },
          rejected: async () => { throw 'rejected' },
          left: () => { void Promise.reject(new Error('left behind')) },
          timed: () => { setTimeout(() => { throw new Error('by a timer') }, 1) },
        },
      },
    })`,
  )
  const variables = { VERSO_ADMIN_PASSWORD: PASSWORD, VERSO_LOG_FORMAT: 'json' }
  const args = ['serve', '--models', file, '--db', newDatabase(), '--port', '0']
  const { url, log } = await start(args, variables)
  const client = await HttpClient.login(url, 'admin', PASSWORD)
  const { data } = await client.create('stray.Task', { title: 'x' })
  const lines = () =>
    log()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  for (const [hook, reason] of [
    ['thrown', 'thrown'],
    ['rejected', 'rejected'],
    ['left', 'left behind'],
    ['timed', 'by a timer'],
  ])
    await expect
      .poll(() => lines().find((line) => line['reason'] === reason), PATIENTLY)
      .toMatchObject({ level: 50, hook: `stray.Task/${hook}`, model: 'stray.Task', record: data.id })
  expect((await client.read('stray.Task', data.id))['title']).toBe('x')
})
