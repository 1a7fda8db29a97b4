// Snippets of the API reference, pasted and run as they are: in a shell, as a module of Node, and in Python without packages.
import { mkdtempSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildSnippets, type ApiDocument, type Sample } from '../../src/http/docs/page/snippets.mjs'
import { cleanUpAfterwards, scratch } from '../cli/program.js'
import { HttpClient } from '../http-client.js'
import {
  installClient,
  LABELS,
  parse,
  paste,
  pasteAll,
  ROOT,
  run,
  type Label,
  type Project,
} from './paste.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'

cleanUpAfterwards()

const MODEL = 'crm.Contact'
const FILE_MODEL = 'doc.Paper'

let service: Service
let user: HttpClient
let document: ApiDocument
/** The failed requests since the last look. */
const failedRequests: string[] = []
let project: Project

beforeAll(async () => {
  service = await startService('sqlite')
  user = await HttpClient.login(service.url, USERNAME, PASSWORD)
  document = await readDocument(MODEL)
  service.server.fastify.server.on('request', ({ method, url }, response) => {
    response.on('finish', () => {
      if (response.statusCode >= 400) failedRequests.push(`${response.statusCode} ${method} ${url}`)
    })
  })
  const created = await user.request('POST', '/ws/me/keys', { data: { name: 'snippets' } })
  const { data } = (await created.json()) as { readonly data: readonly { readonly key: string }[] }
  const env = { PATH: process.env['PATH'], VERSO_KEY: data[0]?.key }
  project = { folder: mkdtempSync(path.join(scratch, 'snippets-')), env }
  installClient(project.folder)
})
afterAll(() => service.close())

async function readDocument(model: string): Promise<ApiDocument> {
  return (await (await user.request('GET', `/ws/openapi.json?model=${model}`)).json()) as ApiDocument
}

function buildSnippet(label: Label, method: string, pattern: string, sample?: Sample): string {
  const source = { document, path: pattern, method, baseUrl: service.url, sample }
  return buildSnippets(source).find((snippet) => snippet.label === label)?.text ?? ''
}

interface RecordSample {
  readonly id: number
  readonly version: number
}

async function create(firstName: string): Promise<RecordSample> {
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
    const printed = await paste(project, label, buildSnippet(label, 'get', `/ws/rest/${MODEL}`))
    expect(listRecords(printed).length).toBeGreaterThan(0)
  })

  test('creates a record from the example of the document', async () => {
    const { total } = await user.find(MODEL, { limit: 0 })
    const printed = await paste(project, label, buildSnippet(label, 'put', `/ws/rest/${MODEL}`))
    expect(listRecords(printed)).toMatchObject([{ version: 0 }])
    expect((await user.find(MODEL, { limit: 0 })).total).toBe(total + 1)
  })

  test('reads, updates and deletes the record whose id and version it got', async () => {
    const sample = await create('Grace')
    await user.update(MODEL, sample.id, { version: 0, firstName: 'Ada' })
    const current = { ...sample, version: 1 }
    const pattern = `/ws/rest/${MODEL}/{id}`
    const read = await paste(project, label, buildSnippet(label, 'get', pattern, current))
    expect(listRecords(read)).toMatchObject([{ id: sample.id, version: 1, firstName: 'Ada' }])
    const updated = await paste(project, label, buildSnippet(label, 'post', pattern, current))
    expect(listRecords(updated)).toMatchObject([{ id: sample.id, version: 2 }])
    await paste(project, label, buildSnippet(label, 'delete', pattern, { ...sample, version: 2 }))
    expect((await user.request('GET', `/ws/rest/${MODEL}/${sample.id}`)).status).toBe(404)
  })
})

test('a failure of a pasted Python program ends it with the message of the service', async () => {
  const text = buildSnippet('Python', 'get', `/ws/rest/${MODEL}/{id}`, { id: 999_999, version: 0 })
  await expect(paste(project, 'Python', text)).rejects.toThrow(/not-found/)
})

/** Why operations have no snippet. */
const WITHOUT_SNIPPET: Readonly<Record<string, string>> = {
  showResetForm: 'needs the token of a one-time link',
  submitResetForm: 'needs the token of a one-time link',
  readApiReferenceFile: 'its path changes with its content',
  readApplicationFile: 'its path changes with its content',
  changePassword: 'takes no API key',
  listSessions: 'takes no API key',
  endOtherSessions: 'takes no API key',
  endSession: 'takes no API key',
  listKeys: 'takes no API key',
  addKey: 'takes no API key',
  dropKey: 'takes no API key',
}
/** Why operations have snippets in curl and Python only. */
const WITHOUT_TYPESCRIPT: Readonly<Record<string, string>> = {
  export: 'the client has no method for CSV',
  showRoot: 'the response is text',
  showApiReference: 'the response is a page',
}
/** Why snippets fail. */
const FAILING: Readonly<Record<string, string>> = {
  logIn: 'the password is invented',
  logInAtOldPath: 'the password is invented',
}

/** Operations whose snippets may print nothing. */
const SILENT = ['remove', 'download']

interface Operation {
  /** Without the name of the model. */
  readonly id: string
  readonly pattern: string
  readonly method: string
}

function listOperations({ paths }: ApiDocument): Operation[] {
  return Object.entries(paths).flatMap(([pattern, item]) =>
    Object.entries(item)
      .filter(([name]) => name !== 'parameters')
      .map(([method, operation]) => {
        const { operationId } = operation as { readonly operationId: string }
        return {
          id: pattern.startsWith('/ws/rest/') ? operationId.replace(/[A-Z][a-z]+[A-Z]\w+$/, '') : operationId,
          pattern,
          method,
        }
      }),
  )
}

/** Returns an existing record at version 1. Those of a model with files have one. */
async function createSample(model: string): Promise<Sample> {
  if (model !== FILE_MODEL) {
    const { id } = (await user.create(model, { firstName: 'Grace' })).data
    await user.update(model, id, { version: 0, firstName: 'Ada' })
    return { model, id, version: 1 }
  }
  const form = new FormData()
  form.set('request', JSON.stringify({ data: { title: 'Minutes' } }))
  form.set('field', 'scan')
  form.set('file', new Blob(['Hello']), 'hello.txt')
  const headers = { cookie: user.cookie }
  const uploaded = await fetch(`${service.url}/ws/rest/${model}/upload`, {
    method: 'POST',
    headers,
    body: form,
  })
  const { data } = (await uploaded.json()) as { readonly data: readonly { readonly id: number }[] }
  const id = data[0]?.id ?? 0
  await user.update(model, id, { version: 0, title: 'Report' })
  return { model, id, version: 1 }
}

/** A webhook with the id 1 exists, and none has the name of the example. */
async function prepareWebhooks(): Promise<void> {
  const { data } = await user.find('verso.feed.Webhook', { fields: 'name' })
  for (const { id, name } of data)
    if (name === 'warehouse') await user.request('DELETE', `/ws/rest/verso.feed.Webhook/${id}`)
  if (data.length > 0) return
  const webhook = { name: 'paused', url: 'https://hooks.example.com/', paused: true }
  await user.request('POST', '/ws/webhooks', { data: webhook })
}

describe.for([MODEL, FILE_MODEL, ''])('every operation of the document "%s"', (model) => {
  let described: ApiDocument
  beforeAll(async () => {
    described = await readDocument(model)
  })

  afterAll(async () => {
    user = await HttpClient.login(service.url, USERNAME, PASSWORD)
  })

  test('has a snippet, or a reason for having none', () => {
    const sample = { model: MODEL, id: 1, version: 1 }
    const wrong = listOperations(described).flatMap(({ id, pattern, method }) => {
      const snippets = buildSnippets({
        document: described,
        path: pattern,
        method,
        baseUrl: service.url,
        sample,
      })
      const labels = snippets.map(({ label }) => label)
      const expected = LABELS.filter(
        (label) => !(id in WITHOUT_SNIPPET) && !(label === 'TypeScript' && id in WITHOUT_TYPESCRIPT),
      )
      return labels.join() === expected.join() ? [] : [`${id}: ${labels.join()}`]
    })
    expect(wrong).toEqual([])
  })

  test.for(LABELS)('succeeds when its snippet in %s is pasted', async (label) => {
    user = await HttpClient.login(service.url, USERNAME, PASSWORD)
    if (model === '') await prepareWebhooks()
    const pasted: (Operation & { readonly text: string })[] = []
    for (const operation of listOperations(described)) {
      const { pattern, method } = operation
      const sample = await createSample(model === '' ? MODEL : model)
      const source = { document: described, path: pattern, method, baseUrl: service.url, sample }
      const text = buildSnippets(source).find((snippet) => snippet.label === label)?.text
      if (text !== undefined) pasted.push({ ...operation, text })
    }
    failedRequests.length = 0
    const outputs = await pasteAll(
      project,
      label,
      pasted.map(({ text }) => text),
    )
    const failures = outputs.flatMap(({ failure }, index) =>
      failure ? [{ id: pasted[index]?.id, failure, text: pasted[index]?.text }] : [],
    )
    const expected = pasted.filter(({ id }) => id in FAILING)
    expect(failures.filter(({ id = '' }) => !(id in FAILING))).toEqual([])
    expect(failures.length).toBe(expected.length)
    expect(failedRequests.length, failedRequests.join('\n')).toBe(expected.length)
    const silent = outputs.flatMap(({ printed }, index) =>
      printed.trim() === '' ? [pasted[index]?.id ?? ''] : [],
    )
    expect(silent.filter((id) => !(id in FAILING) && !SILENT.includes(id))).toEqual([])
    process.stdout.write(
      `${label} of "${model}": ${pasted.length} snippets, ${expected.length} fail as expected\n`,
    )
  })
})

test('a revert of a record at version 0 has no snippet, because there is no earlier version', () => {
  const pattern = `/ws/rest/${MODEL}/{id}/revert`
  expect(buildSnippet('curl', 'post', pattern, { id: 1, version: 0 })).toBe('')
  expect(buildSnippet('curl', 'post', pattern, { id: 1, version: 3 })).toContain('{"version":3,"to":2}')
})

test('a mass update of a snippet changes one record', async () => {
  const sample = await createSample(MODEL)
  const printed = await paste(
    project,
    'curl',
    buildSnippet('curl', 'post', `/ws/rest/${MODEL}/updateMass`, sample),
  )
  expect(printed).toMatchObject({ status: 0, total: 1 })
  expect(await user.read(MODEL, Number(sample.id))).toMatchObject({ version: 2 })
})

test('a call that needs no credentials sends none', async () => {
  const general = await readDocument('')
  for (const { text } of buildSnippets({
    document: general,
    path: '/healthz',
    method: 'get',
    baseUrl: service.url,
  }))
    expect(text).not.toMatch(/VERSO_KEY|Authorization/)
})

test('TypeScript accepts every TypeScript snippet', async () => {
  const files: string[] = []
  for (const model of ['', MODEL, FILE_MODEL]) {
    const described = await readDocument(model)
    for (const { pattern, method } of listOperations(described)) {
      const sample = { model: MODEL, id: 1, version: 1 }
      const source = { document: described, path: pattern, method, baseUrl: service.url, sample }
      const text = buildSnippets(source).find(({ label }) => label === 'TypeScript')?.text
      if (text === undefined) continue
      const name = `checked-${files.length}.mts`
      writeFileSync(path.join(project.folder, name), text)
      files.push(name)
    }
  }
  expect(files.length).toBeGreaterThan(40)
  writeFileSync(
    path.join(project.folder, 'tsconfig.json'),
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
  const { stdout } = await run(process.execPath, [compiler, '-p', project.folder]).catch(
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
