// Every answer has a limit in bytes. A larger page is rejected with a limit that fits; a larger record is answered with less.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ModelSource } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { fitsBytes } from '../../src/service/context/answer-limits.js'
import { openDatabase } from '../../src/store/open.js'
import type { Database } from '../../src/store/engine/database.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { betweenStatements, unweighed, withoutPageSnapshots } from '../mutants/answers.js'
import {
  ENGINES,
  enter,
  newLocation,
  onEveryTarget,
  catchError,
  startService,
  type Service,
} from '../targets.js'
import { CountingDatabase } from '../counting-database.js'
import { idsByWalking } from '../paging.js'

const Doc = defineModel({
  name: 'big.Doc',
  fields: {
    title: { type: 'string' },
    body: { type: 'text' },
    extra: { type: 'json' },
    pages: { type: 'one-to-many', target: 'big.Page', mappedBy: 'doc', owned: true },
  },
  listFields: ['title'],
})
const Page = defineModel({
  name: 'big.Page',
  fields: { doc: { type: 'many-to-one', target: 'big.Doc' }, text: { type: 'text' } },
  nameField: 'text',
})
const models: readonly ModelSource[] = [
  { file: 'doc.ts', definition: Doc },
  { file: 'page.ts', definition: Page },
]

const LIMIT = 64 * 1024
const COUNT = 30
const settings = { responseLimitBytes: LIMIT }
/** Plain text, and texts that are two or six times longer as JSON. */
const BODIES = ['x'.repeat(4_000), '"'.repeat(2_500), '\u0001'.repeat(1_000), 'é'.repeat(1_000)]

function sizeOf(records: readonly WireRecord[]): number {
  return Buffer.byteLength(JSON.stringify(records))
}

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  const ids: number[] = []

  beforeAll(async () => {
    service = await startService(engine, { models, settings })
    records = await enter(service, transport)
    for (let number = 0; number < COUNT; number++) {
      const data = { title: `Doc ${100 + number}`, body: BODIES[number % BODIES.length] }
      ids.push((await records.create('big.Doc', data)).data.id)
    }
  })
  afterAll(() => service.close())

  const fields = 'body'
  const questions = [
    ['by id', {}],
    ['after a cursor', { after: 'next' }],
    ['at an offset', { offset: 3 }],
    ['with a filter', { filter: `title like 'doc 1%'` }],
    ['sorted', { sortBy: '-title' }],
    ['sorted at an offset', { sortBy: '-title', offset: 2 }],
  ] as const

  test.for(questions)('a page %s that is too large is rejected with a limit that fits', async ([, asked]) => {
    const { next } = await records.find('big.Doc', { limit: 1 })
    const question = { fields, ...asked, ...('after' in asked ? next : {}) }
    const error = await catchError(records.find('big.Doc', { ...question, limit: 1_000 }))
    expect(error.kind).toBe('too-large')
    const { limit } = error.details.data as { limit: number }
    expect(error.message).toContain(`at most ${limit} records`)
    const page = await records.find('big.Doc', { ...question, limit })
    expect(page.data).toHaveLength(limit)
    expect(page.total).toBe(COUNT)
    expect(sizeOf(page.data)).toBeLessThanOrEqual(LIMIT)
    // The limit is not much lower than necessary.
    expect(sizeOf(page.data)).toBeGreaterThan(LIMIT / 2)
  })

  test('a search answer that is too large is rejected with a limit that fits', async () => {
    const request = { fields: ['body'], data: { criteria: [] } }
    const error = await catchError(records.search('big.Doc', { ...request, limit: 1_000 }))
    expect(error.kind).toBe('too-large')
    const { limit } = error.details.data as { limit: number }
    expect((await records.search('big.Doc', { ...request, limit })).data).toHaveLength(limit)
  })

  test('a page staged on disk equals the records fetched one by one', async () => {
    for (const sortBy of [undefined, 'title']) {
      const { data } = await records.find('big.Doc', { fields, limit: 10, offset: 5, sortBy })
      expect(sizeOf(data)).toBeGreaterThan(LIMIT / 8)
      const single = await Promise.all(
        ids.slice(5, 15).map((id) => records.fetch('big.Doc', id, { fields: ['body'] })),
      )
      expect(data).toEqual(single)
    }
  })

  test('paging with a cursor through pages staged on disk visits every record and ends', async () => {
    for (const sortBy of [undefined, '-title', 'body'])
      expect((await idsByWalking(records, 'big.Doc', { fields, limit: 7, sortBy })).sort(byNumber)).toEqual(
        ids,
      )
  })

  test('the page after the last record is empty', async () => {
    const [last] = (await records.find('big.Doc', { limit: 1, offset: COUNT - 2 })).data
    const { next } = await records.find('big.Doc', { limit: 1, offset: COUNT - 2, sortBy: 'title' })
    expect(last?.id).toBe(ids.at(-2))
    const end = { ...next, sortBy: 'title', limit: 1_000, fields: 'body', filter: 'id < 0' }
    expect((await records.find('big.Doc', end)).data).toEqual([])
  })

  describe('a record over the answer limit', () => {
    let large: number
    beforeAll(async () => {
      const pages = Array.from({ length: 20 }, () => ({ text: 'p'.repeat(4_000) }))
      large = (await records.create('big.Doc', { title: 'Large', pages })).data.id
    })
    afterAll(() => records.remove('big.Doc', large))

    test('a record with a list over the answer limit is rejected as too-large, and can be fetched by fields', async () => {
      const error = await catchError(records.read('big.Doc', large))
      expect([error.kind, error.message]).toEqual(['too-large', expect.stringContaining('"fields"')])
      expect((await records.fetch('big.Doc', large, { fields: ['title'] }))['title']).toBe('Large')
      const page = await records.find('big.Doc', { fields: 'title', limit: 100 })
      expect(page.data).toHaveLength(COUNT + 1)
      const rejectedPage = await catchError(records.find('big.Doc', { fields: 'pages', sortBy: '-id' }))
      expect([rejectedPage.kind, rejectedPage.details.data]).toEqual(['too-large', { limit: 0 }])
    })

    test('a record whose JSON escapes exceed the answer limit is rejected as too-large', async () => {
      const { data } = await records.create('big.Doc', { body: '\u0001'.repeat(LIMIT / 4) })
      expect(data).toEqual({ id: data.id, version: 0 })
      expect((await catchError(records.read('big.Doc', data.id))).kind).toBe('too-large')
      const asked = records.fetch('big.Doc', data.id, { fields: ['body'] })
      expect((await catchError(asked)).kind).toBe('too-large')
      await records.remove('big.Doc', data.id)
    })

    test('a create of a record over the answer limit succeeds and answers with id and version', async () => {
      const { data } = await records.create('big.Doc', { extra: { ['k'.repeat(LIMIT)]: 1 } })
      expect(data).toEqual({ id: data.id, version: 0 })
      await records.remove('big.Doc', data.id)
    })

    test('an update of a record over the answer limit succeeds and answers with id and version', async () => {
      const { data } = await records.update('big.Doc', large, { version: 0, title: 'Larger' })
      expect(data).toEqual({ id: large, version: 1 })
      const shown = await records.fetch('big.Doc', large, { fields: ['title'] })
      expect(shown).toEqual({ id: large, version: 1, title: 'Larger' })
    })

    test('a conflict about a record over the answer limit omits the values', async () => {
      const error = await catchError(records.update('big.Doc', large, { version: 0, title: 'Mine' }))
      expect(error.kind).toBe('conflict')
      expect(error.details.data).toMatchObject({
        ...{ entityId: large, expected: 0, current: 1, isShortened: true },
        ...{ theirs: { id: large, version: 1 }, fields: { title: { verdict: 'clash' } } },
      })
      expect(JSON.stringify(error.details.data).length).toBeLessThan(2_000)
    })
  })

  test('a save of many records over the answer limit answers with ids and versions, also when repeated', async () => {
    const read = await records.search('big.Doc', { limit: 100 })
    const sent = read.data.slice(0, 25).map(({ id, version }) => ({ id, version, title: 'Saved' }))
    const keys = sent.map(({ id, version }) => ({ id, version: version + 1 }))
    const options = { idempotencyKey: `save ${transport}` }
    expect((await records.save('big.Doc', sent, options)).data).toEqual(keys)
    expect(await records.save('big.Doc', sent, options)).toEqual({ data: keys, replayed: true })
    const [stored] = await service.app.db.reader.all(
      'select max(length(answer)) as "n" from verso_idempotency',
    )
    expect(Number(stored?.['n'])).toBeLessThan(LIMIT)
    const few = sent.slice(0, 3).map(({ id, version }) => ({ id, version: version + 1, title: 'Few' }))
    const { data } = await records.save('big.Doc', few)
    expect(data.map((record) => String(record['body']).length)).toEqual(
      BODIES.slice(0, 3).map((body) => body.length),
    )
  })

  test('a batch over the answer limit answers with ids and versions, and with the ids of deleted records', async () => {
    const read = await records.search('big.Doc', { limit: 100 })
    const gone = (await records.create('big.Doc', { title: 'Gone' })).data
    const requests = [
      ...read.data.map(({ id, version }) => ({
        op: 'update',
        model: 'big.Doc',
        id,
        data: { version, title: 'B' },
      })),
      { op: 'delete', model: 'big.Doc', id: gone.id, version: 0 },
    ]
    const { data } = await records.batch(requests, { idempotencyKey: `batch ${transport}` })
    expect(data).toEqual([...read.data.map(({ id, version }) => ({ id, version: version + 1 })), gone.id])
  })

  test('a list with asOf has the same answer limit', async () => {
    const asked = { fields: 'body', asOf: new Date(Date.now() + 1_000).toISOString() }
    const error = await catchError(records.find('big.Doc', { ...asked, limit: 1_000 }))
    expect(error.kind).toBe('too-large')
    expect((await records.find('big.Doc', { ...asked, limit: 5 })).data).toHaveLength(5)
  })

  test('a read or fetch of a missing record is not-found, not too-large', async () => {
    expect((await catchError(records.read('big.Doc', 10 ** 9))).kind).toBe('not-found')
    expect((await catchError(records.fetch('big.Doc', 10 ** 9))).kind).toBe('not-found')
  })

  test('no staged answer remains on disk', () => expect.poll(() => service.app.staging.bytes).toBe(0))
})

/** Errors in the large answers of a service on this database. */
async function faultsOf(
  engine: (typeof ENGINES)[number],
  change: (db: Database) => Database,
): Promise<string[]> {
  const location = await newLocation(engine)
  const opened = await openDatabase(location.url, { poolSize: 6, statementTimeoutMs: 10_000 })
  const database = new CountingDatabase(change(opened))
  const service = await startService(engine, { models, settings, location, database, isNew: true })
  const faults: string[] = []
  try {
    const records = await enter(service, 'http')
    const ids: number[] = []
    for (let number = 0; number < COUNT; number++)
      ids.push((await records.create('big.Doc', { title: 'first', body: BODIES[0] })).data.id)
    const all = { fields: 'title,body', limit: 1_000 }
    // The service checks the size of its answer again, so a page that was not measured shows in what the database sent.
    const characters = await database.charactersOf(async () => {
      const outcome = await catchError(records.find('big.Doc', all))
      if (outcome.kind !== 'too-large') faults.push(`all of them: ${outcome.kind}`)
    })
    if (characters > LIMIT / 8) faults.push(`all of them: ${characters} characters were read`)
    const [, ...others] = ids
    betweenStatements.run = async () => {
      betweenStatements.run = undefined
      await records.updateMass('big.Doc', {
        ...{ data: { criteria: [{ fieldName: 'id', operator: 'in', value: others }] } },
        values: { title: 'second' },
      })
    }
    const page = await records.find('big.Doc', { fields: 'title,body', limit: 10, sortBy: 'id' })
    const titles = new Set(page.data.map((record) => record['title']))
    if (page.data.length !== 10) faults.push(`${page.data.length} records`)
    if (titles.size > 1) faults.push(`of two moments: ${[...titles].join(', ')}`)
  } finally {
    betweenStatements.run = undefined
    await service.close()
    location.remove()
  }
  return faults
}

describe.for(ENGINES)('%s', (engine) => {
  test('a large page comes from one snapshot and has a bounded size', async () => {
    expect(await faultsOf(engine, withoutPageSnapshots(false))).toEqual([])
  })

  test('a mutant that reads the parts of a page outside a snapshot is caught', async () => {
    expect(await faultsOf(engine, withoutPageSnapshots(true))).toEqual([
      expect.stringContaining('of two moments'),
    ])
  })

  test('a mutant that does not measure answers is caught', async () => {
    expect(await faultsOf(engine, unweighed)).toContainEqual(expect.stringContaining('all of them'))
  })
})

function byNumber(a: number, b: number): number {
  return a - b
}

test('the answer limit counts bytes of UTF-8, not characters', () => {
  for (const text of ['x'.repeat(30), 'é'.repeat(15), '漢'.repeat(10), '😀'.repeat(7) + 'xx']) {
    expect([fitsBytes(text, 29), fitsBytes(text, 30)], text).toEqual([false, true])
    expect([fitsBytes(Buffer.from(text), 29), fitsBytes(Buffer.from(text), 30)], text).toEqual([false, true])
  }
})
