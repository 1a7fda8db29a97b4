// Exports of a search as CSV, streamed: safe to open, never silently truncated, and no faster than the reader.
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatCsvLine } from '../../src/formats/csv.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { exportSearch } from '../../src/service/transfer/export.js'
import { importRecords } from '../../src/service/transfer/import.js'
import type { Database, QueryPool } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records } from '../../src/wire.js'
import { CountingDatabase } from '../counting-database.js'
import { searchingBy } from '../query-pool.js'
import {
  enter,
  preparedLocation,
  onEngineOfTier,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { modelOf } from '../transfer/transfer-fixture.js'
import { expectError, JSON_BODY, openSession, send, type Answer } from './exchange.js'
import { createContext } from '../../src/service/context/context.js'
import { unshared } from '../queryables.js'

const MANY = 50_000
/** The first page is sent by then, and other searches may still run. */
const SOME_PAGES = 20

/** Fails from its n-th search on, or silently returns nothing from then on. */
class Ailing implements Database {
  left = Infinity
  isSilent = false
  readonly reader: Database['reader']
  readonly queryPool: QueryPool

  constructor(private readonly inner: Database) {
    this.reader = inner.reader
    this.queryPool = searchingBy(inner.queryPool, (queryable) =>
      unshared({
        all: async (sql, params) => {
          if (--this.left >= 0) return queryable.all(sql, params)
          if (this.isSilent) return []
          throw new Error('the disk is gone')
        },
      }),
    )
  }

  get dialect() {
    return this.inner.dialect
  }

  get commits() {
    return this.inner.commits
  }

  writability: Database['writability'] = () => this.inner.writability()
  gauges: Database['gauges'] = () => this.inner.gauges()
  measure: Database['measure'] = () => this.inner.measure()

  get blobs() {
    return this.inner.blobs
  }

  transaction: Database['transaction'] = (work, options) => this.inner.transaction(work, options)
  close = () => this.inner.close()
}

interface Received {
  readonly isComplete: boolean
  readonly text: string
}

onEngineOfTier((engine) => {
  let location: DatabaseLocation
  let counting: CountingDatabase
  let ailing: Ailing
  let service: Service
  let records: Records
  let session: string

  beforeAll(async () => {
    location = await preparedLocation(engine)
    counting = new CountingDatabase(
      await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 }),
    )
    ailing = new Ailing(counting)
    service = await startService(engine, { location, database: ailing, expects: ['internal'] })
    records = await enter(service, 'direct')
    session = await openSession(service.url)
  })
  afterAll(async () => {
    await service.close()
    location.remove()
  })

  const headers = () => ({ ...JSON_BODY, cookie: session })

  async function table(model: string, body: object = {}): Promise<Answer> {
    const path = `/ws/rest/${model}/export`
    return send(service.url, { method: 'POST', path, headers: headers(), body: JSON.stringify(body) })
  }

  describe('cells', () => {
    beforeAll(async () => {
      await records.create('test.Everything', {
        ...{ label: '=HYPERLINK("x")', note: '@a,\n"b"', whole: -5, price: '-1.50', day: '2024-01-31' },
        ...{ active: true, extra: ['-'], state: 'draft' },
      })
      await records.create('test.Everything', { label: '-1', note: '\tx', extra: '+1', whole: null })
      await records.create('rel.Company', {
        code: 'A',
        name: '=Acme',
        addresses: [{ city: 'Oslo' }, { city: '+1' }],
      })
      await records.create('rel.Person', { name: '-Ada', company: { id: 1 } })
      await records.create('test.Note', { title: 'seen' })
      await records.create('test.Note', { title: 'put away', archived: true })
    })

    test('an exported text that looks like a formula is escaped; numbers and dates are unchanged', async () => {
      const fields = ['id', 'label', 'note', 'whole', 'price', 'day', 'active', 'extra', 'state']
      const answer = await table('test.Everything', { fields })
      expect(answer.headers).toMatchObject({
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': 'attachment; filename="everything.csv"',
      })
      expect(answer.text).toBe(
        [
          'id,label,note,whole,price,day,active,extra,state',
          `1,"'=HYPERLINK(""x"")","'@a,\n""b""",-5,-1.50,2024-01-31,true,"[""-""]",draft`,
          `2,'-1,'\tx,,,,,"""+1""",`,
          '',
        ].join('\r\n'),
      )
    })

    test('an export shows related records by name, and paths by their value', async () => {
      const { text } = await table('rel.Person', {
        fields: ['name', 'company', 'company.code', 'company.name', 'boss'],
      })
      expect(text).toBe(`name,company,company.code,company.name,boss\r\n'-Ada,'=Acme,A,'=Acme,\r\n`)
      const lists = await table('rel.Company', { fields: ['addresses'] })
      expect(lists.text).toBe('addresses\r\nOslo | +1\r\n')
    })

    test('an export without fields has the list fields', async () => {
      expect((await table('rel.Company', { fields: [] })).text).toBe(`code,name\r\nA,'=Acme\r\n`)
    })

    test('an export contains archived records only on request', async () => {
      const fields = ['title']
      expect((await table('test.Note', { fields })).text).toBe('title\r\nseen\r\n')
      const all = await table('test.Note', { fields, data: { _archived: true } })
      expect(all.text).toBe('title\r\nseen\r\nput away\r\n')
    })

    test('an export contains only the records that match the criteria', async () => {
      const criteria = [{ fieldName: 'whole', operator: '=', value: -5 }]
      const { text } = await table('test.Everything', { fields: ['id'], data: { criteria } })
      expect(text).toBe('id\r\n1\r\n')
    })
  })

  test('an invalid export is an ordinary error', async () => {
    expectError(await table('rel.Nobody'), 404, 'unknown-model')
    expectError(await table('rel.Person', { fields: ['nme'] }), 400, 'bad-request')
    expectError(await table('rel.Person', { sortBy: ['name'], limit: 5 }), 400, 'bad-request')
    expectError(await table('crm.Contact', { fields: ['pin'] }), 400, 'bad-request')
    const anonymous = await send(service.url, { method: 'POST', path: '/ws/rest/rel.Person/export' })
    expectError(anonymous, 401, 'unauthenticated')
    ailing.left = 0
    const failed = await table('rel.Person')
    ailing.left = Infinity
    expect(failed.status).toBe(500)
  })

  describe(`an export of ${MANY} records`, () => {
    const notes = 'x'.repeat(600)
    const lineLength = formatCsvLine(['10000', notes]).length

    beforeAll(async () => {
      const source = {
        ...{ name: 'many', model: modelOf(service.app, 'crm.Contact') },
        read: async function* () {
          for (let start = 1; start <= MANY; start += 1_000)
            yield Array.from({ length: 1_000 }, (_, index) => ({
              line: start + index,
              input: { id: start + index, notes },
            }))
        },
      }
      await importRecords(service.app, [source])
    })

    /** Stops reading after the first chunk, then calls `then`. */
    async function readSlowly(
      url: string,
      then: (response: http.IncomingMessage) => Promise<void>,
    ): Promise<Received> {
      const { hostname, port } = new URL(url)
      const path = '/ws/rest/crm.Contact/export'
      const request = http.request({ hostname, port, path, method: 'POST', headers: headers(), agent: false })
      request.on('error', () => undefined)
      request.end(JSON.stringify({ fields: ['id', 'notes'] }))
      const response = await new Promise<http.IncomingMessage>((resolve) => request.once('response', resolve))
      let text = ''
      response.setEncoding('utf8').on('error', () => undefined)
      const closed = new Promise((resolve) => response.once('close', resolve))
      response.once('data', (chunk: string) => {
        text += chunk
        response.pause()
        void then(response).then(() => {
          response.on('data', (more: string) => (text += more)).resume()
        })
      })
      await closed
      return { isComplete: response.complete, text }
    }

    /** Waits until no page was read during several responses to other requests. */
    async function untilStill(): Promise<number> {
      for (let [before, quiet] = [-1, 0]; ;) {
        await records.search('test.Note', {
          data: { criteria: [{ fieldName: 'id', operator: '>', value: 0 }] },
        })
        const now = counting.pages
        quiet = now === before ? quiet + 1 : 0
        before = now
        if (quiet === 100) return now
      }
    }

    test('a slow reader gets the whole export, and the service reads no further than the reader', async () => {
      const before = counting.pages
      let whilePaused = 0
      const { text, isComplete } = await readSlowly(service.url, async () => {
        whilePaused = (await untilStill()) - before
      })
      const all = counting.pages - before
      expect(isComplete).toBe(true)
      expect(text.length).toBeGreaterThan(MANY * (lineLength - 5))
      expect(text.split('\r\n')).toHaveLength(MANY + 2)
      expect(whilePaused).toBeLessThan(all / 2)
    })

    test('the mutant export without backpressure is caught', async () => {
      let finish: () => void = () => undefined
      const finished = new Promise<void>((resolve) => (finish = resolve))
      const hasty = http.createServer((_, response) => {
        void (async () => {
          const model = modelOf(service.app, 'crm.Contact')
          const { pages } = exportSearch(createContext(service.app, SERVICE_PRINCIPAL), model, {
            fields: ['id', 'notes'],
          })
          for await (const page of pages)
            response.write(page.map((record) => `${String(record['notes'])}\r\n`).join(''))
          response.end()
          finish()
        })()
      })
      await new Promise<void>((resolve) => hasty.listen(0, '127.0.0.1', resolve))
      const before = counting.pages
      let whilePaused = 0
      await readSlowly(`http://127.0.0.1:${(hasty.address() as AddressInfo).port}`, async () => {
        // With backpressure, this export would never end.
        await finished
        whilePaused = counting.pages - before
      })
      hasty.close()
      expect(whilePaused).toBe(counting.pages - before)
      expect(whilePaused).toBeGreaterThanOrEqual(MANY / 500)
    })

    test('an export ends when its reader disconnects', async () => {
      const before = counting.pages
      await readSlowly(service.url, async (response) => {
        response.destroy()
      })
      const asked = (await untilStill()) - before
      expect(asked).toBeLessThan(MANY / 500 / 2)
      expect(await untilStill()).toBe(before + asked)
    })

    test('an export that fails midway breaks the connection off, so a part is never taken for the whole', async () => {
      ailing.left = SOME_PAGES
      const broken = await readSlowly(service.url, async () => undefined)
      expect(broken).toMatchObject({ isComplete: false })
      ailing.left = SOME_PAGES
      ailing.isSilent = true
      const received = await readSlowly(service.url, async () => undefined)
      ailing.isSilent = false
      ailing.left = Infinity
      expect(received).toMatchObject({ isComplete: true })
      expect(received.text.split('\r\n').length).toBeLessThan(MANY)
    })
  })
})
