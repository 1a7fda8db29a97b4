// Overlapping batches on both engines and from two nodes: each batch is atomic, no decision uses outdated data, and no client sees a
// deadlock.
import { describe, expect, test } from 'vitest'
import type { WireRecord } from '../../src/wire.js'
import { assertsByLooking } from '../mutants/batch.js'
import { onEveryEngine, type Engine } from '../targets.js'
import * as mutants from '../mutants/records.js'
import { exchange } from './load-client.js'
import { interleave, onNodes, type Node, type Nodes, type Mutant } from './nodes.js'

const [ACCOUNT, PERSON, CIRCLE] = ['test.Everything', 'rel.Person', 'rel.Circle']
const ACCOUNTS = 5
const TRANSFERS = 60
const AT_ONCE = 6
const ROUNDS = 30

onEveryEngine((engine) => {
  test(`${TRANSFERS} concurrent transfers between ${ACCOUNTS} accounts through two nodes keep the total balance`, async () => {
    const { sum, done, others } = await transfers(engine)
    expect({ sum, done, others }).toEqual({ sum: ACCOUNTS * 100, done: TRANSFERS, others: [] })
  })

  test('the mutant that reads, checks, then writes is caught by the total balance', async () => {
    const { sum, others } = await transfers(engine, mutants.readCheckWrite)
    expect(sum !== ACCOUNTS * 100 || others.length > 0).toBe(true)
  })

  test(`in ${ROUNDS} rounds, two batches that assert each other's record never both succeed (no write skew)`, async () => {
    expect(await skewed(engine)).toBe(0)
  })

  test('the mutant that reads, checks, then writes lets both batches succeed (write skew)', async () => {
    expect(await skewed(engine, mutants.readCheckWrite)).toBeGreaterThan(0)
  })
})

describe('postgres', () => {
  const alone: Mutant = mutants.withoutSecondAttempt
  const unordered: Mutant = (db) => mutants.withoutSecondAttempt(mutants.withoutOrderedLocks(db))

  test('an asserted record is locked: a concurrent change waits, and an assert of a changed record is a conflict', async () => {
    expect(await leaving(alone)).toEqual(['200', '409'])
  })

  test('the mutant that asserts without a lock is caught', async () => {
    expect(await leaving((db) => alone(assertsByLooking(db)))).toEqual(['200', '200'])
  })

  test('two batches can assert the same record concurrently without waiting', async () => {
    const answers = await onNodes('postgres', { mutant: alone }, async (nodes) => {
      const [a, b, both] = await people(nodes, 3)
      const { reached, goOn } = nodes.first.halt.after(/^update "rel\.Person"/)
      const slow = batch(nodes.first, [update(a), assert(both)])
      await reached
      const quick = await batch(nodes.second, [assert(both), update(b)])
      goOn()
      return [quick, await slow]
    })
    expect(answers).toEqual(['200', '200'])
  })

  test('an asserted record cannot be removed concurrently, and a record being removed cannot be asserted', async () => {
    const answers = await onNodes('postgres', { mutant: alone }, async (nodes) => {
      const [a, b, c, d] = await people(nodes, 4)
      const first = await interleave(
        nodes,
        /^update "rel\.Person"/,
        () => batch(nodes.first, [assert(a), update(b)]),
        () => batch(nodes.second, [remove(a)]),
      )
      const second = await interleave(
        nodes,
        /^delete from "rel\.Person"/,
        () => batch(nodes.first, [remove(c)]),
        () => batch(nodes.second, [assert(c), update(d)]),
      )
      return [...first, ...second]
    })
    expect(answers).toEqual(['200', '200', '200', '404'])
  })

  test('batches that name the same records in opposite order are serialized without a retry', async () => {
    expect(await opposite(alone)).toEqual(['200', '409'])
    expect(await oppositeModels(alone)).toEqual(['200', '409'])
    expect(await oppositeReferences(alone)).toEqual(['200', '422'])
  })

  test('the mutant that locks records in request order is caught by deadlocks', async () => {
    expect(await opposite(unordered)).toContain('503')
    expect(await oppositeModels(unordered)).toContain('503')
    expect(await oppositeReferences(unordered)).toContain('503')
  })

  test('concurrent batches over the same few records never need a retry', async () => {
    const statuses = await crowd(alone)
    expect(statuses.filter((status) => !['200', '404', '409', '422'].includes(status))).toEqual([])
    expect(statuses).toContain('200')
  })
})

type Known = WireRecord | undefined

const named = (record: Known, model: string) => ({ model, id: record?.id, version: record?.version })
const update = (record: Known, data: object = { isActive: false }, model = PERSON) => ({
  ...{ op: 'update', ...named(record, model), data },
})
const remove = (record: Known, model = PERSON) => ({ op: 'delete', ...named(record, model) })
const assert = (record: Known, model = PERSON) => ({ op: 'assert', ...named(record, model) })

async function batch({ client }: Node, requests: readonly object[]): Promise<string> {
  return String((await exchange(client, 'POST', '/ws/batch', { requests })).status)
}

async function people({ first }: Nodes, count: number): Promise<readonly WireRecord[]> {
  const all = Array.from({ length: count }, () => ({ name: 'somebody', isActive: true }))
  return (await first.client.save(PERSON, all)).data
}

interface Transfers {
  readonly sum: number
  readonly done: number
  /** Unexpected statuses. */
  readonly others: readonly string[]
}

/** Each transfer moves an amount between two accounts that it has read; after a conflict it starts again. */
async function transfers(engine: Engine, mutant?: Mutant): Promise<Transfers> {
  return onNodes(engine, { mutant, areTwo: true }, async (nodes) => {
    const opened = Array.from({ length: ACCOUNTS }, () => ({ whole: 100 }))
    const { data: accounts } = await nodes.first.client.save(ACCOUNT, opened)
    const others: string[] = []
    let [next, done] = [0, 0]
    const transfer = async (number: number): Promise<void> => {
      const node = number % 2 === 0 ? nodes.first : nodes.second
      const amount = 1 + (number % 7)
      for (;;) {
        const from = Math.floor(Math.random() * ACCOUNTS)
        const to = (from + 1 + Math.floor(Math.random() * (ACCOUNTS - 1))) % ACCOUNTS
        const read = (index: number) => node.client.read(ACCOUNT, accounts[index]?.id ?? 0)
        const [giver, taker] = [await read(from), await read(to)]
        const status = await batch(node, [
          update(giver, { whole: Number(giver['whole']) - amount }, ACCOUNT),
          update(taker, { whole: Number(taker['whole']) + amount }, ACCOUNT),
        ])
        if (status === '409') continue
        if (status === '200') done++
        else others.push(status)
        return
      }
    }
    const work = async () => {
      while (next < TRANSFERS) await transfer(next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    const { data } = await nodes.first.client.search(ACCOUNT, { fields: ['whole'] })
    return { sum: data.reduce((sum, { whole }) => sum + Number(whole), 0), done, others }
  })
}

/** The number of rounds in which both batches succeeded, although each asserted the record that the other changed. */
async function skewed(engine: Engine, mutant?: Mutant): Promise<number> {
  return onNodes(engine, { mutant, areTwo: true }, async (nodes) => {
    let both = 0
    for (let round = 0; round < ROUNDS; round++) {
      const [a, b] = await people(nodes, 2)
      const statuses = await Promise.all([
        batch(nodes.first, [assert(a), update(b)]),
        batch(nodes.second, [assert(b), update(a)]),
      ])
      if (statuses.every((status) => status === '200')) both++
      else if (!statuses.includes('200')) throw new Error(`neither was done: ${statuses.join()}`)
    }
    return both
  })
}

async function leaving(mutant: Mutant): Promise<string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
    const [a, b] = await people(nodes, 2)
    return interleave(
      nodes,
      /^update "rel\.Person"/,
      () => batch(nodes.first, [assert(b), update(a)]),
      () => batch(nodes.second, [assert(a), update(b)]),
    )
  })
}

async function opposite(mutant: Mutant): Promise<string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
    const [a, b] = await people(nodes, 2)
    return interleave(
      nodes,
      /^update "rel\.Person"/,
      () => batch(nodes.first, [update(a), update(b)]),
      () => batch(nodes.second, [update(b), update(a)]),
    )
  })
}

/** `opposite` over two models. */
async function oppositeModels(mutant: Mutant): Promise<string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
    const [a] = await people(nodes, 1)
    const { data: circle } = await nodes.first.client.create(CIRCLE, { name: 'C' })
    return interleave(
      nodes,
      /^update "rel\.Person"/,
      () => batch(nodes.first, [update(a), update(circle, { name: 'D' }, CIRCLE)]),
      () => batch(nodes.second, [update(circle, { name: 'E' }, CIRCLE), update(a)]),
    )
  })
}

/** Each batch removes a person and creates a reference to the person that the other removes. */
async function oppositeReferences(mutant: Mutant): Promise<string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
    const [a, b] = await people(nodes, 2)
    const bossed = (boss: Known) => ({ op: 'create', model: PERSON, data: { boss: { id: boss?.id } } })
    return interleave(
      nodes,
      /^delete from "rel\.Person"/,
      () => batch(nodes.first, [remove(a), bossed(b)]),
      () => batch(nodes.second, [remove(b), bossed(a)]),
    )
  })
}

async function crowd(mutant: Mutant): Promise<readonly string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
    const all = [...(await people(nodes, 6))]
    const statuses: string[] = []
    const chance = (below: number) => Math.floor(Math.random() * below)
    const act = async (number: number) => {
      const node = number % 2 === 0 ? nodes.first : nodes.second
      const chosen = new Set(Array.from({ length: 4 }, () => chance(all.length)))
      const { data } = await node.client.find(PERSON)
      const there = new Map(data.map((record) => [record.id, record]))
      const requests = [...chosen].flatMap((index) => {
        const record = there.get(all[index]?.id ?? 0)
        const boss = { boss: { id: all[chance(all.length)]?.id } }
        return record
          ? [[update(record, boss), assert(record), update(record), remove(record)][chance(4)] ?? {}]
          : []
      })
      if (requests.length > 0) statuses.push(await batch(node, requests))
      if (there.size < 6) all.push((await node.client.create(PERSON, { name: 'another' })).data)
    }
    let next = 0
    const work = async () => {
      while (next < 120) await act(next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    return statuses
  })
}
