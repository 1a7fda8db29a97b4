// Records with every kind of counter, random writes to them, and a check of totals and pages against plain SQL.
import { VersoError } from '../src/errors.js'
import { defineModel } from '../src/model/definition/define-model.js'
import type { ModelSource } from '../src/model/catalog/catalog.js'
import type { Queryable } from '../src/store/engine/database.js'
import type { Page, Records, WireRecord } from '../src/wire.js'

/** Hidden when archived; every type that is counted. */
const Item = defineModel({
  name: 'count.Item',
  archived: true,
  fields: {
    title: { type: 'string' },
    code: { type: 'string', unique: true },
    stage: { type: 'string', selection: ['new', 'won', 'lost'] },
    tag: { type: 'string' },
    rank: { type: 'integer' },
    far: { type: 'long' },
    isHot: { type: 'boolean' },
    day: { type: 'date' },
    key: { type: 'uuid' },
    box: { type: 'many-to-one', target: 'count.Box' },
    label: { type: 'string', length: 40, computed: '{stage}/{isHot}' },
  },
  indexes: [['stage'], ['tag'], ['rank'], ['far'], ['isHot'], ['day'], ['key'], ['label']],
})

/** Nothing of it is hidden, and items are part of it. */
const Box = defineModel({
  name: 'count.Box',
  fields: {
    name: { type: 'string' },
    kind: { type: 'string' },
    items: { type: 'one-to-many', target: 'count.Item', mappedBy: 'box', owned: true },
  },
  indexes: [['kind']],
})

export const [ITEM, BOX] = ['count.Item', 'count.Box'] as const
export const models: readonly ModelSource[] = [Item, Box].map((definition) => ({
  file: 'test/counter-fixture.ts',
  definition,
}))

/** The conditions on each field, as a filter and as SQL for both engines. */
const QUESTIONS: Readonly<Record<string, readonly (readonly [filter: string, sql: string])[]>> = {
  [ITEM]: [
    ...texts('stage', ['new', 'won', 'lost', 'never']),
    ...texts('tag', ['', 'a', 'A', 'é', '=', 'x y']),
    ...texts('label', ['new/true', 'won/', '/']),
    ...[-1, 0, 1, 7].map((value) => [`rank = ${value}`, `"rank" = ${value}`] as const),
    ...[2 ** 53 - 1, -(2 ** 40)].map((value) => [`far = ${value}`, `"far" = ${value}`] as const),
    ...texts('day', ['2024-02-29', '1999-12-31']),
    ...texts('key', ['00000000-0000-4000-8000-00000000000a']),
    ['isHot = true', '"isHot"'],
    ['isHot = false', 'not "isHot"'],
    ...[1, 2, 3].map((id) => [`box = ${id}`, `"box" = ${id}`] as const),
    ...['stage', 'tag', 'rank', 'far', 'day', 'key', 'isHot', 'box', 'label'].map(
      (field) => [`${field} is null`, `"${field}" is null`] as const,
    ),
  ],
  [BOX]: [...texts('kind', ['flat', 'tall']), ['kind is null', '"kind" is null']],
}

function texts(field: string, values: readonly string[]) {
  return values.map((value) => [`${field} = '${value}'`, `"${field}" = '${value}'`] as const)
}

/** A number from 0 up to, but not with, 1. */
export type Random = () => number

export class CounterFixture {
  #codes = 0

  constructor(
    private readonly random: Random,
    /** Sets apart what several of them make. */
    private readonly name: string,
  ) {}

  /** Runs `many` writes in sequence. Some of them fail, also in the middle of a transaction. */
  async write(records: Records, many: number): Promise<void> {
    for (let i = 0; i < many; i++) {
      const act = this.#one(ACTS)
      try {
        await act(this, records)
      } catch (error) {
        if (!(error instanceof VersoError)) throw error
      }
    }
  }

  #one<T>(all: readonly T[]): T {
    return all[Math.floor(this.random() * all.length)] as T
  }

  chance(): boolean {
    return this.random() < 0.3
  }

  item(): Record<string, unknown> {
    const all: Record<string, readonly unknown[]> = {
      title: ['t', null],
      stage: ['new', 'won', 'lost', null],
      tag: ['', 'a', 'A', 'é', '=', 'x y', null],
      rank: [-1, 0, 1, 7, null],
      far: [2 ** 53 - 1, -(2 ** 40), null],
      isHot: [true, false, null],
      day: ['2024-02-29', '1999-12-31', null],
      key: ['00000000-0000-4000-8000-00000000000a', null],
      box: [{ id: 1 }, { id: 2 }, { id: 3 }, null],
      archived: [true, false, false, null],
    }
    const some = Object.entries(all).filter(() => this.random() < 0.4)
    return Object.fromEntries(some.map(([name, values]) => [name, this.#one(values)]))
  }

  newItem(): Record<string, unknown> {
    return { ...this.item(), code: `${this.name} ${++this.#codes}` }
  }

  async some(records: Records, model: string = ITEM): Promise<WireRecord[]> {
    const { total } = await records.find(model, { archived: true, limit: 0 })
    const offset = Math.floor(this.random() * Math.max(1, total - 4))
    return [...(await records.find(model, { archived: true, offset, limit: 4 })).data]
  }
}

type Act = (fixture: CounterFixture, records: Records) => Promise<unknown>

const create: Act = (fixture, records) => records.create(ITEM, fixture.newItem())

const ACTS: readonly Act[] = [
  create,
  create,
  (fixture, records) => records.save(ITEM, [fixture.newItem(), fixture.newItem(), fixture.newItem()]),
  (fixture, records) =>
    records.create(BOX, { name: 'b', kind: fixture.chance() ? 'flat' : 'tall', items: [fixture.newItem()] }),
  async (fixture, records) => {
    const [item] = await fixture.some(records)
    if (item) await records.update(ITEM, item.id, { version: item.version, ...fixture.item() })
  },
  async (fixture, records) => {
    const [item] = await fixture.some(records)
    if (item) await records.update(ITEM, item.id, { version: item.version, archived: fixture.chance() })
  },
  async (fixture, records) => {
    const [item] = await fixture.some(records)
    if (item) await records.remove(ITEM, item.id, { version: item.version })
  },
  async (fixture, records) => records.removeAll(ITEM, (await fixture.some(records)).slice(0, 2)),
  async (fixture, records) => {
    const data = { criteria: [{ fieldName: 'rank', operator: '=', value: 7 }] }
    await records.updateMass(ITEM, {
      data,
      values: { rank: fixture.chance() ? 0 : 1, archived: fixture.chance() },
    })
  },
  // Back to what it held, also from a delete.
  async (fixture, records) => {
    const [item] = await fixture.some(records)
    if (!item) return
    if (fixture.chance()) await records.remove(ITEM, item.id, { version: item.version })
    const { data } = await records.history(ITEM, item.id)
    const version = data[0]?.version ?? 0
    await records.revert(ITEM, item.id, { version, to: Math.max(0, version - 2) })
  },
  // Owned members come, change and go with their owner.
  async (fixture, records) => {
    const [box] = await fixture.some(records, BOX)
    if (!box) return
    const { version, items } = await records.read(BOX, box.id)
    const kept = (items as readonly WireRecord[]).filter(() => fixture.chance()).map(({ id }) => ({ id }))
    await records.update(BOX, box.id, { version, items: [...kept, fixture.newItem()] })
  },
  async (fixture, records) => {
    const [box] = await fixture.some(records, BOX)
    if (box && box.id > 3) await records.remove(BOX, box.id, { version: box.version })
  },
  // All of it, or nothing: where the last request fails, all before it was done already.
  async (fixture, records) => {
    const [first, second] = await fixture.some(records)
    const fails = fixture.chance()
    await records.batch([
      { op: 'create', model: ITEM, ref: 'new', data: fixture.newItem() },
      ...(first ? [{ op: 'delete', model: ITEM, id: first.id, version: first.version }] : []),
      ...(second
        ? [{ op: 'update', model: ITEM, id: second.id, version: second.version, data: fixture.item() }]
        : []),
      { op: 'create', model: BOX, data: { kind: 'flat', items: [fixture.newItem()] } },
      ...(fails ? [{ op: 'assert', model: BOX, id: 1, version: 4_711 }] : []),
    ])
  },
]

const PAGE = 3
const MAX_BOUNDARIES = 40
const MAX_RANDOM = 10

/** The totals and pages of finds that differ from plain SQL. Call it while nothing writes. */
export async function wrongTotals(records: Records, db: Queryable, random: Random): Promise<string[]> {
  const wrong: string[] = []
  for (const [model, questions] of Object.entries(QUESTIONS)) {
    const visible = model === ITEM ? '"archived" is not true' : '1 = 1'
    const idsBy = async (where: string) =>
      (await db.all(`select "id" from "${model}" where ${visible} and ${where} order by "id"`)).map((row) =>
        Number(row['id']),
      )
    const expect = (what: string, offset: number, ids: readonly number[], page: Page) => {
      const [told, right] = [page.data.map(({ id }) => id), ids.slice(offset, offset + PAGE)]
      if (page.total !== ids.length) wrong.push(`${model} ${what}: ${page.total} and not ${ids.length}`)
      if (told.join() !== right.join())
        wrong.push(`${model} ${what} @${offset}: ${told.join()} and not ${right.join()}`)
    }
    const all = await idsBy('1 = 1')
    for (const offset of offsetsIn(all, random))
      expect('all', offset, all, await records.find(model, { offset, limit: PAGE }))
    for (const [filter, sql] of questions) {
      const ids = await idsBy(sql)
      const offset = Math.floor(random() * (ids.length + 1))
      for (const at of new Set([0, offset]))
        expect(filter, at, ids, await records.find(model, { filter, offset: at, limit: PAGE }))
    }
  }
  return wrong
}

/** At every boundary of blocks, unless they are too many, and anywhere. */
function offsetsIn(ids: readonly number[], random: Random): Set<number> {
  const blockOf = (index: number) => Math.floor((ids[index] ?? 0) / 256)
  const boundaries = ids.flatMap((_, index) =>
    index > 0 && blockOf(index) !== blockOf(index - 1) ? [index] : [],
  )
  const some = boundaries.length <= MAX_BOUNDARIES ? boundaries : boundaries.filter(() => random() < 0.2)
  const anywhere = Array.from({ length: MAX_RANDOM }, () => Math.floor(random() * (ids.length + 1)))
  const around = some.flatMap((index) => [index - 1, index, index + 1])
  return new Set([0, 1, ...around, ...anywhere, Math.max(0, ids.length - 1), ids.length, ids.length + 300])
}
