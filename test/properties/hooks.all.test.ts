// Requests and hooks that write at random: the Log, the history of each record and the counters always agree with the records.
import { expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { HooksOf } from '../../src/model/definition/hooks.js'
import type { TransactionRecords } from '../../src/model/definition/typed-records.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createRecordsHandle } from '../../src/service/hooks/records-handle.js'
import { runStorageCheck, STORAGE_CHECKS } from '../../src/service/maintenance/verification.js'
import { ChangeSet } from '../../src/service/write/change-set.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { changesSince } from '../log.js'
import { enter, onEveryEngine, startService, type Engine, type Service } from '../targets.js'
import { seeded } from './history-fixture.js'

const [ORDER, LINE, TAG] = ['random.Order', 'random.Line', 'random.Tag'] as const
const ROUNDS = 150
/** The checks of the storage read everything, and what they find stays. */
const ROUNDS_PER_CHECK = 25
/** Records that a request or a hook may choose are the newest of their model. */
const CHOICES = 3

/** What hooks do at random. */
class RandomHooks {
  /** The writes that are left for the hooks of a request. */
  budget = 0
  ids: Record<string, number[]> = {}

  constructor(readonly random: () => number) {}

  int(limit: number): number {
    return Math.floor(this.random() * limit)
  }

  pick(model: string): number {
    const ids = this.ids[model] ?? []
    return ids[this.int(ids.length)] ?? 1
  }

  readonly act = async ({ records }: { readonly records: TransactionRecords }): Promise<undefined> => {
    if (this.budget <= 0 || this.random() < 0.4) return
    this.budget--
    const [order, line] = [await this.#find(records, ORDER), await this.#find(records, LINE)]
    if (!order || !line) return
    const [orders, lines] = [records.of(ORDER), records.of(LINE)]
    const id = order.id
    const kinds: readonly (() => Promise<unknown>)[] = [
      () => lines.create({ amount: this.int(9), order: { id } }),
      () => lines.update(line.id, { version: line.version, order: { id } }),
      () => lines.update(line.id, { version: line.version, order: null }),
      () => lines.update(line.id, { version: line.version, amount: this.int(99) }),
      () => lines.remove(line.id),
      () => orders.update(id, { version: order.version, total: this.int(99) }),
      () => orders.update(id, { version: order.version, tags: [{ id: this.pick(TAG) }] }),
      () => orders.update(id, { version: order.version, lines: [{ amount: 1 }] }),
      () => orders.create({ title: 'by a hook', lines: [{ amount: 2 }] }),
      () => orders.remove(id),
    ]
    await kinds[this.int(kinds.length)]?.()
  }

  async #find(records: TransactionRecords, model: string): Promise<WireRecord | undefined> {
    const { data } = await records.of(model).find({ filter: { id: this.pick(model) } })
    return data[0]
  }
}

function createModels(hooks: RandomHooks) {
  const { act } = hooks
  const all = {
    beforeSave: act,
    validate: act,
    afterSave: act,
    beforeRemove: act,
    afterRemove: act,
  } as HooksOf
  return [
    defineModel({
      name: ORDER,
      fields: {
        title: { type: 'string' },
        total: { type: 'integer' },
        lines: { type: 'one-to-many', target: LINE, mappedBy: 'order', owned: true },
        tags: { type: 'many-to-many', target: TAG },
      },
      hooks: all as never,
    }),
    defineModel({
      name: LINE,
      fields: { amount: { type: 'integer' }, order: { type: 'many-to-one', target: ORDER } },
      hooks: all as never,
    }),
    defineModel({ name: TAG, fields: { name: { type: 'string' } } }),
  ].map((definition) => ({ file: 'random.ts', definition }))
}

/** Writes at random. Returns what is wrong afterwards. */
async function writeAtRandom(engine: Engine, seed: number): Promise<string[]> {
  const hooks = new RandomHooks(seeded(seed))
  const service = await startService(engine, { models: createModels(hooks), expects: ['internal'] })
  const faults: string[] = []
  try {
    const records = await enter(service, 'direct')
    for (const name of ['a', 'b', 'c']) await records.create(TAG, { name })
    for (let round = 0; round < ROUNDS && faults.length === 0; round++) {
      await prepareRound(records, hooks)
      const before = await readLastSeq(service)
      const request = await buildRequest(service, records, hooks)
      hooks.budget = 1 + hooks.int(5)
      const error = await request().then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      hooks.budget = 0
      const written = await changesSince(service.app.db.reader, before, 100_000)
      if (error !== undefined && !isExpected(error))
        faults.push(`unexpected: ${error instanceof Error ? error.stack : 'no error'}`)
      if (error !== undefined && written.length > 0) faults.push('a refused request has written')
      if (round % ROUNDS_PER_CHECK === 0) faults.push(...(await findStorageFaults(service)))
      for (const { model, id } of written) faults.push(...(await findHistoryFaults(records, model, id)))
    }
    faults.push(...(await findStorageFaults(service)))
  } finally {
    await service.close().catch((error: unknown) => faults.push(String(error)))
  }
  return faults
}

async function prepareRound(records: Records, hooks: RandomHooks): Promise<void> {
  await records.create(ORDER, { title: 'a', lines: [{ amount: 1 }, { amount: 2 }], tags: [{ id: 1 }] })
  for (const model of [ORDER, LINE, TAG]) {
    const { data } = await records.find(model, { sortBy: '-id', limit: CHOICES })
    hooks.ids[model] = data.map(({ id }) => id)
  }
}

async function buildRequest(
  { app }: Service,
  records: Records,
  hooks: RandomHooks,
): Promise<() => Promise<unknown>> {
  const [order, line] = [
    await records.read(ORDER, hooks.pick(ORDER)),
    await records.read(LINE, hooks.pick(LINE)),
  ]
  const { id, version } = order
  const lines = (order['lines'] as readonly WireRecord[]).map((each) => ({ id: each.id }))
  const tags = (order['tags'] as readonly WireRecord[]).map((each) => ({ id: each.id }))
  const values = {
    title: `title ${hooks.int(9)}`,
    ...(hooks.random() < 0.5 ? { lines: [...lines.slice(hooks.int(2)), { amount: 3 }] } : {}),
    ...(hooks.random() < 0.5 ? { tags } : {}),
  }
  const batch = [
    { op: 'update', model: ORDER, id, version, data: values },
    { op: 'update', model: LINE, id: line.id, version: line.version, data: { amount: 7 } },
    { op: 'create', model: ORDER, data: { title: 'c', lines: [{ amount: 4 }] } },
  ]
  const kinds: readonly (() => Promise<unknown>)[] = [
    () => records.update(ORDER, id, { version, ...values }),
    () => records.update(LINE, line.id, { version: line.version, order: { id } }),
    () => records.remove(ORDER, id, { version }),
    () => records.remove(LINE, line.id, { version: line.version }),
    () => records.batch(batch),
    () => records.updateMass(ORDER, { data: { criteria: [] }, values: { total: 5 } }),
    () =>
      createRecordsHandle(app, async () => SERVICE_PRINCIPAL).transaction(async (inside) => {
        for (let count = 0; count < 3; count++) await hooks.act({ records: inside })
      }),
  ]
  return kinds[hooks.int(kinds.length)] ?? (async () => Promise.resolve())
}

/** Hooks at random also break the rules for hooks. */
function isExpected(error: unknown): boolean {
  if (error instanceof VersoError) return true
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return String(cause).includes('is about to be written by this request')
}

async function readLastSeq({ app }: Service): Promise<number> {
  const changes = await changesSince(app.db.reader, 0, 1_000_000)
  return changes.at(-1)?.seq ?? 0
}

async function findStorageFaults({ app }: Service): Promise<string[]> {
  const faults: string[] = []
  for (const [name, check] of Object.entries(STORAGE_CHECKS))
    faults.push(...(await runStorageCheck(name, check, app as never)).findings.lines)
  return faults
}

/** Each change of a record begins where the one before has ended, with the next version. */
async function findHistoryFaults(records: Records, model: string, id: number): Promise<string[]> {
  const faults: string[] = []
  const state: Record<string, string> = {}
  const changes = (await records.history(model, id)).data.toReversed()
  for (const [index, { version, changes: fields }] of changes.entries()) {
    if (version !== index) faults.push(`${model} ${id}: version ${version} is change ${index}`)
    for (const [name, { before, after }] of Object.entries(fields)) {
      if (toIds(before) !== (state[name] ?? toIds(null)))
        faults.push(`${model} ${id} version ${version}: ${name} was ${state[name]}, not ${toIds(before)}`)
      state[name] = toIds(after)
    }
  }
  return faults
}

/** References and lists are compared by their ids: their names may have changed since. An empty list is like no value. */
function toIds(value: unknown): string {
  const idOf = (each: unknown) => (each as { readonly id?: number } | null)?.id ?? each ?? null
  if (Array.isArray(value)) return value.length === 0 ? 'null' : JSON.stringify(value.map(idOf))
  return JSON.stringify(idOf(value))
}

onEveryEngine((engine) => {
  test.each([1, 2])('random writes with the seed %i leave nothing wrong', async (seed) => {
    expect(await writeAtRandom(engine, seed)).toEqual([])
  })
})

test('a Log that loses references to removed records is caught', async () => {
  const whole = Object.getOwnPropertyDescriptor(ChangeSet.prototype, 'addLostReferences')
  ChangeSet.prototype.addLostReferences = async (_, record) => Promise.resolve(record)
  try {
    const faults: string[] = []
    for (let seed = 1; seed <= 6 && faults.length === 0; seed++)
      faults.push(...(await writeAtRandom('sqlite', seed)))
    expect(faults).not.toEqual([])
  } finally {
    if (whole) Object.defineProperty(ChangeSet.prototype, 'addLostReferences', whole)
  }
})
