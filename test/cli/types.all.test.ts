// `verso types`: writes the types of models from files and from a running service.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, type Client } from '../../src/client/index.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { writeModels } from '../transfer/transfer-fixture.js'
import { cleanUpAfterwards, scratch, verso } from './program.js'

cleanUpAfterwards()

let models: string
let service: Service
let admin: Client
beforeAll(async () => {
  models = writeModels(scratch)
  service = await startService('sqlite', { http: { basePath: '/records' } })
  admin = connect(service.url, { username: USERNAME, password: PASSWORD })
})
afterAll(() => service.close())

const fromFiles = async (...more: string[]) => verso(['types', '--models', models, ...more])
const fromService = async (more: readonly string[], variables: Record<string, string> = {}, input = '') =>
  verso(['types', '--url', service.url, ...more], input, variables)

async function createKey(client: Client): Promise<string> {
  const { body } = await client.request('POST', '/ws/me/keys', { body: { data: { name: 'types' } } })
  return (body as { data: [{ key: string }] }).data[0].key
}

/** A user with these permissions. */
async function addUser(username: string, permissions: readonly object[]): Promise<Client> {
  const role = await admin.model('verso.auth.Role').create({ name: username, permissions })
  await admin
    .model('verso.auth.User')
    .create({ username, password: PASSWORD, name: username, roles: [{ id: role.id }] })
  return connect(service.url, { username, password: PASSWORD })
}

describe('for an administrator', () => {
  test('files and a running service have the same types, with a password or a key', async () => {
    const { stdout, stderr, code } = await fromFiles()
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('export interface RelPersonCreate {')
    expect(stdout).toContain("  'verso.auth.User': {")
    const credentials = { VERSO_TYPES_PASSWORD: PASSWORD }
    expect(await fromService(['--user', USERNAME], credentials)).toEqual({ code: 0, stdout, stderr: '' })
    const stdin = await fromService(['--user', USERNAME, '--password-stdin'], {}, `${PASSWORD}\n`)
    expect(stdin).toEqual({ code: 0, stdout, stderr: '' })
    const key = await createKey(admin)
    expect(await fromService([], { VERSO_TYPES_KEY: key })).toEqual({ code: 0, stdout, stderr: '' })
    expect(await fromService(['--key', key])).toEqual({ code: 0, stdout, stderr: '' })
  })

  test('--out writes a file, and --check compares it', async () => {
    const file = path.join(scratch, 'types.ts')
    expect(await fromFiles('--out', file)).toEqual({
      code: 0,
      stdout: `wrote the types of 21 models to ${file}\n`,
      stderr: '',
    })
    expect(readFileSync(file, 'utf8')).toBe((await fromFiles()).stdout)
    const check = await fromFiles('--out', file, '--check')
    expect(check).toEqual({ code: 0, stdout: `${file} has the types of 21 models\n`, stderr: '' })
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replaceAll('\n', '\r\n'))
    expect((await fromFiles('--out', file, '--check')).code).toBe(0)
    const outdated = text.replace('readonly born: string', 'readonly birth: string')
    writeFileSync(file, outdated)
    const failed = await fromFiles('--out', file, '--check')
    expect(failed).toMatchObject({ code: 1, stdout: '' })
    expect(failed.stderr).toContain('The types are outdated')
    expect(readFileSync(file, 'utf8')).toBe(outdated)
  })
})

describe('for a user who may see little', () => {
  test('the types have no name of a hidden model or field', async () => {
    const user = await addUser('clerk', [
      {
        model: 'rel.Person',
        canRead: true,
        canUpdate: true,
        readable: ['name', 'company'],
        writable: ['name'],
      },
      { model: 'rel.Company', canRead: true, readable: ['code'] },
    ])
    const { stdout, code } = await fromService([], { VERSO_TYPES_KEY: await createKey(user) })
    expect(code).toBe(0)
    const hidden = [
      ...['born', 'rate', 'isActive', 'boss', 'circles', 'badge', 'keeper', 'founded', 'addresses', 'seat'],
      ...['Circle', 'Address', 'Door', 'Contact', 'Webhook', 'ApiKey', 'username'],
    ]
    for (const name of hidden) expect(stdout, name).not.toMatch(new RegExp(`\\b${name}`, 'i'))
    expect(stdout).toContain(`export interface RelPerson {
  readonly id: number
  readonly version: number
  readonly name: string | null
  readonly company: RelCompanyReference | null
}
`)
    const { body } = await user.request('GET', '/ws/meta/fields/rel.Person')
    const { fields } = (body as { data: { fields: { name: string }[] } }).data
    expect(fields.find(({ name }) => name === 'company')).not.toHaveProperty('targetName')
    // The user may not read the name of a company.
    expect(stdout).toContain(`export interface RelCompanyReference {
  readonly id: number
  readonly $version: number
}
`)
    expect(stdout).toContain('export interface RelPersonUpdate {\n  readonly name?: string | null\n}\n')
    expect(stdout).toContain(`  'rel.Person': {
    read: RelPerson
    create: never
    update: RelPersonUpdate
    reference: RelPersonReference
    list: 'name' | 'company'
    one: { company: 'rel.Company' }
    many: object
    files: never
    json: never
  }
`)
  })

  test('a field that only some records show is optional, and one that is only written is not read', async () => {
    const user = await addUser('author', [
      { model: 'crm.Contact', canRead: true, condition: "email = 'a@x.org'" },
      {
        model: 'crm.Contact',
        canRead: true,
        canCreate: true,
        readable: ['fullName'],
        writable: ['firstName', 'notes'],
      },
    ])
    const contacts = admin.model('crm.Contact')
    await contacts.create({ firstName: 'Ada', email: 'a@x.org' })
    await contacts.create({ firstName: 'Bob', email: 'b@x.org' })
    const { data } = await user.model('crm.Contact').find({ fields: ['fullName', 'email'], sortBy: ['id'] })
    expect(data.map((contact) => Object.keys(contact))).toEqual([
      ['id', 'version', 'fullName', 'email'],
      ['id', 'version', 'fullName'],
    ])
    const { stdout } = await fromService([], { VERSO_TYPES_KEY: await createKey(user) })
    expect(stdout).toContain('  readonly fullName: string | null\n  readonly email?: string | null\n')
    expect(stdout).toContain(
      'export interface CrmContactCreate {\n  readonly firstName?: string | null\n  readonly notes?: string | null\n}\n',
    )
    const writer = await addUser('writer', [{ model: 'test.Note', canCreate: true }])
    const written = await fromService([], { VERSO_TYPES_KEY: await createKey(writer) })
    expect(written.stdout).toContain(
      'export interface TestNote {\n  readonly id: number\n  readonly version: number\n}\n',
    )
    expect(written.stdout).toContain('export interface TestNoteCreate {\n  readonly title: string\n')
  })
})

describe('errors', () => {
  test('flags that contradict each other are usage errors, all listed at once', async () => {
    const url = 'http://localhost:1'
    const both = await verso([
      'types',
      '--url',
      url,
      '--models',
      'x',
      '--user',
      'ada',
      '--key',
      'k',
      '--check',
    ])
    expect(both).toMatchObject({ code: 2, stdout: '' })
    expect(both.stderr).toBe(`error: use either --models or --url, not both
error: use either --user or --key, not both
error: --check needs --out: the file to compare
`)
    const local = await verso(['types', '--models', 'x', '--user', 'ada', '--password-stdin'])
    expect(local).toMatchObject({ code: 2, stdout: '' })
    expect(local.stderr).toBe('error: --user needs --url\nerror: --password-stdin needs --url\n')
  })

  test('without models, without credentials, with a wrong address or password, the command says what to do', async () => {
    const expectError = async (
      flags: readonly string[],
      variables: Record<string, string>,
      message: RegExp,
    ) => {
      const { code, stdout, stderr } = await verso(['types', ...flags], '', variables)
      expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(message)
    }
    await expectError([], {}, /name the file or folder with your models with --models/)
    await expectError(
      ['--url', service.url],
      {},
      /set VERSO_TYPES_KEY to an API key, or name a user with --user/,
    )
    await expectError(['--url', 'localhost:1', '--key', 'k'], {}, /--url must be an address such as/)
    await expectError(['--url', service.url, '--key', 'k'], {}, /could not be read/)
    const wrong = { VERSO_TYPES_PASSWORD: 'not the password' }
    await expectError(['--url', service.url, '--user', USERNAME], wrong, /could not be read/)
    await expectError(['--models', 'nowhere'], {}, /does not exist/)
    await expectError(
      ['--models', models, '--out', path.join(scratch, 'no', 'file.ts')],
      {},
      /does not exist/,
    )
  })
})
