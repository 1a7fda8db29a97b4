// Users, roles and keys from the command line, while a server runs.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { cleanUpAfterwards, newDatabase, PASSWORD, scratch, start, verso, type Outcome } from './program.js'

cleanUpAfterwards()

const MODELS = fileURLToPath(new URL('../../examples/contacts', import.meta.url))
const CONTACT = 'com.axelor.contact.db.Contact'
const db = newDatabase()

const run = (command: string, input = '') => verso([...command.split(' '), '--db', db], input)
const said = async (command: string, input = '') => {
  const { code, stdout, stderr } = await run(command, input)
  expect([code, stderr], command).toEqual([0, ''])
  return stdout
}
const json = async (command: string): Promise<unknown> => JSON.parse(await said(`${command} --json`))
const rejectedCommand = async (command: string): Promise<Outcome> => {
  const outcome = await run(command)
  expect([outcome.code, outcome.stdout], command).toEqual([1, ''])
  return outcome
}

beforeAll(async () => {
  await said('user add ada --admin --password-stdin', PASSWORD)
})

describe('users', () => {
  test('user add and user roles assign and remove the roles of a user', async () => {
    const added = await said('user add bob --role editor --role reader --password-stdin', PASSWORD)
    expect(added).toBe('added bob, with the roles editor, reader\n')
    expect(await said('user roles bob --add administrator --remove editor')).toBe(
      'bob has administrator, reader\n',
    )
    expect(await said('user roles bob')).toBe('bob has administrator, reader\n')
    expect(await run('user roles bob --remove editor')).toEqual({
      code: 0,
      stdout: 'bob has administrator, reader\n',
      stderr: 'nothing to remove: bob did not have editor\n',
    })
    expect(await json('user roles bob')).toEqual({ username: 'bob', roles: ['administrator', 'reader'] })
    expect(await json('user roles bob --remove administrator --remove reader')).toEqual({
      username: 'bob',
      roles: [],
    })
    expect(await said('user roles bob')).toBe('bob has no roles and no permissions\n')
    expect((await rejectedCommand('user roles bob --add emperor')).stderr).toContain(
      'Unknown role "emperor"; known roles are administrator',
    )
    expect((await rejectedCommand('user roles bob --add reader --remove reader')).stderr).toContain(
      'use either --add or --remove, not both',
    )
    expect((await rejectedCommand('user roles eve')).stderr).toBe('User "eve" does not exist\n')
  })

  test('user add and user passwd report an invalid name, role or user before they ask for a password', async () => {
    // There is no terminal, so a password prompt would fail with another message.
    expect((await rejectedCommand('user add ADA')).stderr).toBe(
      'User "ada" already exists; nothing was changed\n',
    )
    expect((await rejectedCommand('user add a/b')).stderr).toContain('The user name must be')
    expect((await rejectedCommand('user add eve --role emperor')).stderr).toContain('Unknown role "emperor"')
    expect((await rejectedCommand('user passwd eve')).stderr).toBe('User "eve" does not exist\n')
    expect((await rejectedCommand('user add eve')).stderr).toContain('There is no terminal')
  })
})

describe('roles', () => {
  test('role permit grants a permission, role forbid revokes it, and role show lists it', async () => {
    expect(await said('role list')).toContain(
      '3   reader         1 permission  Reads and exports all records.',
    )
    expect(await json('role list')).toContainEqual({
      id: 3,
      name: 'reader',
      description: 'Reads and exports all records.',
      admin: false,
      permissionCount: 1,
    })
    await said('role add guest')
    const nameless = await verso(['role', 'add', '', '--db', db])
    expect([nameless.code, nameless.stderr]).toEqual([1, expect.stringContaining('at least 1 character\n')])
    expect((await rejectedCommand('role add guest')).stderr).toBe(
      'Role "guest" already exists; nothing was changed\n',
    )
    expect(await said('role show guest')).toContain('permits nothing')
    expect((await rejectedCommand(`role permit guest ${CONTACT}`)).stderr).toContain(
      'name at least one action: --read, --create',
    )
    expect((await rejectedCommand(`role permit gust ${CONTACT} --read`)).stderr).toContain(
      'Unknown role "gust"',
    )
    const permit = ['role', 'permit', 'guest', CONTACT, '--read', '--update', '--db', db]
    const permitted = await verso([
      ...permit,
      '--condition',
      'createdBy = :user',
      '--readable',
      'fullName, email',
      '--writable',
      '',
    ])
    expect(permitted.stdout).toMatch(
      /^added permission \d+ to guest: read, update \S+ where createdBy = :user; readable: fullName, email; writable: none\n$/,
    )
    expect(permitted.stderr).toContain('were not checked')
    const id = /permission (\d+)/.exec(permitted.stdout)?.[1] ?? ''
    const shown = await said('role show guest')
    expect(shown).toContain(`${CONTACT}  read,update  createdBy = :user  fullName,email  none`)
    expect(shown).toContain('users: none')
    expect(await json('role show guest')).toEqual({
      ...{ id: 4, name: 'guest', description: null, admin: false, users: [] },
      permissions: [
        {
          ...{ id: Number(id), model: CONTACT, actions: ['read', 'update'], condition: 'createdBy = :user' },
          ...{ readable: ['fullName', 'email'], writable: [] },
        },
      ],
    })
    expect((await rejectedCommand('role forbid reader ' + id)).stderr).toContain(
      `Role "reader" has no permission ${id}`,
    )
    expect((await rejectedCommand('role forbid guest x')).stderr).toContain('"x" is not an id')
    expect(await said(`role forbid guest ${id}`)).toBe(`removed permission ${id} from guest\n`)
    expect(await said('role remove guest')).toBe('removed the role guest\n')
    expect((await rejectedCommand('role remove guest')).stderr).toContain('Unknown role "guest"')
  })

  test('role remove refuses to remove the last administrator role; user add --admin says how to add one', async () => {
    expect((await rejectedCommand('role remove administrator')).stderr).toContain(
      'verso role add <role> --admin, then verso user roles <name> --add <role>',
    )
    await said('role add chief --admin')
    // No user has the role yet.
    expect((await rejectedCommand('role remove administrator')).stderr).toContain(
      'would remove the last administrator',
    )
    await said('user roles ada --add chief')
    expect(await said('role remove administrator')).toBe('removed the role administrator\n')
    expect((await rejectedCommand('user add eve --admin')).stderr).toContain(
      'To create it, run: verso role add administrator --admin\n',
    )
    await said('role add administrator --admin')
    await said('user roles ada --add administrator')
    expect(await said('role remove chief')).toBe('removed the role chief\n')
  })

  test('role permit with models refuses a database whose tables differ, and changes no table', async () => {
    const { code, stderr } = await verso([
      'role',
      'permit',
      'reader',
      CONTACT,
      '--read',
      '--models',
      MODELS,
      '--db',
      db,
    ])
    expect([code, stderr]).toEqual([1, expect.stringContaining('do not match the models')])
  })
})

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** The server applies changes of another process within a second. */
const SOON = { timeout: 60_000 }

describe('API keys', () => {
  test('key add prints the key once, key list hides it, and key revoke takes effect on a running server', async () => {
    await said('user add carol --role reader --password-stdin', PASSWORD)
    const { url } = await start(['serve', '--port', '0', '--models', MODELS, '--db', db])
    const { code, stdout, stderr } = await run('key add carol --name backup --expires 30d')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^vk_[\w-]{43}\n$/)])
    expect(stderr).toMatch(
      /^created key 1 of carol with the role reader; it expires on .* UTC and is not shown again\n$/,
    )
    const key = stdout.trim()
    const file = path.join(scratch, 'backup.key')
    writeFileSync(file, stdout)
    const statusOf = async (method = 'GET') => {
      const headers = { 'api-key': readFileSync(file, 'utf8').trim(), 'content-type': 'application/json' }
      const body = method === 'GET' ? {} : { body: '{"data":{}}' }
      return (await fetch(`${url}/ws/rest/${CONTACT}`, { method, headers, ...body })).status
    }
    expect([await statusOf(), await statusOf('PUT')]).toEqual([200, 403])
    const listed = await said('key list carol')
    expect(listed).toContain(`carol  backup  ${key.slice(0, 9)}…  reader`)
    expect(listed).not.toContain(key)
    expect(await json('key list carol')).toEqual([
      {
        ...{ id: 1, user: 'carol', name: 'backup', prefix: key.slice(0, 9), roles: ['reader'] },
        ...{ expired: false, expiresOn: expect.stringMatching(ISO_TIME) },
        lastUsedOn: expect.stringMatching(ISO_TIME),
      },
    ])
    expect(await json('key list ada')).toEqual([])
    await said('user roles carol --add editor')
    await expect.poll(() => statusOf('PUT'), SOON).toBe(403)
    await said('user roles carol --remove reader')
    await expect.poll(() => statusOf(), SOON).toBe(404)
    await said('user disable carol')
    await expect.poll(() => statusOf(), SOON).toBe(401)
    await said('user enable carol')
    await expect.poll(() => statusOf(), SOON).toBe(404)
    expect(await said('key revoke 1')).toBe('revoked key 1\n')
    await expect.poll(() => statusOf(), SOON).toBe(401)
    expect((await rejectedCommand('key revoke 1')).stderr).toContain('verso.auth.ApiKey 1 does not exist')

    const login = await fetch(`${url}/callback`, {
      method: 'POST',
      body: JSON.stringify({ username: 'carol', password: PASSWORD }),
    })
    const cookie = login.headers
      .getSetCookie()
      .map((each) => each.split(';')[0])
      .join('; ')
    const sessionStatus = async () => (await fetch(`${url}/ws/meta/models`, { headers: { cookie } })).status
    expect(await sessionStatus()).toBe(200)
    const sessions = (await said('user sessions carol')).trim().split('\n')
    expect(sessions).toEqual([expect.stringContaining('address'), expect.stringMatching(/127\.0\.0\.1|::1/)])
    expect(await json('user sessions carol')).toEqual([
      {
        ...{ id: expect.any(String), createdOn: expect.stringMatching(ISO_TIME), agent: 'node' },
        ...{
          lastSeenOn: expect.stringMatching(ISO_TIME),
          address: expect.stringMatching(/127\.0\.0\.1|::1/),
        },
      },
    ])
    expect(await said('user logout carol')).toBe('ended 1 session of carol\n')
    expect(await json('user sessions carol')).toEqual([])
    await expect.poll(() => sessionStatus(), SOON).toBe(401)
    expect(await said('user list')).toMatch(
      /carol {2}carol {2}editor +enabled {2}\d{4}-\d\d-\d\d \d\d:\d\d UTC\n/,
    )
    expect(await json('user list')).toContainEqual({
      ...{ id: expect.any(Number), username: 'carol', name: 'carol', roles: ['editor'], disabled: false },
      lastLoginOn: expect.stringMatching(ISO_TIME),
    })
  })

  test('key commands report an error in one line', async () => {
    expect((await rejectedCommand('key add eve --name x')).stderr).toBe('User "eve" does not exist\n')
    expect((await rejectedCommand('key add ada --name x --role reader')).stderr).toContain(
      'must be one of the roles of this user: administrator',
    )
    expect((await rejectedCommand('key add ada --name x --expires 500d')).stderr).toContain(
      '--expires must be a time from 1m to 400d, such as 60m, 12h or 7d',
    )
    expect((await run('key add ada')).code).toBe(2)
    expect((await verso(['key', 'list', '--db', newDatabase()])).stderr).toContain('the file does not exist')
  })
})

test.for(['user add', 'role permit', 'key revoke'])('verso help %s lists its flags', async (command) => {
  const { code, stdout } = await verso(['help', ...command.split(' ')])
  expect([code, stdout]).toEqual([0, expect.stringContaining(`Usage: verso ${command} [options]`)])
  expect(stdout).toContain('--db <url>')
})

test.for(['user', 'role', 'key'])('verso %s has examples in its help', async (command) => {
  const { code, stdout } = await verso([command, '--help'])
  expect([code, stdout]).toEqual([0, expect.stringContaining('Examples:')])
})
