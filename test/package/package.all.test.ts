// The npm package as users get it: packed, installed into an empty project on each supported version of Node, and run.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { listPageFiles } from '../../scripts/api-reference.mjs'
import { cleanUpAfterwards, scratch } from '../cli/program.js'
import { findInstalledProject, findTarball, installPackage, NPM } from './installed.js'

cleanUpAfterwards()
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

interface Manifest {
  readonly name: string
  readonly bin: Readonly<Record<string, string>>
  readonly keywords: readonly string[]
  readonly [field: string]: unknown
}

const ROOT = path.join(import.meta.dirname, '../..')
const BUNDLED = ['@photostructure/sqlite', 'node-gyp-build']
const SUPPORTED = ['20', '22', '24']

/** A program that uses the installed client against a running service. */
const CLIENT_PROGRAM = `import { connect, ConflictError } from 'verso-records/client'
const verso = connect(process.argv[2], { username: 'admin', password: 'red kite over hills' })
const tasks = verso.model('todo.Task')
await tasks.update(1, ({ subject }) => ({ description: subject }))
const { data: [task] } = await tasks.find({ fields: ['description'] })
const outdated = await tasks.update(1, { version: 0, description: 'other' }).catch((error) => error)
console.log(\`\${task.description}, version \${task.version}, \${outdated instanceof ConflictError ? 'ConflictError' : outdated}\`)
`

/** A program for a browser, with the types that `verso types` has written. It has no types of Node. */
const BROWSER_PROGRAM = `import { connect, RequestError } from 'verso-records/client'
import type { Models } from './types.mjs'

const tasks = connect<Models>('http://localhost', { key: 'a key' }).model('todo.Task')
export async function rename(id: number, element: HTMLElement): Promise<string | null> {
  try {
    const { data } = await tasks.find({ fields: ['subject'], filter: { state: 'open' } })
    element.textContent = data[0]?.subject ?? null
    const task = await tasks.update(id, ({ subject }) => ({ subject: subject + '!' }))
    return task.subject
  } catch (error) {
    if (error instanceof RequestError) return error.kind
    throw error
  }
}
// @ts-expect-error There is no such field.
await tasks.find({ fields: ['subjct'] })
`

/** The types of definitions come with the types of the whole service, which needs those of Node or skipLibCheck. */
const MODELS_PROGRAM = `import { connect } from 'verso-records/client'
import { defineModel } from 'verso-records'

const Task = defineModel({ name: 'crm.Task', fields: { subject: { type: 'string', required: true } } })
const models = { Task }
const verso = connect<typeof models>('http://localhost')
export const subject: string = (await verso.model('crm.Task').read(1)).subject
// @ts-expect-error There is no such model.
verso.model('crm.Tusk')
`

/** The web application: its page, the licences of its packages, and compressed files with a hash in their names. */
const APPLICATION_FILE =
  /^package\/dist\/admin\/(index\.html|licences\.txt|assets\/[\w.-]+-[\w-]{8}\.(css|js|svg)\.br)$/

const STRICT_OPTIONS = {
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  noEmit: true,
  target: 'es2023',
  lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
  types: [],
}

let tarball = ''
beforeAll(async () => {
  tarball = await findTarball()
})

/** Installs a version of Node from npm; returns the path of its program. */
function installNode(version: string): string {
  if (process.versions.node.startsWith(`${version}.`)) return process.execPath
  const folder = mkdtempSync(path.join(scratch, `node-${version}-`))
  writeFileSync(path.join(folder, 'package.json'), '{"private":true}')
  const name = `node-${process.platform}-${process.arch}`
  execFileSync(process.execPath, [NPM, 'install', '--no-audit', '--no-fund', `${name}@${version}`], {
    cwd: folder,
    stdio: 'ignore',
  })
  return path.join(folder, 'node_modules', name, 'bin/node')
}

describe('contents', () => {
  const list = () => execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n')
  const read = (file: string) =>
    execFileSync('tar', ['-xzOf', tarball, `package/${file}`], { encoding: 'utf8' })

  test('package.json has the name, the program and keywords, and nothing for npm to run or review', () => {
    const manifest = JSON.parse(read('package.json')) as Manifest
    expect(manifest).toMatchObject({
      name: 'verso-records',
      bin: { verso: 'dist/cli/main.js' },
      license: 'MIT',
      peerDependencies: { 'ra-core': expect.any(String) },
      peerDependenciesMeta: { 'ra-core': { optional: true } },
    })
    expect(manifest.keywords).toEqual(
      expect.arrayContaining(['optimistic-concurrency', 'audit-log', 'rest-api']),
    )
    for (const field of ['scripts', 'devDependencies', 'overrides', 'allowScripts', 'private'])
      expect(manifest[field], field).toBeUndefined()
    for (const name of BUNDLED) {
      const bundled = JSON.parse(read(`node_modules/${name}/package.json`)) as Manifest
      for (const field of ['scripts', 'gypfile']) expect(bundled[field], `${name} ${field}`).toBeUndefined()
    }
  })

  test('no file is a source map or points to one, and no compiler input is included', () => {
    const files = list()
    expect(files.filter((file) => /\.map$|binding\.gyp$|\/src\//.test(file))).toEqual([])
    const folder = mkdtempSync(path.join(scratch, 'contents-'))
    execFileSync('tar', ['-xzf', tarball, '-C', folder])
    const code = files.filter((file) => /\.[cm]?js$/.test(file))
    for (const place of ['dist', ...BUNDLED.map((name) => `node_modules/${name}`)])
      expect(code.filter((file) => file.startsWith(`package/${place}/`)).length, place).toBeGreaterThan(0)
    const withMap = code.filter((file) =>
      readFileSync(path.join(folder, file), 'utf8').includes('sourceMappingURL'),
    )
    expect(withMap).toEqual([])
  })

  test('every entry of exports has its code and its types in the package', () => {
    const { exports } = JSON.parse(read('package.json')) as {
      exports: Record<string, Record<string, string>>
    }
    expect(Object.keys(exports)).toEqual(['.', './client', './react-admin'])
    const named = Object.values(exports).flatMap((entry) => Object.values(entry))
    expect(named).toHaveLength(6)
    expect(list()).toEqual(expect.arrayContaining(named.map((file) => `package/${file.slice(2)}`)))
  })

  test('documentation is included, and the licence of each bundled package', () => {
    const files = ['README.md', 'LICENSE', 'docs/README.md']
    const licences = BUNDLED.map((name) => `node_modules/${name}/LICENSE`)
    expect(list()).toEqual(expect.arrayContaining([...files, ...licences].map((file) => `package/${file}`)))
  })

  test('dist has the output of each source file and the files of the pages, and no other file', () => {
    const sources = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    const compiled = sources
      .filter((file) => file.endsWith('.ts'))
      .map((file) => file.replaceAll(path.sep, '/').slice(0, -'.ts'.length))
      .flatMap((file) => [`package/dist/${file}.js`, `package/dist/${file}.d.ts`])
    const page = listPageFiles().map((name) => `package/dist/http/docs/page/${name}`)
    const swaggerUi = [
      'LICENSE',
      'NOTICE',
      'swagger-ui-bundle.js.LICENSE.txt',
      'swagger-ui-bundle.js.br',
      'swagger-ui.css.br',
    ].map((name) => `package/dist/http/docs/swagger-ui/${name}`)
    expect(
      list()
        .filter((file) => file.startsWith('package/dist/'))
        .filter((file) => !APPLICATION_FILE.test(file))
        .sort(),
    ).toEqual([...compiled, ...page, ...swaggerUi].sort())
    const application = list().filter((file) => file.startsWith('package/dist/admin/'))
    for (const name of ['index.html', 'licences.txt'])
      expect(application).toContain(`package/dist/admin/${name}`)
    expect(application.some((file) => file.endsWith('.js.br'))).toBe(true)
  })
})

describe.for(SUPPORTED)('on Node %s', (version) => {
  test('the package installs without a warning, serves records, and is a library with types', async () => {
    const node = installNode(version)
    const folder = mkdtempSync(path.join(scratch, 'project-'))
    const { PATH, printed, status } = installPackage(folder, tarball, node)
    expect(printed).not.toMatch(/warn|EBADENGINE|script/i)
    expect(status).toBe(0)

    const program = path.join(folder, 'node_modules/.bin/verso')
    const run = (...args: string[]) =>
      spawnSync(node, [realpathSync(program), ...args], { cwd: folder, env: { PATH }, encoding: 'utf8' })
    expect(run('--version').stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    expect(run('init').status).toBe(0)

    const server = spawn(node, [realpathSync(program), 'serve', '--models', 'models', '--port', '0'], {
      cwd: folder,
      env: { PATH, VERSO_ADMIN_PASSWORD: 'red kite over hills' },
    })
    let [stdout, stderr] = ['', '']
    server.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    server.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    try {
      await expect.poll(() => stdout, { timeout: 60_000 }).toMatch(/^listening on /m)
      const url = /^listening on (\S+)$/m.exec(stdout)?.[1] ?? ''
      const body = JSON.stringify({ username: 'admin', password: 'red kite over hills' })
      const login = await fetch(`${url}/callback`, { method: 'POST', body })
      const cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? ''
      const created = await fetch(`${url}/ws/rest/todo.Task`, {
        method: 'PUT',
        headers: { cookie, 'content-type': 'application/json' },
        body: JSON.stringify({ data: { subject: 'Install it' } }),
      })
      expect(await created.json()).toMatchObject({
        status: 0,
        data: [{ id: 1, version: 0, subject: 'Install it' }],
      })
      writeFileSync(path.join(folder, 'client.mjs'), CLIENT_PROGRAM)
      const client = spawn(node, ['client.mjs', url], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
      let printedByClient = ''
      client.stdout.on('data', (chunk: Buffer) => (printedByClient += chunk.toString()))
      await once(client, 'close')
      expect(printedByClient).toBe('Install it, version 1, ConflictError\n')
      const start = await fetch(url, { headers: { accept: 'text/html' } })
      const [file = ''] = /\/assets\/[^"]*\.js/.exec(await start.text()) ?? []
      const code = await fetch(new URL(file, url))
      expect([code.status, code.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
      const [script = ''] = /[^"]*page\.mjs/.exec(await (await fetch(`${url}/docs`)).text()) ?? []
      const library = await fetch(new URL(script.replace('page.mjs', 'swagger-ui-bundle.js'), url))
      expect([library.status, (await library.text()).includes('SwaggerUIBundle')]).toEqual([200, true])
    } finally {
      server.kill('SIGTERM')
      await once(server, 'exit')
    }
    // Warnings of Node, such as those about experimental features, go to stderr beside the log.
    expect(stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))).toEqual([])

    writeFileSync(
      path.join(folder, 'library.mjs'),
      `import { createVerso } from 'verso-records'
const verso = await createVerso({ db: 'sqlite::memory:', models: [] })
console.log((await verso.system.find('verso.auth.User')).total)
await verso.close()
`,
    )
    expect(spawnSync(node, ['library.mjs'], { cwd: folder, encoding: 'utf8' })).toMatchObject({
      stdout: '0\n',
      stderr: '',
    })
  })
})

describe('an installed package', () => {
  let folder = ''
  beforeAll(async () => {
    folder = mkdtempSync(path.join(scratch, 'project-'))
    cpSync(await findInstalledProject(), folder, { recursive: true, verbatimSymlinks: true })
  })

  test('TypeScript compiles a program that uses the installed types, without skipLibCheck', () => {
    writeFileSync(
      path.join(folder, 'task.mts'),
      `import { createTestVerso, createVerso, defineHooks, defineModel, type InputOf, type RoutePlugin } from 'verso-records'
export const Task = defineModel({ name: 'crm.Task', fields: { subject: { type: 'string', required: true } } })
export const task: InputOf<typeof Task> = { subject: 'typed' }
const rules = defineHooks(Task, { validate: ({ after }) => ({ subject: after.subject === 'x' ? 'is short' : undefined }) })
const routes: RoutePlugin = async (fastify) => {
  fastify.get('/tasks', { config: { access: 'login' } }, async ({ verso }) => verso.records.of(Task).find())
}
export const verso = await createVerso({ models: [Task], hooks: [rules], routes })
export const { subject }: { subject: string } = await verso.system.of(Task).create({ subject: 'typed' })
await using test = await createTestVerso({ models: [Task] })
export const found: string = (await test.my.of(Task).read(1)).subject
`,
    )
    const flags = [
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--strict',
      '--noEmit',
      '--typeRoots',
      path.join(ROOT, 'node_modules/@types'),
      '--types',
      'node',
    ]
    const compiler = path.join(ROOT, 'node_modules/@typescript/native/bin/tsc')
    const { stdout, status } = spawnSync(process.execPath, [compiler, ...flags, 'task.mts'], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(stdout).toBe('')
    expect(status).toBe(0)
  })

  test('TypeScript compiles strict browser programs with the client, with both kinds of module resolution', () => {
    const program = realpathSync(path.join(folder, 'node_modules/.bin/verso'))
    for (const args of [['init'], ['types', '--models', 'models', '--out', 'types.mts']])
      execFileSync(process.execPath, [program, ...args], { cwd: folder })
    writeFileSync(path.join(folder, 'browser.mts'), BROWSER_PROGRAM)
    writeFileSync(path.join(folder, 'models.mts'), MODELS_PROGRAM)
    const resolutions = [
      { moduleResolution: 'nodenext', module: 'nodenext' },
      { moduleResolution: 'bundler', module: 'esnext' },
    ]
    for (const resolution of resolutions)
      for (const [file, skipLibCheck] of Object.entries({ 'browser.mts': false, 'models.mts': true })) {
        const compilerOptions = { ...STRICT_OPTIONS, ...resolution, skipLibCheck }
        const config = path.join(folder, `tsconfig.${resolution.moduleResolution}.${file}.json`)
        writeFileSync(config, JSON.stringify({ compilerOptions, files: [file] }))
        const compiler = path.join(ROOT, 'node_modules/@typescript/native/bin/tsc')
        const { stdout } = spawnSync(process.execPath, [compiler, '-p', config], {
          cwd: folder,
          encoding: 'utf8',
        })
        expect([path.basename(config), stdout]).toEqual([path.basename(config), ''])
      }
  })

  test('the client and the data provider for react-admin load without ra-core', () => {
    expect(existsSync(path.join(folder, 'node_modules/ra-core'))).toBe(false)
    writeFileSync(
      path.join(folder, 'provider.mjs'),
      `import { connect } from 'verso-records/client'
import { createDataProvider } from 'verso-records/react-admin'
console.log(Object.keys(createDataProvider(connect('http://localhost'))).length)
`,
    )
    const { stdout, stderr } = spawnSync(process.execPath, ['provider.mjs'], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect([stdout, stderr]).toEqual(['10\n', ''])
  })

  test('Node 18 is told which version is needed', () => {
    const node = installNode('18')
    const program = realpathSync(path.join(folder, 'node_modules/.bin/verso'))
    const { status, stderr } = spawnSync(node, [program, 'demo'], { cwd: folder, encoding: 'utf8' })
    expect(status).toBe(1)
    expect(stderr).toMatch(
      /^Verso needs Node 20\.19 or later; this is Node 18\.\d+\.\d+\. Install a newer version from https:\/\/nodejs\.org\n$/,
    )
    expect(readFileSync(program, 'utf8').startsWith('#!/usr/bin/env node')).toBe(true)
  })
})
