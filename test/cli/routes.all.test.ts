// Routes and schedules of files: `--routes` for serve and dev, in a real process.
import path from 'node:path'
import { existsSync, rmSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { defineScript, DevProject, login, reload } from './dev-project.js'
import { cleanUpAfterwards, newDatabase, start, verso } from './program.js'

cleanUpAfterwards()

const TASK = `import { defineModel } from 'verso-records'
export const Task = defineModel({ name: 'dev.Task', fields: { title: { type: 'string', required: true } } })
export const state = { loaded: 0 }
state.loaded++
`

const reportScript = (text: string, more = '') => `import { defineRoutes, VersoError } from 'verso-records'
import { Task, state } from '../models/task.js'
import { heading } from '../shared/heading.js'
export const reports = defineRoutes(async (fastify) => {
  fastify.get('/report', { config: { access: 'public' } }, async (request) => {
    const { total } = await request.verso.records.asSystem().of(Task).find()
    return { heading, text: '${text}', total, loaded: state.loaded }
  })
  fastify.get('/refuse', { config: { access: 'public' } }, async () => { throw new VersoError('gone', 'Gone') })
  ${more}
})
`

function createProject(): DevProject {
  const project = new DevProject()
  project.write('shared/heading.ts', `export const heading = 'Report'\n`)
  project.write('models/task.ts', TASK)
  project.write('routes/reports.ts', reportScript('first'))
  return project
}

const flagsOf = (project: DevProject) => [
  ...['--models', project.models, '--routes', path.join(project.folder, 'routes')],
  ...['--db', newDatabase(), '--port', '0'],
]
const read = async (url: string, name = 'report'): Promise<unknown> =>
  (await fetch(`${url}/ext/${name}`)).json()

describe('verso serve --routes', () => {
  test('serves the routes of a folder, with the models that they import', async () => {
    const project = createProject()
    const served = await start(['serve', ...flagsOf(project)])
    expect(await read(served.url)).toEqual({ heading: 'Report', text: 'first', total: 0, loaded: 1 })
    expect(await read(served.url, 'refuse')).toMatchObject({ data: { kind: 'gone' } })
  })

  test('takes the variable VERSO_ROUTES, one file, its default export, and schedules beside routes', async () => {
    const project = createProject()
    const ticked = path.join(project.folder, 'ticked')
    const file = path.join(project.folder, 'more.mjs')
    project.write(
      'more.mjs',
      `import { writeFileSync } from 'node:fs'
import { every } from 'verso-records'
export default function callback(fastify, options, done) {
  fastify.get('/callback', { config: { access: 'public' } }, () => Promise.resolve({ called: true }))
  done()
}
export class Helper {}
export function help(fastify) { fastify.get('/help', async () => 'not a plugin') }
export const tick = every('1s', 'tick', async ({ records }) => {
  const { total } = await records.of('dev.Task').find()
  writeFileSync(${JSON.stringify(ticked)}, String(total))
})
`,
    )
    const flags = ['--models', project.models, '--db', newDatabase(), '--port', '0']
    const served = await start(['serve', ...flags], { VERSO_ROUTES: file })
    expect(await read(served.url, 'callback')).toEqual({ called: true })
    await expect.poll(() => existsSync(ticked), { timeout: 60_000 }).toBe(true)
  })

  test('lists all problems of the files', async () => {
    const project = createProject()
    project.write('routes/broken.ts', 'export const broken = (\n')
    project.write('routes/empty.ts', 'export const limit = 5\n')
    project.write('routes/unmarked.ts', 'export const unmarked = async (fastify) => undefined\n')
    project.write('routes/class.ts', 'export default class Routes {}\n')
    project.write('routes/lost.ts', `import { none } from './none.js'\nexport const lost = none\n`)
    project.write(
      'routes/late.ts',
      `import { every } from 'verso-records'\nexport const late = every('x', 'late', () => 1)\n`,
    )
    const { code, stderr } = await verso(['serve', ...flagsOf(project)])
    expect(code).toBe(1)
    const lines = stderr.split('\n')
    expect(lines[0]).toBe('The routes cannot be loaded:')
    expect(lines.find((line) => line.includes('broken.ts'))).toMatch(/broken\.ts: line \d+, column \d+: /)
    expect(stderr).toMatch(
      /empty\.ts: exports neither routes nor a schedule; write: export const reports = defineRoutes.*or: export default async/,
    )
    for (const name of ['unmarked', 'class'])
      expect(stderr).toContain(`${name}.ts: exports neither routes nor a schedule`)
    expect(stderr).toMatch(/lost\.ts: Cannot find module/)
    expect(stderr).toMatch(/late\.ts: .*late: the interval "x" must be/s)
  })

  test('refuses a path without routes', async () => {
    const project = createProject()
    project.write('notes.txt', 'no routes')
    project.write('none/readme.md', 'no routes')
    const run = async (name: string) => {
      const routes = ['--routes', path.join(project.folder, name)]
      return (await verso(['serve', '--models', project.models, ...routes, '--db', newDatabase()])).stderr
    }
    expect(await run('missing')).toContain('missing: the file or folder does not exist; check --routes')
    expect(await run('notes.txt')).toContain('must end in .ts, .mts, .js, .mjs')
    expect(await run('none')).toContain('none: the folder has no .ts, .mts, .js, .mjs file')
  })

  test('refuses a route without access', async () => {
    const project = createProject()
    project.write(
      'routes/open.ts',
      `export default async (fastify) => { fastify.get('/open', async () => 1) }\n`,
    )
    const { code, stderr } = await verso(['serve', ...flagsOf(project)])
    expect(code).toBe(1)
    expect(stderr).toContain(`GET /ext/open has no access: add config: { access: 'login' }`)
  })

  test('goes on after a promise that a route leaves behind', async () => {
    const project = createProject()
    const stray = `fastify.addHook('onRequest', async () => {
      void Promise.reject(new Error('left by a plugin'))
    })
    fastify.get('/stray', { config: { access: 'public' } }, async () => {
      void Promise.reject(new Error('left behind'))
      setTimeout(() => { throw new Error('thrown later') }, 1)
      return { answered: true }
    })`
    project.write('routes/reports.ts', reportScript('stray', stray))
    const served = await start(['serve', ...flagsOf(project)])
    expect(await read(served.url, 'stray')).toEqual({ answered: true })
    await expect.poll(() => served.log()).toContain('thrown later')
    expect(served.log()).toContain('left behind')
    expect(served.log()).toContain('left by a plugin')
    expect(served.log()).toContain('GET /ext/stray')
    expect(await read(served.url)).toMatchObject({ text: 'stray' })
  })
})

describe('verso dev --routes', () => {
  test('serves edits of routes, of the files that they import, and new files', async () => {
    const project = createProject()
    const dev = await start(['dev', ...flagsOf(project)])
    const client = await login(dev)
    await client.create('dev.Task', { title: 'one' })
    expect(await read(dev.url)).toMatchObject({ text: 'first', total: 1, loaded: 1 })

    const edited = await reload(dev, () => {
      project.replace('routes/reports.ts', reportScript('second'))
    })
    expect(edited.stdout).toMatch(/^changed: .*routes\/reports\.ts$/m)
    expect(await read(dev.url)).toMatchObject({ text: 'second', total: 1, loaded: 1 })

    await reload(dev, () => {
      project.replace('shared/heading.ts', `export const heading = 'Summary'\n`)
    })
    expect(await read(dev.url)).toMatchObject({ heading: 'Summary' })

    await reload(dev, () => {
      project.write(
        'routes/more.ts',
        `export default async (fastify) => { fastify.get('/more', { config: { access: 'public' } }, async () => ({ more: true })) }\n`,
      )
    })
    expect(await read(dev.url, 'more')).toEqual({ more: true })

    const broken = await reload(dev, () => {
      project.replace('routes/reports.ts', reportScript('third', `fastify.get('/open', async () => 1)`))
    })
    expect(broken.isReloaded).toBe(false)
    expect(broken.stderr).toContain('GET /ext/open has no access')
    expect(await read(dev.url)).toMatchObject({ text: 'second' })

    const repaired = await reload(dev, () => {
      project.replace('routes/reports.ts', reportScript('fourth'))
      rmSync(path.join(project.folder, 'routes/more.ts'))
      project.write('models/note.ts', defineScript('dev.Note', `text: { type: 'string' }`))
    })
    expect(repaired.isReloaded).toBe(true)
    expect(await read(dev.url)).toMatchObject({ text: 'fourth', total: 1 })
    expect((await fetch(`${dev.url}/ext/more`)).status).toBe(404)
    expect((await client.find('dev.Note', {})).total).toBe(0)
  })
})
