// Hidden models and fields appear in no document: a user gets the same documents whether they exist or not.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { startService, type Service } from '../targets.js'
import { grantee, type UserWithPermissions } from '../permissions/office-fixture.js'
import { send } from '../wire/exchange.js'

const PUBLIC_FIELDS = {
  name: { type: 'string', required: true },
  rank: { type: 'integer', min: 1 },
  boss: { type: 'many-to-one', target: 'shop.Clerk' },
} as const

const Clerk = defineModel({ name: 'shop.Clerk', fields: PUBLIC_FIELDS, listFields: ['name'] })
const Sale = defineModel({
  name: 'shop.Sale',
  fields: {
    clerk: { type: 'many-to-one', target: 'shop.Clerk', required: true },
    total: { type: 'decimal' },
  },
})

/** The same models with fields that no role of the test may see, and with models that no role knows. */
const ClerkWithSecrets = defineModel({
  name: 'shop.Clerk',
  fields: {
    ...PUBLIC_FIELDS,
    salary: { type: 'decimal', default: '1000.00', help: 'hidden salary' },
    pin: { type: 'string', secret: true },
    photo: { type: 'binary' },
    file: { type: 'many-to-one', target: 'vault.File' },
    files: { type: 'one-to-many', target: 'vault.File', mappedBy: 'clerk' },
    friends: { type: 'many-to-many', target: 'vault.File' },
  },
  listFields: ['name', 'salary'],
})
const File = defineModel({
  name: 'vault.File',
  fields: { code: { type: 'string' }, clerk: { type: 'many-to-one', target: 'shop.Clerk' } },
})
/** Names of components must not depend on models that clash with them. */
const Clashes = ['shop.SaleCreate', 'shop.sa.Le', 'shopS.Ale'].map((name) =>
  defineModel({ name, fields: { code: { type: 'string' } } }),
)

const toSources = (definitions: readonly object[]) =>
  definitions.map((definition) => ({ file: 'two-worlds.test.ts', definition }))

const SEEN = ['name', 'rank', 'boss']
const ROLES: Readonly<Record<string, readonly object[]>> = {
  reader: [{ model: 'shop.Clerk', canRead: true, readable: SEEN }],
  writer: [
    {
      ...{
        model: 'shop.Clerk',
        canRead: true,
        canCreate: true,
        canUpdate: true,
        canRemove: true,
        canExport: true,
      },
      ...{ readable: SEEN, writable: SEEN },
    },
    { model: 'shop.Sale', canRead: true, canCreate: true, canUpdate: true },
  ],
  blind: [{ model: 'shop.Clerk', canCreate: true, canUpdate: true, readable: [], writable: SEEN }],
  partly: [
    { model: 'shop.Clerk', canRead: true, condition: 'createdBy = :user', readable: SEEN },
    { model: 'shop.Clerk', canRead: true, readable: ['name'] },
    { model: 'shop.Sale', canRead: true },
  ],
}
const PATHS = [
  ...['/ws/openapi.json', '/ws/openapi.json?model=shop.Clerk', '/ws/openapi.json?model=vault.File'],
  ...['/ws/openapi.json?model=shop.SaleCreate', '/ws/openapi.json?model=shop.Sale,vault.File'],
  ...['/ws/meta/schema/shop.Clerk', '/ws/meta/schema/shop.Sale', '/ws/meta/schema/vault.File'],
]

interface World {
  readonly service: Service
  readonly users: ReadonlyMap<string, UserWithPermissions>
}

let plain: World
let secret: World

async function openWorld(models: readonly object[]): Promise<World> {
  const service = await startService('sqlite', { models: toSources(models), isNew: true })
  const users = new Map<string, UserWithPermissions>()
  for (const [role, permissions] of Object.entries(ROLES))
    users.set(role, await grantee(service, permissions))
  return { service, users }
}

async function ask({ service, users }: World, role: string, path: string): Promise<string> {
  const cookie = users.get(role)?.client.cookie ?? ''
  const { status, headers, text } = await send(service.url, { path, headers: { cookie, host: 'localhost' } })
  return `${status} ${headers.etag ?? ''} ${text.replace(/"requestId":"[^"]*"/, '')}`
}

beforeAll(async () => {
  plain = await openWorld([Clerk, Sale])
  secret = await openWorld([ClerkWithSecrets, Sale, File, ...Clashes])
})

afterAll(async () => {
  await plain.service.close()
  await secret.service.close()
})

describe('a document is the same whether hidden models and fields exist or not', () => {
  test.each(Object.keys(ROLES))('for the role %s', async (role) => {
    for (const path of PATHS) {
      const [one, other] = [await ask(plain, role, path), await ask(secret, role, path)]
      expect(other).toBe(one)
      expect(other).not.toMatch(/salary|pin|photo|vault\.File(?!\\?")/)
    }
  })

  test('and a user who sees them gets another one', async () => {
    const permissions = [
      { model: 'shop.*', canRead: true },
      { model: 'vault.*', canRead: true },
    ]
    const seeing = await grantee(secret.service, permissions)
    const world = { ...secret, users: new Map([['seeing', seeing]]) }
    const document = await ask(world, 'seeing', '/ws/openapi.json')
    for (const word of ['salary', 'hidden salary', 'vault.File', 'VaultFileReference', 'photo'])
      expect(document).toContain(word)
    expect(document).not.toContain('"pin"')
  })
})
