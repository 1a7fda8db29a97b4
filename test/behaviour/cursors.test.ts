// Paging with cursors during concurrent writes, forged cursors, and cursors over hidden fields.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineModel } from '../../src/index.js'
import type { NextPage, Records, WireRecord } from '../../src/wire.js'
import { grantee, officeModels, PROJECT, rootOf } from '../permissions/office-fixture.js'
import { byOffsetOnly } from '../mutants/cursors.js'
import { seeded } from '../properties/history-fixture.js'
import { enter, onEveryEngine, onEveryTarget, catchError, startService, type Service } from '../targets.js'
import { idsByWalking, pagesOf } from '../paging.js'

const ITEM = 'walk.Item'
const BOX = 'walk.Box'
const definitions = [
  defineModel({ name: BOX, fields: { name: { type: 'string' } } }),
  defineModel({
    name: ITEM,
    fields: {
      title: { type: 'string' },
      essay: { type: 'text', length: 10_000 },
      rank: { type: 'integer' },
      day: { type: 'date' },
      rate: { type: 'decimal', precision: 12, scale: 2 },
      isHot: { type: 'boolean' },
      isKept: { type: 'boolean' },
      box: { type: 'many-to-one', target: BOX },
    },
    indexes: [['rank'], ['day']],
  }),
]
const models = definitions.map((definition) => ({ file: 'walks.ts', definition }))

const SORTS = [undefined, 'rank', '-rank', 'title,-day', '-isHot,rate', 'box,-rank', '-box.id', 'day', '-id']
const KEPT = 16
const OTHERS = 16

function pick<T>(random: () => number, all: readonly T[]): T {
  return all[Math.floor(random() * all.length)] as T
}

function item(random: () => number): Record<string, unknown> {
  return {
    title: pick(random, ['a', 'A', 'é', '', '10', '9', null]),
    rank: pick(random, [-1, 0, 1, 2, null]),
    day: pick(random, ['1999-12-31', '2024-02-29', null]),
    rate: pick(random, ['-1.50', '0', '9.99', '10', null]),
    isHot: pick(random, [true, false, null]),
    box: pick(random, [{ id: 1 }, { id: 2 }, null]),
  }
}

/** A concurrent writer that creates, updates and deletes records other than the kept ones. */
async function write(records: Records, random: () => number): Promise<void> {
  const { data } = await records.find(ITEM, { filter: 'isKept = false', limit: 200 })
  const [one, other]: (WireRecord | undefined)[] = [pick(random, data), pick(random, data)]
  await records.create(ITEM, { ...item(random), isKept: false })
  if (one) await records.update(ITEM, one.id, { version: one.version, ...item(random) })
  if (other && other.id !== one?.id) await records.remove(ITEM, other.id, { version: other.version })
}

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  let kept: ReadonlySet<number>

  beforeAll(async () => {
    service = await startService(engine, { models })
    records = await enter(service, transport)
    const random = seeded(7)
    for (const name of ['b', 'a']) await records.create(BOX, { name })
    const rows = Array.from({ length: KEPT + OTHERS }, (_, index) => ({
      ...item(random),
      isKept: index % 2 === 0,
    }))
    const { data } = await records.save(ITEM, rows)
    kept = new Set(data.filter((record: WireRecord) => record['isKept'] === true).map(({ id }) => id))
  })
  afterAll(() => service.close())

  /** The kept records as paging showed them, and as a plain find orders them. */
  const walkAmongWriters = async (walker: Records, sortBy: string | undefined, seed: number) => {
    const random = seeded(seed)
    const query = { limit: 5, ...(sortBy === undefined ? {} : { sortBy }) }
    const shown: number[] = []
    for await (const { data } of pagesOf(walker, ITEM, query, 60)) {
      shown.push(...data.map(({ id }) => id))
      await Promise.all([write(records, random), write(records, random)].map((each) => each.catch(ignore)))
    }
    const { data } = await records.find(ITEM, { ...query, filter: 'isKept = true', limit: 1_000 })
    return [shown.filter((id) => kept.has(id)), data.map(({ id }) => id)] as const
  }
  // One of two concurrent writers of a record gets a conflict.
  const ignore = () => undefined

  test.for(SORTS)(
    'paging during concurrent writes shows unchanged records once and in order, sorted by %s',
    async (sortBy) => {
      const [shown, expected] = await walkAmongWriters(records, sortBy, SORTS.indexOf(sortBy))
      expect(shown).toEqual(expected)
    },
  )

  test('a mutant that pages by offset is caught', async () => {
    const mutant = byOffsetOnly(records)
    for (let seed = 0; seed < 20; seed++) {
      const [shown, expected] = await walkAmongWriters(mutant, 'rank', seed)
      if (shown.join() !== expected.join()) return
    }
    expect.unreachable('nobody noticed')
  })

  test('a cursor still works after its record was deleted', async () => {
    const made = await records.save(
      ITEM,
      ['x', 'x', 'x', 'y'].map((title) => ({ title, rank: 4_711, isKept: false })),
    )
    const [first, second, third, fourth] = made.data.map(({ id }) => id)
    const query = { filter: 'rank = 4711', sortBy: 'title', limit: 2 }
    const { next } = await records.find(ITEM, query)
    await records.remove(ITEM, second ?? 0, { version: 0 })
    const rest = await records.find(ITEM, { ...query, ...next })
    expect([rest.offset, rest.total, rest.data.map(({ id }) => id), rest.next]).toEqual([
      ...[2, 3, [third, fourth]],
      undefined,
    ])
    await records.removeAll(
      ITEM,
      [first, third, fourth].map((id) => ({ id })),
    )
  })

  test('a page sorted by values too long for a cursor continues by offset', async () => {
    const long = await records.save(
      ITEM,
      ['a', 'b', 'c'].map((letter) => ({ essay: letter.repeat(9_000), isKept: false, rank: 8 })),
    )
    const query = { sortBy: '-essay', limit: 1, filter: 'rank = 8' }
    expect((await records.find(ITEM, query)).next).toEqual({ offset: 1, after: undefined })
    expect(await idsByWalking(records, ITEM, query)).toEqual(long.data.map(({ id }) => id).reverse())
    await records.removeAll(
      ITEM,
      long.data.map(({ id }) => ({ id })),
    )
  })

  describe('rejected cursors', () => {
    const print = (...parts: readonly unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url')
    const asked = { sortBy: 'rank,-title' }
    const wrong: readonly (readonly [what: string, after: unknown, told: string, more?: object])[] = [
      ['an empty text', '', 'is not a cursor'],
      ['no base64', '%%%', 'is not a cursor'],
      ['no JSON', 'bm9uZQ', 'is not a cursor'],
      ['no list', Buffer.from('{"id":1}').toString('base64url'), 'is not a cursor'],
      ['an empty list', print(), 'is not a cursor'],
      [
        'a cursor over the size limit',
        print(['rank', 1], ['-title', 'x'.repeat(9_000)], 1),
        'is not a cursor',
      ],
      ['another order', print(['rank', 1], ['title', 'a'], 1), 'with another sortBy'],
      ['no order', print(1), 'with another sortBy'],
      ['an order where there is none', print(['rank', 1], 1), 'with another sortBy', { sortBy: '' }],
      ['a key that is null', print(null, 1), 'with another sortBy', { sortBy: '' }],
      ['an id that is null', print(null), 'is not a cursor of', { sortBy: '' }],
      ['too few keys', print(['rank', 1], 1), 'with another sortBy'],
      ['too many keys', print(['rank', 1], ['-title', 'a'], ['id', 1], 1), 'with another sortBy'],
      ['no id', print(['rank', 1], ['-title', 'a']), 'with another sortBy'],
      ['an id that is a text', print(['rank', 1], ['-title', 'a'], '1'), 'is not a cursor of'],
      ['an id that is a fraction', print(['rank', 1], ['-title', 'a'], 1.5), 'is not a cursor of'],
      ['an id below 0', print(['rank', 1], ['-title', 'a'], -1), 'is not a cursor of'],
      ['a number that is a text', print(['rank', '1'], ['-title', 'a'], 1), 'is not a cursor of'],
      ['a text that is a number', print(['rank', 1], ['-title', 1], 1), 'is not a cursor of'],
      ['a text that cannot be stored', print(['rank', 1], ['-title', 'a\0'], 1), 'is not a cursor of'],
      ['half of a surrogate pair', print(['rank', 1], ['-title', '\ud800'], 1), 'is not a cursor of'],
      ['a value that is a list', print(['rank', [1]], ['-title', 'a'], 1), 'is not a cursor of'],
      ['a key with more than a value', print(['rank', 1, 2], ['-title', 'a'], 1), 'is not a cursor of'],
      ['base64 with padding', `${print(['rank', 1], ['-title', 'a'], 1)}==`, 'is not a cursor of'],
      ['an invalid date', print(['day', '2024-02-30'], 1), 'is not a cursor of', { sortBy: 'day' }],
      ['an invalid decimal', print(['rate', '1e9'], 1), 'is not a cursor of', { sortBy: 'rate' }],
      ['a cursor with asOf', print(1), 'cannot be combined with asOf', { sortBy: '', asOf: '2100-01-01' }],
    ]
    test.for(wrong)(
      'a find with a malformed cursor is rejected as bad-request: %s',
      async ([, after, told, more]) => {
        const { kind, message } = await catchError(records.find(ITEM, { ...asked, ...more, after }))
        expect([kind, message]).toEqual(['bad-request', expect.stringContaining(told)])
      },
    )

    test('a search with a cursor is rejected', async () => {
      const request = { after: print(1) } as object
      const { message } = await catchError(records.search(ITEM, request))
      expect(message).toContain('after is not a key of this request: use offset, or a find')
    })

    test('a cursor with a changed letter is rejected or is another valid cursor', async () => {
      const { next } = await records.find(ITEM, { ...asked, limit: 3 })
      const after = next?.after ?? ''
      const random = seeded(3)
      for (let times = 0; times < 60; times++) {
        const at = Math.floor(random() * after.length)
        const changed = after.slice(0, at) + pick(random, Array.from('AZaz09-_')) + after.slice(at + 1)
        try {
          await records.find(ITEM, { ...asked, after: changed })
        } catch (error) {
          expect(error).toMatchObject({ kind: 'bad-request' })
        }
      }
    })
  })
})

onEveryEngine((engine) => {
  let service: Service
  beforeAll(async () => {
    service = await startService(engine, { models: officeModels })
  })
  afterAll(() => service.close())

  test('a cursor contains no value that the user may not read', async () => {
    const root = rootOf(service)
    const regions = ['north', 'south', 'east']
    const rows = Array.from({ length: 18 }, (_, index) => ({
      name: `n${index % 4}`,
      secret: `s${17 - index} of ${regions[index % 3] ?? ''}`,
      region: regions[index % 3],
    }))
    await root.save(PROJECT, rows)
    const { client } = await grantee(service, [
      { model: PROJECT, canRead: true, condition: `region != 'east'`, readable: ['name', 'region'] },
      { model: PROJECT, canRead: true, condition: `region = 'north'` },
    ])
    for (const sortBy of ['secret', '-secret', 'secret,-name', '-name,secret']) {
      const plain = await client.find(PROJECT, { sortBy, limit: 100 })
      expect(plain.data).toHaveLength(12)
      const [ids, told]: [number[], string[]] = [[], []]
      for await (const { data, next } of pagesOf(client, PROJECT, { sortBy, limit: 1 })) {
        ids.push(...data.map(({ id }) => id))
        told.push(Buffer.from(next?.after ?? '', 'base64url').toString())
      }
      expect(ids).toEqual(plain.data.map(({ id }) => id))
      expect(told.filter((text) => text.includes('of north')).length).toBeGreaterThan(3)
      expect(told.join()).not.toMatch(/of (south|east)/)
    }
    const blind = await grantee(service, [{ model: PROJECT, canRead: true, readable: ['name'] }])
    const after: NextPage['after'] = Buffer.from(JSON.stringify([['secret', 's'], 1])).toString('base64url')
    const { kind, message } = await catchError(blind.client.find(PROJECT, { sortBy: 'secret', after }))
    expect([kind, message]).toEqual(['bad-request', expect.stringContaining('has no field "secret"')])
  })
})
