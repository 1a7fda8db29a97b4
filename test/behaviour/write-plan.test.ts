// The plan of a write names the stages that its draft needs, and only those. A plan that omits one of them is caught.
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildGrant, type Permission } from '../../src/model/access/permission-record.js'
import { Permissions } from '../../src/model/access/permissions.js'
import { readCreateDraft, readUpdateDraft } from '../../src/model/write/draft-reader.js'
import type { App } from '../../src/service/context/app.js'
import { createContext } from '../../src/service/context/context.js'
import { composeHooks } from '../../src/service/context/hooks.js'
import type { Principal } from '../../src/service/context/principal.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import type { Database, Transaction } from '../../src/store/engine/database.js'
import type { Records } from '../../src/wire.js'
import { changesSince } from '../log.js'
import { faceOf } from '../mutants/records.js'
import { omittingStage, planningPlainWrites } from '../mutants/write-plan.js'
import { unsharedTransaction } from '../queryables.js'
import { catchError, countAnew, identityIn, onEveryEngine, startService, type Service } from '../targets.js'

const NOW = '2024-01-02T03:04:05.678Z'
const COMPANY = 'rel.Company'
const PERSON = 'rel.Person'
const CONTACT = 'crm.Contact'

type Stage = Parameters<typeof omittingStage>[0]

onEveryEngine((engine) => {
  let service: Service
  let admin: Principal

  beforeAll(async () => {
    service = await startService(engine)
    admin = await service.app.authorizer.resolvePrincipal(await identityIn(service))
  })
  afterAll(async () => {
    // The mutants have stored references to records that do not exist.
    await countAnew(service, PERSON)
    await service.close()
  })

  /** A user who may update contacts whose first name is `a`. */
  function toLimited(app: App): Principal {
    const permission: Permission = {
      ...{ model: CONTACT, actions: new Set(['read', 'create', 'update']), readable: null, writable: null },
      condition: `self.firstName = 'a'`,
    }
    const permissions = new Permissions(app.catalog, (model) =>
      [buildGrant(app.catalog, model, permission, {})].flatMap((grant) => grant ?? []),
    )
    return { ...admin, permissions }
  }

  /** True if the call fails with this kind. */
  const failsWith = async (kind: string, call: Promise<unknown>) =>
    call.then(
      () => false,
      (error: unknown) => (error as { readonly kind?: string }).kind === kind,
    )

  interface Setting {
    readonly app: App
    readonly records: Records
  }

  /** For each stage a claim that holds only if the stage runs. */
  const CLAIMS: Readonly<Record<Stage, (setting: Setting) => Promise<boolean>>> = {
    locks: async ({ app }) => {
      const statements: string[] = []
      const records = recordsForPrincipal({ ...app, db: noting(app.db, statements) }, admin)
      const { id, version } = (await records.create(COMPANY, { name: 'a' })).data
      statements.splice(0)
      await records.update(COMPANY, id, { version, addresses: [] })
      return (
        app.db.dialect.lockForUpdate === '' || statements.some((sql) => / for (no key )?update/.test(sql))
      )
    },
    sentBack: async ({ records }) => {
      const company = (await records.create(COMPANY, { name: 'a' })).data
      const { id, version } = (await records.create(PERSON, { company: { id: company.id } })).data
      const edited = { id: company.id, $version: company.version, name: 'edited' }
      return failsWith('invalid', records.update(PERSON, id, { version, company: edited }))
    },
    patches: async ({ records }) => {
      const { id, version } = (await records.create(CONTACT, { phones: { home: '1' } })).data
      const patch = { version, phones: { work: '2' } }
      const { data } = await records.update(CONTACT, id, patch, { patch: true })
      return Object.keys(data['phones'] as object).length === 2
    },
    related: async ({ records }) => {
      const { data } = await records.create(PERSON, { name: 'a', company: { name: 'new' } })
      return data['company'] !== null
    },
    references: async ({ records }) =>
      failsWith('invalid', records.create(PERSON, { name: 'a', company: { id: 4_242_424 } })),
    lists: async ({ records }) => {
      const { data } = await records.create(PERSON, { name: 'a', circles: [{ name: 'new' }] })
      return (data['circles'] as readonly unknown[]).length === 1
    },
    files: async ({ app, records }) => {
      const { id, version } = (await records.create('doc.Folder', { title: 'a' })).data
      const content = Readable.from([Buffer.from('content')])
      await records.upload('doc.Folder', { data: { id, version }, field: 'cover', name: 'a.txt', content })
      const changes = await changesSince(app.db.reader, 0, 100_000)
      return Object.hasOwn(changes.at(-1)?.changes ?? {}, 'cover')
    },
    permissions: async ({ app, records }) => {
      const limited = recordsForPrincipal(app, toLimited(app))
      const { id, version } = (await records.create(CONTACT, { firstName: 'b' })).data
      const own = (await records.create(CONTACT, { firstName: 'a' })).data
      return (
        (await failsWith('not-found', limited.update(CONTACT, id, { version, firstName: 'a' }))) &&
        (await failsWith('forbidden', limited.update(CONTACT, own.id, { version: 0, firstName: 'b' }))) &&
        (await failsWith('forbidden', limited.create(CONTACT, { firstName: 'b' })))
      )
    },
    sequences: async ({ records }) => (await records.create('rel.Badge', {})).data['number'] !== null,
    hooks: async ({ app }) => {
      const calls: string[] = []
      const note = (name: string) => (): undefined => {
        calls.push(name)
      }
      const hooks = { beforeSave: note('before'), afterSave: note('after') }
      const { models, transaction } = app.hooks
      const hooked = { ...app, hooks: composeHooks([...models, ['test.Note', hooks]], transaction) }
      await recordsForPrincipal(hooked, admin).create('test.Note', { title: 'a' })
      return calls.join() === 'before,after'
    },
    readsBack: async ({ records }) => {
      const { id, version } = (await records.create(COMPANY, { name: 'a' })).data
      await records.update(COMPANY, id, { version, parent: { id } })
      const { data } = await records.update(COMPANY, id, { version: version + 1, name: 'b' })
      return (data['parent'] as { readonly $version: number }).$version === data.version
    },
  }

  function settingFor(app: App): Setting {
    return { app, records: recordsForPrincipal(app, admin) }
  }

  describe.each(Object.keys(CLAIMS) as Stage[])('the stage %s', (stage) => {
    test('runs for a draft that needs it', async () => {
      expect(await CLAIMS[stage](settingFor(service.app))).toBe(true)
    })

    // SQLite locks the whole database, with or without the stage.
    const isMissed = stage !== 'locks' || engine !== 'sqlite'
    test(`${isMissed ? 'is missed' : 'is not needed'} if a plan omits it`, async () => {
      expect(await CLAIMS[stage](settingFor(omittingStage(stage)(service.app)))).toBe(!isMissed)
    })
  })

  test('a plan that takes every write for a plain one is caught by each claim', async () => {
    const setting = settingFor(planningPlainWrites(service.app))
    const missed: string[] = []
    for (const [stage, claim] of Object.entries(CLAIMS))
      if ((stage !== 'locks' || engine !== 'sqlite') && (await claim(setting))) missed.push(stage)
    expect(missed).toEqual([])
  })

  test('a plain record needs no stage', () => {
    const plans = [
      plan(CONTACT, { firstName: 'a' }),
      plan(CONTACT, { firstName: 'a' }, 3),
      plan('test.Note', { title: 'a' }),
      plan('test.Limited', { code: 'ab' }),
      plan('rel.Address', { city: 'a' }),
      plan('rel.Address', { city: 'a' }, 3),
      plan(CONTACT, { pin: '1234' }, 3),
    ]
    expect(plans.map(({ isPlain }) => isPlain)).toEqual(plans.map(() => true))
  })

  test('a record is not plain if a relation, a hook, a sequence or a permission depends on it', () => {
    const limited = createContext(service.app, toLimited(service.app))
    const plans = [
      plan('verso.auth.User', { name: 'a' }, 3),
      plan('rel.Address', { city: 'a', company: { id: 1 } }),
      plan('rel.Address', { city: 'a', company: null }, 3),
      plan(COMPANY, { name: 'a', addresses: [] }, 3),
      plan('rel.Badge', {}),
      // The model refers to itself.
      plan(COMPANY, { name: 'a' }),
      plan(CONTACT, { firstName: 'a' }, 3, limited),
    ]
    expect(plans.map(({ isPlain }) => isPlain)).toEqual(plans.map(() => false))
  })

  function plan(name: string, data: object, version?: number, context = createContext(service.app, admin)) {
    const model = service.app.catalog.get(name)
    const draft =
      version === undefined
        ? readCreateDraft(service.app.catalog, model, data, NOW)
        : readUpdateDraft(service.app.catalog, model, { data, key: { id: 1, version } }, NOW)
    return service.app.planWrite(context, draft, {})
  }

  test('a plain write with an idempotency key is written once and repeated from its answer', async () => {
    const { records } = settingFor(service.app)
    const idempotencyKey = randomUUID()
    const first = await records.create(CONTACT, { firstName: 'a' }, { idempotencyKey })
    const second = await records.create(CONTACT, { firstName: 'a' }, { idempotencyKey })
    expect(second).toEqual({ data: first.data, replayed: true })
    const other = records.create(CONTACT, { firstName: 'b' }, { idempotencyKey })
    expect((await catchError(other)).kind).toBe('key-reused')
  })
})

/** Notes the statements of transactions. */
function noting(db: Database, statements: string[]): Database {
  const watch = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => {
        statements.push(sql)
        return tx.all(sql, params)
      },
      run: (sql, params) => tx.run(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(watch(tx)), options) }
}
