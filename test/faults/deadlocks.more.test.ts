// PostgreSQL only: transactions that wait for each other. One of them is run again inside, and nobody hears of it.
import { describe, expect, test } from 'vitest'
import type { Queryable } from '../../src/store/database.js'
import { LOG_TABLE } from '../../src/store/log.js'
import type { WireRecord } from '../../src/wire.js'
import { listOf } from '../behaviour/family.js'
import type { HttpClient } from '../http-client.js'
import { withoutOrderedLocks, withoutSecondAttempt } from '../twins.js'
import { interleave, inWords, onNodes, send, type Nodes, type Sent, type Twin } from './nodes.js'

const REQUESTS = 200
const AT_ONCE = 8
const CHILDREN = 6
const MODELS = ['rel.Company', 'rel.Address', 'rel.Person']

describe('postgres', () => {
  test('of two that hold what the other needs one is run again, and both are answered', async () => {
    expect(await embrace()).toEqual(['200', expect.stringMatching(/^(409 still-referenced|422 invalid)$/)])
  })

  test('a store that does not try again is caught', async () => {
    expect(await embrace(withoutSecondAttempt)).toContain('503 busy')
  })

  test('nested saves that touch the same records in different order take turns, and none is run again', async () => {
    expect(await oppositeSaves(withoutSecondAttempt)).toEqual(['200', '409 conflict'])
  })

  test('a store that locks records as they come is caught', async () => {
    const twin: Twin = (db) => withoutSecondAttempt(withoutOrderedLocks(db))
    expect(await oppositeSaves(twin)).toContain('503 busy')
  })

  test(`of ${REQUESTS} moves and nested saves across the same records each is done or refused, and nothing is lost`, async () => {
    const { answers, faults } = await crowd()
    expect(faults).toEqual([])
    expect(Object.keys(answers).filter((status) => !['200', '409', '422'].includes(status))).toEqual([])
    expect(answers['200']).toBeGreaterThan(0)
  })
})

/**
 * A company is deleted, and then its address; another takes the address as its seat, and then the company as its parent. Which of
 * the two has to give way is for the database to say.
 */
async function embrace(twin?: Twin): Promise<string[]> {
  return onNodes('postgres', { twin }, async (nodes) => {
    const { first, second } = nodes
    const [company, other] = [await make(nodes, 'to be deleted', 1), await make(nodes, 'other')]
    const data = { version: 0, seat: { id: childOf(company, 0) }, parent: { id: company.id } }
    const deleting = first.halt.after(/^select 1 from "rel\.Company" where "id" = \? for update/)
    const referring = second.halt.after(/^select "id" from "rel\.Address" where "id" in .* for key share/)
    const answers = [
      send(first.client, 'DELETE', `rel.Company/${company.id}`),
      send(second.client, 'POST', `rel.Company/${other.id}`, data),
    ]
    await Promise.all([deleting.reached, referring.reached])
    deleting.goOn()
    referring.goOn()
    return (await Promise.all(answers)).map(inWords).sort()
  })
}

/** The first has changed one of two companies when the second begins with the other. */
async function oppositeSaves(twin: Twin): Promise<string[]> {
  return onNodes('postgres', { twin }, async (nodes) => {
    const { first, second } = nodes
    const [left, right] = [await make(nodes, 'left'), await make(nodes, 'right')]
    const answers = await interleave(
      nodes,
      /^update "rel\.Company"/,
      () => send(first.client, 'PUT', 'rel.Person', acrossTwo(left, right, 'first')),
      () => send(second.client, 'PUT', 'rel.Person', acrossTwo(right, left, 'second')),
    )
    return answers.map(inWords)
  })
}

/** A new person whose company and whose boss's company are changed with it, in this order. */
function acrossTwo(one: WireRecord, other: WireRecord, name: string): object {
  const change = ({ id, version }: WireRecord) => ({ id, version, name })
  return { company: change(one), boss: { name, company: change(other) } }
}

interface Crowd {
  /** How often each status came. */
  readonly answers: Readonly<Record<string, number>>
  readonly faults: readonly string[]
}

async function crowd(): Promise<Crowd> {
  return onNodes('postgres', {}, async (nodes) => {
    const pair = [await make(nodes, 'left', CHILDREN), await make(nodes, 'right', CHILDREN)] as const
    const answers: Record<string, number> = {}
    const acknowledged: { readonly model: string; readonly record: WireRecord }[] = []
    let next = 0
    const work = async () => {
      while (next < REQUESTS) {
        const number = next++
        const client = number % 2 === 0 ? nodes.first.client : nodes.second.client
        const { model, act } = ACTS[number % ACTS.length] ?? ACTS[0]
        const { status, record } = await act(client, number % 4 < 2 ? pair : [pair[1], pair[0]], number)
        answers[status] = (answers[status] ?? 0) + 1
        if (record) acknowledged.push({ model, record })
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    const logged = await versionsInLog(nodes.db.reader)
    const faults = await faultsIn(nodes.db.reader, logged)
    for (const { model, record } of acknowledged) {
      if (!logged.get(`${model} ${record.id}`)?.includes(record.version))
        faults.push(
          `version ${record.version} of ${model} ${record.id} was acknowledged, and is not in the Log`,
        )
    }
    return { answers, faults }
  })
}

type Pair = readonly [WireRecord, WireRecord]

interface Act {
  readonly model: string
  readonly act: (client: HttpClient, pair: Pair, number: number) => Promise<Sent>
}

/** Each reads what it writes first, as a client would. */
const ACTS: readonly [Act, ...Act[]] = [
  {
    // From the side of the child.
    model: 'rel.Address',
    act: async (client, [from, to], number) => {
      const child = childOf(await client.read('rel.Company', from.id), number)
      const { version } = await client.read('rel.Address', child)
      return send(client, 'POST', `rel.Address/${child}`, { version, company: { id: to.id } })
    },
  },
  {
    // From the side of the new owner, whose list gets one more.
    model: 'rel.Company',
    act: async (client, [from, to], number) => {
      const { id, version, addresses } = await client.read('rel.Company', to.id)
      const child = childOf(await client.read('rel.Company', from.id), number)
      const moved = { id: child, version: (await client.read('rel.Address', child)).version }
      const list = [...(addresses as readonly object[]), moved]
      return send(client, 'POST', `rel.Company/${id}`, { version, name: `move ${number}`, addresses: list })
    },
  },
  {
    model: 'rel.Person',
    act: async (client, [one, other], number) => {
      const pair = await Promise.all([one, other].map(({ id }) => client.read('rel.Company', id)))
      const [left, right] = pair as [WireRecord, WireRecord]
      return send(client, 'PUT', 'rel.Person', acrossTwo(left, right, `person ${number}`))
    },
  },
]

/** Nothing was deleted: all children are there, each record is at the version that its Log ends with. */
async function faultsIn(db: Queryable, logged: ReadonlyMap<string, readonly number[]>): Promise<string[]> {
  const faults: string[] = []
  for (const model of MODELS) {
    for (const row of await db.all(`select "id", "version" from "${model}"`)) {
      const versions = logged.get(`${model} ${Number(row['id'])}`) ?? []
      if (versions.join() !== Array.from({ length: Number(row['version']) + 1 }, (_, index) => index).join())
        faults.push(
          `${model} ${Number(row['id'])} is at ${Number(row['version'])}, and the Log has ${versions.join()}`,
        )
    }
  }
  const children = await db.all(`select "id" from "rel.Address" where "company" is not null`)
  if (children.length !== 2 * CHILDREN) faults.push(`${children.length} of ${2 * CHILDREN} children are left`)
  return faults
}

async function versionsInLog(db: Queryable): Promise<Map<string, number[]>> {
  const versions = new Map<string, number[]>()
  for (const row of await db.all(`select model, record, version from ${LOG_TABLE} order by version`)) {
    const key = `${String(row['model'])} ${Number(row['record'])}`
    versions.set(key, [...(versions.get(key) ?? []), Number(row['version'])])
  }
  return versions
}

async function make({ first }: Nodes, name: string, children = 0): Promise<WireRecord> {
  const addresses = Array.from({ length: children }, (_, index) => ({ city: `${name} ${index}` }))
  return (await first.client.create('rel.Company', { name, addresses })).data
}

/** One of them; if there are none, one that nobody has. */
function childOf(owner: WireRecord, number: number): number {
  const children = listOf(owner, 'addresses')
  return children[number % Math.max(1, children.length)]?.id ?? 987_654
}
