// Snippets of the API reference, pasted and run as they are: in a shell, as a module of Node, and in Python without packages.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildSnippets, type ApiDocument, type Sample } from '../../src/http/docs/page/snippets.mjs'
import { cleanUpAfterwards, scratch } from '../cli/program.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'

cleanUpAfterwards()

const ROOT = path.join(import.meta.dirname, '../..')
const MODEL = 'crm.Contact'
const LABELS = ['curl', 'TypeScript', 'Python'] as const
type Label = (typeof LABELS)[number]
const run = promisify(execFile)

let service: Service
let user: HttpClient
let document: ApiDocument
let folder: string
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  service = await startService('sqlite')
  user = await HttpClient.login(service.url, USERNAME, PASSWORD)
  document = (await (await user.request('GET', `/ws/openapi.json?model=${MODEL}`)).json()) as ApiDocument
  const created = await user.request('POST', '/ws/me/keys', { data: { name: 'snippets' } })
  const { data } = (await created.json()) as { readonly data: readonly { readonly key: string }[] }
  env = { PATH: process.env['PATH'], VERSO_KEY: data[0]?.key }
  folder = mkdtempSync(path.join(scratch, 'snippets-'))
  installClient(folder)
})
afterAll(() => service.close())

/** Puts the client where a project has it after an installation. */
function installClient(project: string): void {
  const installed = path.join(project, 'node_modules/verso-records')
  mkdirSync(installed, { recursive: true })
  const exports = { './client': './client/index.js' }
  writeFileSync(path.join(installed, 'package.json'), JSON.stringify({ type: 'module', exports }))
  const source = path.join(ROOT, 'src/client')
  for (const name of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue
    const target = path.join(installed, 'client', name.replace(/\.ts$/, '.js'))
    mkdirSync(path.dirname(target), { recursive: true })
    writeFileSync(target, transpile(readFileSync(path.join(source, name), 'utf8')))
  }
}

function transpile(text: string): string {
  const { ESNext: module } = ts.ModuleKind
  return ts.transpileModule(text, { compilerOptions: { module, target: ts.ScriptTarget.ES2023 } }).outputText
}

function buildSnippet(label: Label, method: string, pattern: string, sample?: Sample): string {
  const source = { document, path: pattern, method, baseUrl: service.url, sample }
  return buildSnippets(source).find((snippet) => snippet.label === label)?.text ?? ''
}

/** Runs a snippet as its reader would, and returns the JSON that it prints. */
async function paste(label: Label, text: string): Promise<unknown> {
  if (label === 'curl') return parse(await run('bash', ['-c', text], { cwd: folder, env }))
  if (label === 'Python') return parse(await run('python3', ['-c', text], { cwd: folder, env }))
  writeFileSync(path.join(folder, 'snippet.mjs'), transpile(text))
  return parse(await run(process.execPath, ['snippet.mjs'], { cwd: folder, env }))
}

function parse({ stdout }: { readonly stdout: string }): unknown {
  // A program that deletes prints nothing.
  return stdout === '' ? undefined : JSON.parse(stdout)
}

async function create(firstName: string): Promise<Sample> {
  const { id, version } = (await user.create(MODEL, { firstName })).data
  return { id, version }
}

describe.for(LABELS)('%s', (label) => {
  /** The records of a response: the client returns them without the envelope. */
  const listRecords = (printed: unknown): unknown[] => {
    const { data = printed } = printed as { readonly data?: unknown }
    return [data].flat()
  }

  test('finds records', async () => {
    await create('Grace')
    const printed = await paste(label, buildSnippet(label, 'get', `/ws/rest/${MODEL}`))
    expect(listRecords(printed).length).toBeGreaterThan(0)
  })

  test('creates a record from the example of the document', async () => {
    const { total } = await user.find(MODEL, { limit: 0 })
    const printed = await paste(label, buildSnippet(label, 'put', `/ws/rest/${MODEL}`))
    expect(listRecords(printed)).toMatchObject([{ version: 0 }])
    expect((await user.find(MODEL, { limit: 0 })).total).toBe(total + 1)
  })

  test('reads, updates and deletes the record whose id and version it got', async () => {
    const sample = await create('Grace')
    await user.update(MODEL, sample.id, { version: 0, firstName: 'Ada' })
    const current = { ...sample, version: 1 }
    const pattern = `/ws/rest/${MODEL}/{id}`
    const read = await paste(label, buildSnippet(label, 'get', pattern, current))
    expect(listRecords(read)).toMatchObject([{ id: sample.id, version: 1, firstName: 'Ada' }])
    const updated = await paste(label, buildSnippet(label, 'post', pattern, current))
    expect(listRecords(updated)).toMatchObject([{ id: sample.id, version: 2 }])
    await paste(label, buildSnippet(label, 'delete', pattern, { ...sample, version: 2 }))
    expect((await user.request('GET', `/ws/rest/${MODEL}/${sample.id}`)).status).toBe(404)
  })
})

test('a failure of a pasted Python program ends it with the message of the service', async () => {
  const text = buildSnippet('Python', 'get', `/ws/rest/${MODEL}/{id}`, { id: 999_999, version: 0 })
  await expect(paste('Python', text)).rejects.toThrow(/not-found/)
})

test('a call that takes no API key has no snippet', async () => {
  const general = (await (await user.request('GET', '/ws/openapi.json?model=')).json()) as ApiDocument
  const count = (pattern: string) =>
    buildSnippets({ document: general, path: pattern, method: 'get', baseUrl: service.url }).length
  expect([count('/ws/me/keys'), count('/ws/me'), count('/healthz')]).toEqual([0, 3, 3])
})

test('TypeScript accepts every TypeScript snippet of a model', async () => {
  const programs: string[] = []
  for (const [pattern, operations] of Object.entries(document.paths))
    for (const method of Object.keys(operations).filter((name) => name !== 'parameters'))
      programs.push(buildSnippet('TypeScript', method, pattern, { id: 1, version: 0 }))
  const files = programs
    .filter((text) => text !== '')
    .map((text, index) => {
      const name = `checked-${index}.mts`
      writeFileSync(path.join(folder, name), text)
      return name
    })
  expect(files.length).toBeGreaterThan(10)
  writeFileSync(
    path.join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: path.join(ROOT, 'tsconfig.json'),
      compilerOptions: {
        paths: { 'verso-records/client': [path.join(ROOT, 'src/client/index.ts')] },
        typeRoots: [path.join(ROOT, 'node_modules/@types')],
      },
      files,
      include: [],
    }),
  )
  const compiler = path.join(ROOT, 'node_modules/@typescript/native/bin/tsc')
  const { stdout } = await run(process.execPath, [compiler, '-p', folder]).catch(
    (error: unknown) => error as { stdout: string },
  )
  expect(stdout).toBe('')
})

describe('quoting', () => {
  const odd = `it's "odd" $HOME \`x\` \\n ü 😀 \u2028`
  const example = { data: { text: odd, none: null, yes: true, list: [false, 1.5] } }
  const quoted: ApiDocument = {
    paths: {
      '/ws/rest/a.B': { put: { requestBody: { content: { 'application/json': { example } } } } },
    },
  }
  const source = { document: quoted, path: '/ws/rest/a.B', method: 'put', baseUrl: 'http://127.0.0.1:1' }

  test.for(LABELS)('%s passes every character of an example', async (label) => {
    const text = buildSnippets(source).find((snippet) => snippet.label === label)?.text ?? ''
    if (label === 'TypeScript') {
      const [, sent = ''] = /create\(([^]*)\)\n/.exec(text) ?? []
      expect(JSON.parse(sent)).toEqual(example.data)
      return
    }
    // The program is replaced by one that prints what it would send.
    const shown =
      label === 'curl'
        ? run('bash', ['-c', `curl() { while [ "$1" != -d ]; do shift; done; printf %s "$2"; }\n${text}`])
        : run('python3', ['-c', `${text.slice(0, text.indexOf('\ntry:'))}\nprint(request.data.decode())`], {
            env: { ...process.env, VERSO_KEY: 'x' },
          })
    expect(parse(await shown)).toEqual(example)
  })
})
