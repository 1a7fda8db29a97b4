// Public generators build clients from the document of a running service: openapi-typescript for TypeScript, and OpenAPI::Client for Perl.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cleanUpAfterwards, scratch } from '../../cli/program.js'
import { HttpClient } from '../../http-client.js'
import { Contact, Everything } from '../../models.js'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../../targets.js'

cleanUpAfterwards()

const ROOT = path.join(import.meta.dirname, '../../..')
const run = promisify(execFile)

const PACKAGES = ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', 'typescript@5.9.3', '@types/node@20']

/** A program of a user of the generated types. */
const PROGRAM = `import createClient from 'openapi-fetch'
import type { paths } from './schema.js'

const headers = { 'API-KEY': process.env.VERSO_KEY ?? '' }
const client = createClient<paths, 'application/json'>({ baseUrl: process.argv[2] ?? '', headers })
const body = { data: { firstName: 'Grace', lastName: 'Hopper' } }
const created = await client.PUT('/ws/rest/crm.Contact', { body })
const [record] = created.data?.data ?? []
if (!record) throw new Error(JSON.stringify(created.error))
const { id, version } = record
const params = { path: { id } }
const read = await client.GET('/ws/rest/crm.Contact/{id}', { params })
const update = (lastName: string) =>
  client.POST('/ws/rest/crm.Contact/{id}', { params, body: { data: { version, lastName } } })
const updated = await update('Murray')
const clash = await update('Smith')
const report = clash.error?.data
// The kind tells which members there are.
const conflict =
  report?.kind === 'conflict'
    ? { status: clash.response.status, current: report.current satisfies number | undefined, fields: report.fields }
    : undefined
const removed = await client.DELETE('/ws/rest/crm.Contact/{id}', {
  params: { ...params, query: { version: updated.data?.data[0]?.version ?? -1 } },
})
const missing = await client.GET('/ws/rest/crm.Contact/{id}', { params })
const name: string | null | undefined = read.data?.data[0]?.firstName
console.log(
  JSON.stringify({ record, name, conflict, removed: removed.data?.data, missing: missing.response.status }),
)

export async function mistakes(): Promise<void> {
  // @ts-expect-error there is no such model
  await client.GET('/ws/rest/crm.Contatc')
  // @ts-expect-error a misspelled field
  await client.PUT('/ws/rest/crm.Contact', { body: { data: { fristName: 'Grace' } } })
  // @ts-expect-error a value of another type
  await client.PUT('/ws/rest/crm.Contact', { body: { data: { firstName: 1 } } })
}
`

/** A few models, beside those of the service itself. Generators take seconds for each ten. */
const SOURCES = [Contact, Everything].map((definition) => ({ file: 'test/models.ts', definition }))

const CONFLICT = {
  status: 409,
  current: 1,
  fields: { lastName: { base: 'Hopper', ours: 'Smith', theirs: 'Murray', verdict: 'clash' } },
}

onEngineOfTier((engine) => {
  let service: Service
  let folder: string
  let document: string
  let env: NodeJS.ProcessEnv

  beforeAll(async () => {
    service = await startService(engine, { models: SOURCES })
    const user = await HttpClient.login(service.url, USERNAME, PASSWORD)
    const created = await user.request('POST', '/ws/me/keys', { data: { name: 'generators' } })
    const { data } = (await created.json()) as { readonly data: readonly { readonly key: string }[] }
    env = { ...process.env, VERSO_KEY: data[0]?.key }
    folder = mkdtempSync(path.join(scratch, 'generated-'))
    document = path.join(folder, 'openapi.json')
    writeFileSync(document, await (await user.request('GET', '/ws/openapi.json')).text())
  })
  afterAll(() => service.close())

  test('openapi-typescript: a typed program creates, reads, updates, conflicts and deletes', async () => {
    writeFileSync(path.join(folder, 'package.json'), '{"private":true,"type":"module"}')
    writeFileSync(path.join(folder, 'program.ts'), PROGRAM)
    const install = ['install', '--no-audit', '--no-fund', '--no-save', '--prefer-offline', ...PACKAGES]
    await run('npm', install, { cwd: folder })
    const generator = path.join(folder, 'node_modules/openapi-typescript/bin/cli.js')
    await run(process.execPath, [generator, 'openapi.json', '-o', 'schema.d.ts'], { cwd: folder })
    const compiler = path.join(ROOT, 'node_modules/@typescript/native/bin/tsc')
    const flags = [
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--types',
      'node',
    ]
    const compiled = await run(process.execPath, [compiler, ...flags, 'program.ts'], { cwd: folder }).catch(
      (error: unknown) => error,
    )
    expect(compiled).toMatchObject({ stdout: '' })
    const { stdout } = await run(process.execPath, ['program.js', service.url], { cwd: folder, env })
    expect(JSON.parse(stdout)).toMatchObject({
      record: { version: 0, firstName: 'Grace', fullName: 'Grace Hopper' },
      name: 'Grace',
      conflict: CONFLICT,
      removed: [expect.any(Number)],
      missing: 404,
    })
  })

  test('OpenAPI::Client: a generated Perl class creates, reads, updates, conflicts and deletes', async () => {
    const { stdout } = await run(
      'perl',
      [path.join(import.meta.dirname, 'conflict.pl'), document, service.url],
      { env: { ...env, JSON_VALIDATOR_CACHE_PATH: acceptAnyDocument(folder) } },
    )
    const result = JSON.parse(stdout) as Record<string, unknown>
    expect(result).toMatchObject({
      created: { version: 0, firstName: 'Grace', fullName: 'Grace Hopper' },
      read: { version: 0, lastName: 'Hopper' },
      updated: 1,
      conflict: { kind: 'conflict', ...CONFLICT },
      found: [{ lastName: 'Murray' }],
      invalid: '/body/data/firstName',
      unknown: expect.stringContaining('fristName'),
      missing: 404,
    })
    expect(result['removed']).toEqual([(result['created'] as { id: number }).id])
  })
})

/**
 * The Perl module would download the schema of OpenAPI documents to check this one. Its check fails by chance, for any document with many
 * references, so a schema that accepts all takes its place. Another test validates the document.
 */
function acceptAnyDocument(parent: string): string {
  const cache = path.join(parent, 'specification')
  mkdirSync(cache)
  const url = 'https://spec.openapis.org/oas/3.1/schema/2021-05-20'
  writeFileSync(path.join(cache, createHash('md5').update(url).digest('hex')), '{"type":"object"}')
  return cache
}
