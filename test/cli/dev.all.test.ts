// `verso dev` as a developer uses it: a real process, and real edits of files.
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createMutantProgram, WITH_STALE_MODULES } from '../mutants/program.js'
import { ENGINES, newLocation, type Engine } from '../targets.js'
import { defineScript, DevProject, Follower, login, reload, Writer, type DevProcess } from './dev-project.js'
import { cleanUpAfterwards, MAIN, scratch, start, verso } from './program.js'

cleanUpAfterwards()

const TASK_FIELDS = `title: { type: 'string' }, state: { type: 'enum', selection: STATES }`
const IMPORT = `import { STATES } from '../shared/states.js'`
const TASK = defineScript('dev.Task', TASK_FIELDS, IMPORT)
/** SQLite keeps some descriptors of closed connections and uses them again. Few are added after about 15 reloads. */
const RELOADS_TO_COMPARE = { sqlite: [10, 25], postgres: [3, 8] } as const
const RELOADS_PER_COLLECTION = 3
/** Connections to an SQLite file: one reads, one writes. */
const CONNECTIONS = { sqlite: 2, postgres: 0 } as const

async function startDev(engine: Engine, project: DevProject, main = MAIN) {
  const location = await newLocation(engine)
  onTestFinished(() => {
    location.remove()
  })
  const flags = ['--models', project.models, '--db', location.url, '--port', '0']
  const resources = fileURLToPath(new URL('report-resources.mjs', import.meta.url))
  const dev = await start(['dev', ...flags], { NODE_OPTIONS: `--import ${resources}` }, [], main)
  return { dev, db: location.url }
}

/** Two models in three files, one of which lies beside the folder. */
function createProject(): DevProject {
  const project = new DevProject()
  project.write('shared/states.ts', `export const STATES = ['open', 'done']\n`)
  project.write('models/task.ts', TASK)
  project.write('models/note.ts', defineScript('dev.Note', `text: { type: 'string' }`))
  return project
}

/** Returns the new value of the enumeration that an edit of the imported file adds, if it is served. */
async function editImport(project: DevProject, dev: DevProcess): Promise<string | undefined> {
  await reload(dev, () => {
    project.replace('shared/states.ts', `export const STATES = ['open', 'doing', 'done']\n`)
  })
  const client = await login(dev)
  const { status } = await client.request('PUT', '/ws/rest/dev.Task', { data: { state: 'doing' } })
  return status === 200 ? 'doing' : undefined
}

describe.for(ENGINES)('verso dev on %s', (engine) => {
  test('edits are served at the same address; sessions, data, writers and followers go on', async () => {
    const project = createProject()
    const { dev, db } = await startDev(engine, project)
    const client = await login(dev)
    const [writer, follower] = [new Writer(client, 'dev.Note'), new Follower(client, 'dev.Note')]
    const { data: task } = await client.create('dev.Task', { title: 'first', state: 'open' })

    expect(await editImport(project, dev)).toBe('doing')

    const added = await reload(dev, () => {
      const fields = `${TASK_FIELDS}, due: { type: 'date' }`
      project.replace('models/task.ts', defineScript('dev.Task', fields, IMPORT))
    })
    expect(added.stdout).toMatch(/^changed: .*models\/task\.ts$/m)
    expect(added.stdout).toContain('  + dev.Task.due: new column (date)\n')
    expect(added.isReloaded).toBe(true)
    const due = await client.update('dev.Task', task.id, { version: task.version, due: '2030-01-02' })
    expect(due.data).toMatchObject({ title: 'first', due: '2030-01-02' })

    const other = await reload(dev, () => {
      project.write('models/more/tag.json', '{"name":"dev.Tag","fields":{"code":{"type":"string"}}}')
      project.write(
        'models/person.xml',
        '<domain-models><module name="dev" package="dev"/><entity name="Person"><string name="name"/></entity></domain-models>',
      )
    })
    expect(other.stdout).toContain('  + dev.Tag: new table\n')
    expect(other.stdout).toContain('  + dev.Person: new table\n')

    const broken = await reload(dev, () => {
      project.write('models/note.ts', 'export const Note = defineModel({\n')
      project.write('models/more/tag.json', '{"name":"dev.Tag","fields":{"code":{"type":"sting"}}}')
    })
    expect(broken.isReloaded).toBe(false)
    const atStart = await verso(['serve', '--models', project.models, '--db', db])
    expect(atStart.code).toBe(1)
    expect(broken.stderr).toContain(atStart.stderr)
    expect((await client.find('dev.Tag', {})).total).toBe(0)

    const removed = await reload(dev, () => {
      rmSync(path.join(project.models, 'more'), { recursive: true })
      project.write('models/note.ts', defineScript('dev.Note', `text: { type: 'string', title: 'Text' }`))
    })
    expect(removed.isReloaded).toBe(true)
    expect((await client.request('GET', '/ws/rest/dev.Tag')).status).toBe(404)

    await writer.stop()
    const { data: notes } = await client.find('dev.Note', { limit: 1000, fields: ['id'], sortBy: ['id'] })
    expect(notes.map(({ id }) => id)).toEqual(writer.created.slice(0, 1000))
    await expect.poll(() => follower.seen.length, { timeout: 60_000 }).toBe(writer.created.length)
    await follower.stop()
    expect(follower.seen).toEqual(writer.created)
    expect(follower.streams).toBeGreaterThan(3)

    dev.child.kill('SIGINT')
    expect(await dev.ended()).toBe(0)
  })

  test('an edit that would lose data is refused until the data is dropped; then it is served by itself', async () => {
    const project = createProject()
    const { dev, db } = await startDev(engine, project)
    const client = await login(dev)
    await client.create('dev.Note', { text: 'kept' })
    const withoutText = () => {
      project.replace('models/note.ts', defineScript('dev.Note', `title: { type: 'string' }`))
    }
    const refused = await reload(dev, withoutText)
    expect(refused.isReloaded).toBe(false)
    const flags = ['--models', project.models, '--db', db]
    const preview = await verso(['schema', ...flags])
    expect(preview.stderr).toContain('verso schema --apply --drop dev.Note.text')
    // The command in the message of dev is complete, except for a password.
    const [, printed = ''] = /verso (schema --apply --drop .*)\n/.exec(refused.stderr) ?? []
    const drop = printed.split(' ').slice(0, 6)
    expect(printed.split(' ').slice(6).join(' ')).toBe(
      engine === 'sqlite' ? `--db ${db}` : '(with the same --db)',
    )
    expect((await client.find('dev.Note', { fields: ['text'] })).data).toMatchObject([{ text: 'kept' }])

    const dropped = await reload(dev, async () =>
      verso(engine === 'sqlite' ? printed.split(' ') : [...drop, '--db', db]),
    )
    expect(dropped.isReloaded).toBe(true)
    const { data: note } = await client.create('dev.Note', { title: 'new' })
    expect(note).toMatchObject({ title: 'new' })

    // A column without values may change its type. Statements that were prepared for the other type are not used again.
    const retyped = await reload(dev, () => {
      project.replace(
        'models/note.ts',
        defineScript('dev.Note', `title: { type: 'string' }, size: { type: 'string' }`),
      )
    })
    await client.find('dev.Note', { fields: ['size'] })
    expect(retyped.isReloaded).toBe(true)
    await reload(dev, () => {
      project.replace(
        'models/note.ts',
        defineScript('dev.Note', `title: { type: 'string' }, size: { type: 'integer' }`),
      )
    })
    await client.update('dev.Note', note.id, { version: note.version, size: 7 })
    expect((await client.find('dev.Note', { fields: ['size'], sortBy: ['-id'] })).data[0]).toMatchObject({
      size: 7,
    })
  })

  test('many reloads leave no file, timer, listener, connection or memory behind', async () => {
    const project = createProject()
    const { dev } = await startDev(engine, project)
    const client = await login(dev)
    const reports: ResourceReport[] = []
    let count = 0
    for (const target of RELOADS_TO_COMPARE[engine]) {
      for (; count < target; count++) {
        const { isReloaded } = await reload(dev, () => {
          project.replace(
            'models/note.ts',
            defineScript('dev.Note', `text: { type: 'string', title: '${count}' }`),
          )
        })
        expect(isReloaded).toBe(true)
        await client.find('dev.Note', {})
        // Former connections close when their statements are collected. SQLite keeps their descriptors for the next ones, so the number of
        // descriptors depends on how many reloads are between two collections.
        if (count % RELOADS_PER_COLLECTION === 0) await reportResources(dev)
      }
      await expect
        .poll(async () => (await reportResources(dev)).connections, { timeout: 60_000 })
        .toBe(CONNECTIONS[engine])
      reports.push(await reportResources(dev))
    }
    const [few, many] = reports
    expect(many?.resources).toEqual(few?.resources)
    expect(many?.listeners).toBe(few?.listeners)
    const [first, last] = RELOADS_TO_COMPARE[engine]
    expect((many?.files ?? Infinity) - (few?.files ?? 0)).toBeLessThan((last - first) / 3)
    expect(many?.heapBytes).toBeLessThan((few?.heapBytes ?? 0) * 1.5)
    expect(dev.log()).not.toContain('MaxListenersExceededWarning')
  })
})

interface ResourceReport {
  readonly files: number
  readonly connections: number
  readonly resources: Readonly<Record<string, number>>
  readonly listeners: number
  readonly heapBytes: number
}

async function reportResources(dev: DevProcess): Promise<ResourceReport> {
  const before = dev.log().length
  // Former models are closed after their last request is answered.
  await new Promise((resolve) => setTimeout(resolve, 500))
  dev.child.kill('SIGUSR2')
  for (;;) {
    const line = /^resources (.*)$/m.exec(dev.log().slice(before))?.[1]
    if (line !== undefined) return JSON.parse(line) as ResourceReport
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

test('the mutant that keeps the modules of the former load is caught', async () => {
  const parent = mkdtempSync(path.join(scratch, 'mutant-'))
  const main = path.join(createMutantProgram(parent, WITH_STALE_MODULES), 'cli/main.js')
  const project = createProject()
  const { dev } = await startDev('sqlite', project, main)
  expect(await editImport(project, dev)).toBeUndefined()
})

test('after init, dev works without any flag, and prints commands that work when pasted', async () => {
  const missing = await verso(['dev'])
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('verso init')])
  expect((await verso(['init'])).stdout).toContain('next: verso dev\n')
  const dev = await start(['dev', '--port', '0'])
  const commands = dev.stdout.match(/^ *curl(?:.*\\\n)*.*$/gm) ?? []
  const outputs: unknown[] = []
  for (const command of commands) {
    const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: scratch })
    outputs.push(JSON.parse(stdout))
  }
  expect(outputs).toEqual([
    { status: 0, data: [expect.objectContaining({ username: 'admin' })] },
    expect.objectContaining({ status: 0, total: 0 }),
  ])
  expect(existsSync(path.join(scratch, 'data/verso.db'))).toBe(true)
  dev.child.kill('SIGTERM')
  expect(await dev.ended()).toBe(0)

  const open = await verso(['dev', '--port', '0', '--host', '0.0.0.0'])
  expect([open.code, open.stderr]).toEqual([1, expect.stringContaining('password of the demo')])
})

test('dev for other computers creates no account with a public password', async () => {
  const project = createProject()
  const flags = ['--models', project.models, '--db', 'sqlite::memory:', '--port', '0', '--host', '0.0.0.0']
  const dev = await start(['dev', ...flags])
  const body = JSON.stringify({ username: 'admin', password: 'admin' })
  const url = `http://127.0.0.1:${new URL(dev.url).port}/callback`
  expect((await fetch(url, { method: 'POST', body })).status).toBe(401)
  expect(dev.stdout).toContain('/setup?token=')
})

test('a database in memory keeps its data, and the target of a symbolic link is watched', async () => {
  const project = createProject()
  project.write('elsewhere/tag.json', '{"name":"dev.Tag","fields":{"code":{"type":"string"}}}')
  symlinkSync(path.join(project.folder, 'elsewhere/tag.json'), path.join(project.models, 'tag.json'))
  const dev = await start(['dev', '--models', project.models, '--db', 'sqlite::memory:', '--port', '0'])
  const client = await login(dev)
  await client.create('dev.Tag', { code: 'a' })
  const { stdout } = await reload(dev, () => {
    project.write(
      'elsewhere/tag.json',
      '{"name":"dev.Tag","fields":{"code":{"type":"string"},"label":{"type":"string"}}}',
    )
  })
  expect(stdout).toContain('  + dev.Tag.label: new column (string)\n')
  expect((await client.find('dev.Tag', { fields: ['code'] })).data).toMatchObject([{ code: 'a' }])
})

test('an import that is written while it is loaded is loaded again', async () => {
  const project = createProject()
  const states = path.join(project.folder, 'shared/states.ts')
  // Imports are evaluated before the file that imports them, so this edit comes after the first evaluation.
  const edit = `import { writeFileSync } from 'node:fs'
if (!STATES.includes('doing')) writeFileSync(${JSON.stringify(states)}, "export const STATES = ['open', 'doing', 'done']")`
  project.write('models/task.ts', defineScript('dev.Task', TASK_FIELDS, `${IMPORT}\n${edit}`))
  const { dev } = await startDev('sqlite', project)
  await expect
    .poll(() => dev.output(), { timeout: 60_000 })
    .toMatch(/^changed: .*states\.ts\n.*\nreloaded in /ms)
  const client = await login(dev)
  expect((await client.create('dev.Task', { state: 'doing' })).data).toMatchObject({ state: 'doing' })
})

test('a model file that never finishes is given up, and the next edit is served', async () => {
  const project = createProject()
  const { dev } = await startDev('sqlite', project)
  const script = defineScript('dev.Note', `text: { type: 'string' }`)
  const endless = await reload(dev, () => {
    project.replace('models/note.ts', `${script}\nawait new Promise(() => undefined)\n`)
  })
  expect([endless.isReloaded, endless.stderr]).toEqual([
    false,
    expect.stringContaining('a model file does not finish: it still runs after 10 seconds'),
  ])
  const mended = await reload(dev, () => {
    project.replace(
      'models/note.ts',
      defineScript('dev.Note', `text: { type: 'string' }, size: { type: 'integer' }`),
    )
  })
  expect(mended.isReloaded).toBe(true)
  dev.child.kill('SIGINT')
  expect(await dev.ended()).toBe(0)
})

test('a process that is killed during a reload starts again with all of its data', async () => {
  const project = createProject()
  const location = await newLocation('sqlite')
  onTestFinished(() => {
    location.remove()
  })
  const flags = ['--models', project.models, '--db', location.url]
  const titles: string[] = []
  const startAgain = async () => {
    const dev = await start(['dev', ...flags, '--port', '0'])
    const client = await login(dev)
    const { data } = await client.find('dev.Task', { fields: ['title'], sortBy: ['id'] })
    expect(data.map(({ title }) => title)).toEqual(titles)
    return { dev, client }
  }
  let fields = TASK_FIELDS
  for (const [round, delayMs] of [0, 60, 200].entries()) {
    const { dev, client } = await startAgain()
    titles.push(`round ${round}`)
    await client.create('dev.Task', { title: `round ${round}` })
    fields += `, field${round}: { type: 'string', default: 'x' }`
    project.replace('models/task.ts', defineScript('dev.Task', fields, IMPORT))
    await expect.poll(() => dev.output(), { timeout: 60_000, interval: 5 }).toContain('\nchanged: ')
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    dev.child.kill('SIGKILL')
    await dev.ended()
  }
  const { dev } = await startAgain()
  dev.child.kill('SIGINT')
  expect(await dev.ended()).toBe(0)
  expect((await verso(['verify', ...flags])).code).toBe(0)
})
