// A backup is restored into both engines, with everything that a service stores.
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { WEBHOOK_MODEL } from '../../src/model/catalog/webhook-models.js'
import type { SchemaPlan } from '../../src/store/schema/plan.js'
import { createKey } from '../../src/service/auth/keys.js'
import { createContext } from '../../src/service/context/context.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { restoreBackup } from '../../src/service/backup/restore.js'
import { STORAGE_CHECKS, runStorageCheck } from '../../src/service/maintenance/verification.js'
import type { Database } from '../../src/store/engine/database.js'
import { readNewestTime } from '../../src/store/log/clock.js'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { faceOf } from '../mutants/records.js'
import {
  ENGINES,
  enter,
  identityIn,
  newLocation,
  PASSWORD,
  startService,
  USERNAME,
  type Service,
} from '../targets.js'
import { backupOf, DATABASE_OPTIONS, restoredLocation, schemaOf } from './backup-fixture.js'
import { exported, fill } from './transfer-fixture.js'

const [CONTACT, COMPANY] = ['crm.Contact', 'rel.Company']

const AHEAD_MS = 2 * 24 * 60 * 60_000

/** A database whose clock is ahead of that of this process. */
function aheadByDays(db: Database): Database {
  const nowMs = `(${db.dialect.clock.nowMs} + ${AHEAD_MS})`
  return { ...faceOf(db), dialect: { ...db.dialect, clock: { ...db.dialect.clock, nowMs } } }
}

/** Answers that a restored service must give, too. */
async function factsOf(service: Service, contact: number): Promise<unknown> {
  const { app } = service
  const client = await enter(service, 'direct')
  const changes = []
  for (let since = 0; ;) {
    const page = await client.changes({ since })
    changes.push(...page.data)
    if (page.data.length === 0) break
    since = page.next
  }
  return {
    records: await exported(app),
    changes,
    history: await client.history(CONTACT, contact),
    before: await client.readAt(CONTACT, contact, 0),
    deleted: await client.deleted('rel.Badge'),
    webhooks: (await client.search(WEBHOOK_MODEL)).data,
    roles: (await client.search('verso.auth.Role')).data,
    permissions: (await client.search('verso.auth.Permission')).data,
    keys: (await client.search('verso.auth.ApiKey')).data,
  }
}

describe.each(ENGINES.flatMap((from) => ENGINES.map((to) => ({ from, to }))))(
  'a backup of $from restored into $to',
  ({ from, to }) => {
    test('gives the same answers, also to keys and to repeated requests', async () => {
      const source = await startService(from)
      const client = await HttpClient.login(source.url, USERNAME, PASSWORD)
      await fill(source.app, client)
      const { id } = (await client.create(CONTACT, { firstName: 'Mary', lastName: 'Harper' })).data
      await client.update(CONTACT, id, { version: 0, lastName: 'Wells' })
      await client.create(WEBHOOK_MODEL, {
        name: 'receiver',
        url: 'https://receiver.example.org/',
      })
      const repeated = () => ['POST', `/ws/rest/${COMPANY}/1`] as const
      const write = { data: { version: (await client.read(COMPANY, 1)).version, name: 'Written once' } }
      const idempotent = { 'Idempotency-Key': 'once' }
      const first = await client.request(...repeated(), write, idempotent)
      expect(first.status).toBe(200)
      const { key } = await createKey(createContext(source.app, SERVICE_PRINCIPAL), {
        user: (await identityIn(source)).id,
        name: 'for programs',
      })
      const facts = await factsOf(source, id)
      const backup = await backupOf(source.app.db)
      await source.close()

      const location = await restoredLocation(to, backup)
      const plans: SchemaPlan[] = []
      const restored = await startService(to, { location, onSchemaApplied: (plan) => plans.push(plan) })
      expect(plans.map(({ steps }) => steps)).toEqual([[]])
      expect(await factsOf(restored, id)).toEqual(facts)
      // The session of the backed-up service has ended.
      const ended = await fetch(`${restored.url}/ws/rest/${CONTACT}`, { headers: { cookie: client.cookie } })
      expect(ended.status).toBe(401)
      const byKey = await fetch(`${restored.url}/ws/rest/${CONTACT}/${id}`, {
        headers: { authorization: `Bearer ${key}` },
      })
      expect(byKey.status).toBe(200)
      const again = await HttpClient.login(restored.url, USERNAME, PASSWORD)
      const replayed = await again.request(...repeated(), write, idempotent)
      expect([replayed.status, replayed.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
      expect(await replayed.json()).toEqual(await first.json())
      for (const [name, check] of Object.entries(STORAGE_CHECKS)) {
        const { findings } = await runStorageCheck(name, check, restored.app)
        expect(findings.lines).toEqual([])
      }
      // Ids of deleted records stay used.
      const badge = await again.create('rel.Badge', {})
      const lastBadge = Math.max(...(await again.changes({ since: 0 })).data.map((change) => change.id))
      expect(lastBadge).toBeGreaterThanOrEqual(badge.data.id)
      await restored.close()
      location.remove()
    })

    test('has the time of the database, and so has the event of its restore', async () => {
      const source = await startService(from)
      const backup = await backupOf(aheadByDays(source.app.db))
      await source.close()
      const location = await newLocation(to)
      const db = await openDatabase(location.url, DATABASE_OPTIONS)
      const { header } = await restoreBackup(aheadByDays(db), { source: Readable.from([backup]) })
      const eventMs = (await readNewestTime(db.reader, db.dialect)) ?? 0
      await db.close()
      location.remove()
      for (const ms of [header.takenAtMs, eventMs])
        expect(Math.abs(ms - Date.now() - AHEAD_MS)).toBeLessThan(AHEAD_MS / 2)
    })

    test('has the tables and indexes that a start creates', async () => {
      const source = await startService(from)
      const backup = await backupOf(source.app.db)
      await source.close()
      const location = await restoredLocation(to, backup)
      const restored = await openDatabase(location.url, DATABASE_OPTIONS)
      const fresh = await startService(to)
      try {
        expect(await schemaOf(to, restored)).toEqual(await schemaOf(to, fresh.app.db))
      } finally {
        await restored.close()
        await fresh.close()
      }
    })
  },
)
