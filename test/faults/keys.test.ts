// The end of a key takes effect immediately on its node, and on every other node within a second.
import { describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { HttpClient } from '../http-client.js'
import { ENGINES, type Engine } from '../targets.js'
import { forgettingPermissionsVersion } from '../mutants/keys.js'
import { onNodes, type Node } from './nodes.js'

const CONTACTS = '/ws/rest/crm.Contact'
const GOOD_PASSWORD = 'a password of twelve'

interface Owner {
  readonly admin: HttpClient
  readonly userId: number
  readonly roleId: number
  readonly keyId: number
}

/** An administrator's action, and the status of the key afterwards. */
const endings: readonly (readonly [what: string, end: (owner: Owner) => Promise<unknown>, after: number])[] =
  [
    ['the key is removed', ({ admin, keyId }) => admin.remove('verso.auth.ApiKey', keyId), 401],
    ['the user is disabled', (owner) => change(owner, { disabled: true }), 401],
    ['the user is removed', ({ admin, userId }) => admin.remove('verso.auth.User', userId), 401],
    // No permissions are left, so models do not exist for the key.
    ['the user loses the role', (owner) => change(owner, { roles: [] }), 404],
    ['the role permits no more', (owner) => changeRole(owner), 404],
    ['the key loses the role', (owner) => changeKey(owner, { roles: [] }), 404],
    ['the key ends', (owner) => changeKey(owner, { expiresOn: '2020-01-01T00:00:00Z' }), 401],
  ]

async function change({ admin, userId }: Owner, data: object): Promise<void> {
  const { version } = await admin.read('verso.auth.User', userId)
  await admin.update('verso.auth.User', userId, { version, ...data })
}

async function changeKey({ admin, keyId }: Owner, data: object): Promise<void> {
  const { version } = await admin.read('verso.auth.ApiKey', keyId)
  await admin.update('verso.auth.ApiKey', keyId, { version, ...data })
}

async function changeRole({ admin, roleId }: Owner): Promise<void> {
  const { version } = await admin.read('verso.auth.Role', roleId)
  await admin.update('verso.auth.Role', roleId, { version, permissions: [] })
}

const statusOn = async ({ service }: Node, key: string) =>
  (await fetch(service.url + CONTACTS, { headers: { 'api-key': key } })).status

/** The statuses of the key on both nodes, before and after. */
async function statuses(
  engine: Engine,
  [, end]: (typeof endings)[number],
  mutant?: (db: Database) => Database,
): Promise<number[]> {
  return onNodes(engine, { mutant, areTwo: true }, async ({ first, second }) => {
    const admin = first.client
    const permissions = [{ model: 'crm.Contact', canRead: true }]
    const { data: role } = await admin.create('verso.auth.Role', { name: 'guest', permissions })
    const { data: user } = await admin.create('verso.auth.User', {
      ...{ username: 'guest', name: 'Guest', password: GOOD_PASSWORD, roles: [{ id: role.id }] },
    })
    const guest = await HttpClient.login(first.service.url, 'guest', GOOD_PASSWORD)
    const made = await guest.request('POST', '/ws/me/keys', { data: { name: 'k' } })
    const { data } = (await made.json()) as { data: [{ id: number; key: string }] }
    const [{ id: keyId, key }] = data
    const before = [await statusOn(first, key), await statusOn(second, key)]
    await end({ admin, userId: user.id, roleId: role.id, keyId })
    second.service.clock.letASecondPass()
    return [...before, await statusOn(first, key), await statusOn(second, key)]
  })
}

describe.for(ENGINES)('%s', (engine) => {
  test.for(endings)(
    'an API key loses access on both nodes within a second after this: %s',
    async (ending) => {
      expect(await statuses(engine, ending)).toEqual([200, 200, ending[2], ending[2]])
    },
  )
})

test('the mutant that does not raise the permissions version is caught', async () => {
  const ending = endings.find(([what]) => what === 'the user loses the role')
  if (!ending) throw new Error('the ending is missing')
  expect(await statuses('sqlite', ending, forgettingPermissionsVersion)).toEqual([200, 200, 200, 200])
})
