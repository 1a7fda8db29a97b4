// Writes that may join a group commit, and those that need a transaction of their own.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildGrant, type Permission } from '../../src/model/access/permission-record.js'
import type { GroupableWrite } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import type { Principal } from '../../src/service/context/principal.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { Permissions } from '../../src/model/access/permissions.js'
import type { Records } from '../../src/wire.js'
import {
  identityIn,
  preparedLocation,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { faceOf } from '../mutants/records.js'
import { groupingEverything } from '../mutants/write-plan.js'

let location: DatabaseLocation
let service: Service
let records: Records
let admin: Principal
let asked: (GroupableWrite | undefined)[] = []

beforeAll(async () => {
  location = await preparedLocation('sqlite')
  const db = await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 })
  const watched = {
    ...faceOf(db),
    transaction: ((work, options) => {
      asked.push(options?.groupable)
      return db.transaction(work, options)
    }) as typeof db.transaction,
  }
  service = await startService('sqlite', { location, database: watched })
  admin = await service.app.authorizer.resolvePrincipal(await identityIn(service))
  records = recordsForPrincipal(service.app, admin)
})
afterAll(async () => {
  await service.close()
  location.remove()
})

/** The `plain` option of each transaction that the call starts. */
async function plainIn(call: () => Promise<unknown>): Promise<(GroupableWrite | undefined)[]> {
  asked = []
  await call()
  return asked
}

async function made(model: string, values: object = {}): Promise<{ id: number; version: number }> {
  const { id, version } = (await records.create(model, values)).data
  return { id, version }
}

const CONTACT = 'crm.Contact'

describe('groupable writes', () => {
  test('a create may join a group commit', async () => {
    expect(await plainIn(() => records.create(CONTACT, { firstName: 'a' }))).toEqual([{ record: undefined }])
  })

  test('an update or a patch may join a group commit', async () => {
    const { id, version } = await made(CONTACT)
    const record = { record: `${CONTACT} ${id}` }
    expect(await plainIn(() => records.update(CONTACT, id, { version, firstName: 'b' }))).toEqual([record])
    const patch = { version: version + 1, phones: { home: '1' } }
    expect(await plainIn(() => records.update(CONTACT, id, patch, { patch: true }))).toEqual([record])
  })

  test('a write with unconditional permissions may join a group commit', async () => {
    expect(await plainIn(() => withGrant().create(CONTACT, { firstName: 'a' }))).toEqual([
      { record: undefined },
    ])
  })
})

describe('writes that are not groupable', () => {
  const out: Readonly<Record<string, () => Promise<() => Promise<unknown>>>> = {
    'a write with an idempotency key': async () => () =>
      records.create(CONTACT, { firstName: 'a' }, { idempotencyKey: 'key' }),
    'a write that may be merged': async () => {
      const { id, version } = await made(CONTACT)
      return () => records.update(CONTACT, id, { version, firstName: 'b' }, { merge: 'fields' })
    },
    'a create with a new related record': async () => () =>
      records.create('rel.Person', { name: 'a', company: { name: 'new' } }),
    'a create with a list': async () => () => records.create('rel.Person', { circles: [{ name: 'new' }] }),
    'an update that replaces a list': async () => {
      const { id, version } = await made('rel.Company', { name: 'a' })
      return () => records.update('rel.Company', id, { version, addresses: [] })
    },
    'a create with a reference': async () => {
      const { id } = await made('rel.Company', { name: 'a' })
      return () => records.create('rel.Person', { company: { id } })
    },
    'a create with a sequence number': async () => () => records.create('rel.Badge', {}),
    'a create with a secret': async () => () => records.create(CONTACT, { pin: '1234' }),
    'an update of a secret': async () => {
      const { id, version } = await made(CONTACT)
      return () => records.update(CONTACT, id, { version, pin: '1234' })
    },
    'an update of a unique field': async () => {
      const { id, version } = await made('test.Limited', { code: 'aa' })
      return () => records.update('test.Limited', id, { version, code: 'bb' })
    },
    'a create of a role': async () => () => records.create('verso.auth.Role', { name: 'new' }),
    'a create of a webhook': async () => () =>
      records.create('verso.feed.Webhook', {
        name: 'new',
        url: 'https://example.org/',
        secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
      }),
    'a clear of a file': async () => {
      const { id, version } = await made('doc.Folder')
      return () => records.clear('doc.Folder', id, 'cover', { version })
    },
    'a write with conditional permissions': async () => () =>
      withGrant(`self.firstName = 'a'`).create(CONTACT, { firstName: 'a' }),
    'a create with a large text': async () => () => records.create(CONTACT, { notes: 'x'.repeat(20_001) }),
    'a create with a large text in JSON': async () => () =>
      records.create(CONTACT, { phones: ['x'.repeat(20_001)] }),
    'a delete': async () => {
      const { id, version } = await made(CONTACT)
      return () => records.remove(CONTACT, id, { version })
    },
    'a save of several records': async () => () =>
      records.save(CONTACT, [{ firstName: 'a' }, { firstName: 'b' }]),
    'a revert': async () => {
      const { id, version } = await made(CONTACT, { firstName: 'a' })
      await records.update(CONTACT, id, { version, firstName: 'b' })
      return () => records.revert(CONTACT, id, { version: version + 1, to: version })
    },
  }
  for (const [claim, prepare] of Object.entries(out))
    test(`${claim} runs in a transaction of its own`, async () => {
      const plain = await plainIn(await prepare())
      expect(plain.length).toBeGreaterThan(0)
      expect(plain.filter((each) => each !== undefined)).toEqual([])
    })

  test('a plan that lets every write join a group commit is caught', async () => {
    const planned = ['a create with a reference', 'a create with a sequence number', 'an update of a secret']
    records = recordsForPrincipal(groupingEverything(service.app), admin)
    const caught: string[] = []
    for (const claim of planned) {
      const run = await out[claim]?.()
      if (run && (await plainIn(run)).some((each) => each !== undefined)) caught.push(claim)
    }
    records = recordsForPrincipal(service.app, admin)
    expect(caught).toEqual(planned)
  })
})

/** The verbs of a user who may do everything with all records, or with those that meet a condition. */
function withGrant(condition: string | null = null): Records {
  const { catalog } = service.app
  const permission: Permission = {
    ...{ model: CONTACT, actions: new Set(['read', 'create', 'update']), condition },
    ...{ readable: null, writable: null },
  }
  const permissions = new Permissions(catalog, (model) =>
    [buildGrant(catalog, model, permission, {})].flatMap((grant) => grant ?? []),
  )
  return recordsForPrincipal(service.app, { ...admin, permissions })
}
