// Limits of large answers: how much is measured, and failures that must stay contained.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Catalog, type ModelSource } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { FindQuery } from '../../src/model/query/search.js'
import { openDatabase } from '../../src/store/open.js'
import { StagedFile } from '../../src/store/engine/staging.js'
import { computeMaxBytes } from '../../src/store/sql/byte-size.js'
import type { Records } from '../../src/wire.js'
import { membersWithoutEnd, withoutHeavy } from '../mutants/answers.js'
import { CountingDatabase } from '../counting-database.js'
import {
  ENGINES,
  enter,
  newLocation,
  catchError,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'

const models: readonly ModelSource[] = [
  defineModel({
    name: 'big.Board',
    fields: { notes: { type: 'one-to-many', target: 'big.Note', mappedBy: 'board' } },
  }),
  defineModel({
    name: 'big.Note',
    fields: { board: { type: 'many-to-one', target: 'big.Board' }, text: { type: 'string' } },
    nameField: 'text',
  }),
  defineModel({ name: 'big.Memo', fields: { text: { type: 'text' } }, listFields: ['text'] }),
  defineModel({
    name: 'big.Titled',
    fields: {
      note: { type: 'text' },
      source: { type: 'text' },
      title: { type: 'string', computed: '{source}' },
    },
    listFields: ['note', 'title'],
  }),
  defineModel({
    name: 'big.Label',
    fields: {
      text: { type: 'text' },
      long: { type: 'string', computed: '{text}', length: 50_000 },
      short: { type: 'string', computed: '{text}', length: 10 },
      any: { type: 'string', computed: '{text}' },
    },
  }),
].map((definition) => ({ file: `${definition.name}.ts`, definition }))

/** More members than an answer holds; the number that a list shows would fit. */
const COUNT = 1_250
const settings = { responseLimitBytes: 260_000 }

test.for(ENGINES)('%s: no more members of a list are measured than are read', async (engine) => {
  const location = await newLocation(engine)
  const opened = await openDatabase(location.url, { poolSize: 6, statementTimeoutMs: 10_000 })
  let isBroken = false
  const database = membersWithoutEnd(opened, () => isBroken)
  const service = await startService(engine, { models, settings, location, database, isNew: true })
  try {
    const records = await enter(service, 'direct')
    const board = (await records.create('big.Board', {})).data
    const notes = Array.from({ length: COUNT }, () => ({ board: { id: board.id }, text: 'n'.repeat(150) }))
    for (let start = 0; start < COUNT; start += 700)
      await records.save('big.Note', notes.slice(start, start + 700))
    const message = async () =>
      (await catchError(records.fetch('big.Board', board.id, { fields: ['notes'] }))).message
    expect(await message()).toContain('more than 1000 members')
    // A mutant that measures all of them is caught.
    isBroken = true
    expect(await message()).toContain('is larger than')
  } finally {
    await service.close()
    location.remove()
  }
})

describe.each(ENGINES)('%s: pages of texts', (engine) => {
  /** More than a quarter of the memory limit, and less than half. */
  const lengths = [10, 20, 0, 30, 10, 12_000, 20, 30]
  const texts = lengths.map((length) => 'm'.repeat(length))
  let isBroken = false
  let location: DatabaseLocation
  let database: CountingDatabase
  let service: Service
  let records: Records

  beforeAll(async () => {
    location = await newLocation(engine)
    const opened = await openDatabase(location.url, { poolSize: 6, statementTimeoutMs: 10_000 })
    database = new CountingDatabase(withoutHeavy(opened, () => isBroken))
    service = await startService(engine, { models, settings, location, database, isNew: true })
    records = await enter(service, 'http')
    for (const text of texts) await records.create('big.Memo', { text })
  })
  afterAll(async () => {
    await service.close()
    location.remove()
  })

  async function read(query: FindQuery, model = 'big.Memo') {
    let shown: readonly unknown[] = []
    const statements = await database.statementsOf(async () => {
      shown = (await records.find(model, { limit: 4, ...query })).data.map(({ text }) => text)
    })
    return { shown, statements: statements.filter((sql) => sql.includes(model)).length }
  }

  test('a page of texts takes one statement', async () => {
    await read({})
    expect(await read({})).toEqual({ shown: texts.slice(0, 4), statements: 1 })
  })

  test('a page of texts after a cursor takes one statement, or three if it is large', async () => {
    const [, second = 0] = (await records.find('big.Memo', { limit: 2 })).data.map(({ id }) => id)
    const after = Buffer.from(JSON.stringify([second])).toString('base64url')
    expect(await read({ limit: 3, after })).toEqual({ shown: texts.slice(2, 5), statements: 1 })
    expect(await read({ after })).toEqual({ shown: texts.slice(2, 6), statements: 3 })
  })

  test('computed text without a declared length is measured', async () => {
    await records.create('big.Titled', { source: 's'.repeat(100) })
    const statementsOf = async () => (await read({ limit: 2 }, 'big.Titled')).statements
    expect(await statementsOf()).toBe(1)
    // More than half of the memory limit.
    await records.create('big.Titled', { source: 's'.repeat(17_000) })
    expect(await statementsOf()).toBe(3)
  })

  const holdsAll = async () => {
    expect(await read({ offset: 4 })).toEqual({ shown: texts.slice(4), statements: 3 })
  }
  test('a page contains a record that exceeds its share', holdsAll)
  test('a mutant that omits a record over its share is caught', async () => {
    isBroken = true
    await expect(holdsAll()).rejects.toThrow('deeply equal')
    isBroken = false
  })
})

test('computed text counts with its declared length, or with that of a label', () => {
  const model = Catalog.from(models).get('big.Label')
  const most = ['long', 'short', 'any'].map((key) => {
    const field = model.fields.get(key)
    return computeMaxBytes({ model, versionKeys: [], entries: field ? [{ key, steps: [], field }] : [] })
  })
  const around = (key: string) => 56 + 6 + key.length
  expect(most).toEqual([200_000 + around('long'), 40 + around('short'), 4_080 + around('any')])
})

test('a staged answer whose file cannot be closed causes no unhandled rejection', async () => {
  const failures: unknown[] = []
  const note = (reason: unknown) => failures.push(reason)
  process.on('unhandledRejection', note)
  // No process has so many descriptors.
  new StagedFile(2 ** 30, () => undefined).discard()
  // Node reports a rejection before the next tick of the event loop.
  await new Promise(setImmediate)
  process.off('unhandledRejection', note)
  expect(failures).toEqual([])
})
