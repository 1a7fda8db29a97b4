// PostgreSQL only: transactions that deadlock. The service retries one of them, and no client sees it.
import { describe, expect, test } from 'vitest'
import type { Queryable } from '../../src/store/engine/database.js'
import { LOG_TABLE } from '../../src/store/sql/log-insert.js'
import type { WireRecord } from '../../src/wire.js'
import { listOf } from '../behaviour/related-service.js'
import type { HttpClient } from '../http-client.js'
import { withoutOrderedLocks, withoutSecondAttempt } from '../mutants/records.js'
import { interleave, inWords, onNodes, send, type Nodes, type Sent, type Mutant } from './nodes.js'

const REQUESTS = 200
const AT_ONCE = 8
const CHILDREN = 6
const MODELS = ['rel.Company', 'rel.Address', 'rel.Person']

describe('postgres', () => {
  test('one of two deadlocked transactions is retried, and both requests are answered', async () => {
    expect(await embrace()).toEqual(['200', expect.stringMatching(/^(409 still-referenced|422 invalid)$/)])
  })

  test('the mutant that does not retry after a deadlock is caught', async () => {
    expect(await embrace(withoutSecondAttempt)).toContain('503 busy')
  })

  test('nested saves of the same records in different order are serialized without a retry', async () => {
    expect(await oppositeSaves(withoutSecondAttempt)).toEqual(['200', '409 conflict'])
  })

  test('the mutant that locks records in request order is caught by a deadlock', async () => {
    const mutant: Mutant = (db) => withoutSecondAttempt(withoutOrderedLocks(db))
    expect(await oppositeSaves(mutant)).toContain('503 busy')
  })

  test(`${REQUESTS} concurrent moves and nested saves each succeed or are rejected, and no update is lost`, async () => {
    const { answers, faults } = await crowd()
    expect(faults).toEqual([])
    expect(Object.keys(answers).filter((status) => !['200', '409', '422'].includes(status))).toEqual([])
    expect(answers['200']).toBeGreaterThan(0)
  })
})

/**
 * Deletes a company and then its address while another company takes the address as its seat and then the company as its parent. The
 * database chooses the victim of the deadlock.
 */
async function embrace(mutant?: Mutant): Promise<string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
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

/** The first save has changed one of two companies when the second save starts with the other. */
async function oppositeSaves(mutant: Mutant): Promise<string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
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
  /** The number of responses by status. */
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

/** Each reads its records before it writes, like a client. */
const ACTS: readonly [Act, ...Act[]] = [
  {
    // Moves the child from its own side.
    model: 'rel.Address',
    act: async (client, [from, to], number) => {
      const child = childOf(await client.read('rel.Company', from.id), number)
      const { version } = await client.read('rel.Address', child)
      return send(client, 'POST', `rel.Address/${child}`, { version, company: { id: to.id } })
    },
  },
  {
    // Moves the child by adding it to the list of the new owner.
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

/** Nothing was deleted: all children exist, and each record is at the last version in the change log. */
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

/** One of the children; an unknown id if there are none. */
function childOf(owner: WireRecord, number: number): number {
  const children = listOf(owner, 'addresses')
  return children[number % Math.max(1, children.length)]?.id ?? 987_654
}
