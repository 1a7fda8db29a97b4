// Deletes race with new references: in any order, no reference and no link ends up dangling.
import { expect, test } from 'vitest'
import type { Queryable } from '../../src/store/engine/database.js'
import { LOG_TABLE } from '../../src/store/sql/log-insert.js'
import { quoteIdentifier } from '../../src/store/engine/names.js'
import { toLinkTableName } from '../../src/store/sql/relation.js'
import type { Change, WireRecord } from '../../src/wire.js'
import { listOf } from '../behaviour/related-service.js'
import type { HttpClient } from '../http-client.js'
import { onEveryEngine, type Engine } from '../targets.js'
import { withoutReferenceLocks, withoutRowLocks } from '../mutants/records.js'
import { interleave, inWords, onNodes, send, type Nodes, type Sent, type Mutant } from './nodes.js'

const ROUNDS = 25
const REFERRING = 4

const LINKS = quoteIdentifier(toLinkTableName('rel.Person', 'circles'))
const HAS_REFERRED = /^(insert into|update) "rel\.Person"/
const HAS_LOOKED_FOR_REFERENCES = /^select .* from "rel\.Person" .*"company" in/
const HAS_TAKEN_SEAT = /^update "rel\.Company" set .*"seat"/
const HAS_LOOKED_FOR_SEATS = /^select .* from "rel\.Company" .*"seat" in/
const HAS_LINKED = new RegExp(`^insert into ${LINKS}`)
const HAS_UNLINKED = new RegExp(`^delete from ${LINKS} where "member"`)

interface Order {
  /** The response of the interrupted request, then of the other one. */
  readonly answers: readonly [string, string]
  /** The referenced record is also changed, so it has a second lock. */
  readonly isLockedTwice?: boolean
  readonly play: (nodes: Nodes) => Promise<[Sent, Sent]>
}

/** In each order the first request stops in the middle until the second has ended or waits for a lock. */
const ORDERS: Readonly<Record<string, Order>> = {
  'a person refers, and its company is deleted': {
    answers: ['200', '409 still-referenced'],
    play: async (nodes) => {
      const { id } = await make(nodes, 'rel.Company')
      const refer = () => send(nodes.first.client, 'PUT', 'rel.Person', { company: { id } })
      return interleave(nodes, HAS_REFERRED, refer, () => remove(nodes.second.client, 'rel.Company', id))
    },
  },
  'a person is made with its company as it was read, and the company is deleted': {
    answers: ['200', '409 still-referenced'],
    isLockedTwice: true,
    play: async (nodes) => {
      const { id, version, name } = await make(nodes, 'rel.Company')
      const data = { company: { id, version, name } }
      const refer = () => send(nodes.first.client, 'PUT', 'rel.Person', data)
      return interleave(nodes, HAS_REFERRED, refer, () => remove(nodes.second.client, 'rel.Company', id))
    },
  },
  'a person changes over to a company as it was read, and the company is deleted': {
    answers: ['200', '409 still-referenced'],
    isLockedTwice: true,
    play: async (nodes) => {
      const { id, version, name } = await make(nodes, 'rel.Company')
      const person = await make(nodes, 'rel.Person')
      const data = { version: person.version, company: { id, version, name } }
      const refer = () => send(nodes.first.client, 'POST', `rel.Person/${person.id}`, data)
      return interleave(nodes, HAS_REFERRED, refer, () => remove(nodes.second.client, 'rel.Company', id))
    },
  },
  'a company is deleted, and a person refers': {
    answers: ['200', '422 invalid'],
    play: async (nodes) => {
      const { id } = await make(nodes, 'rel.Company')
      const refer = () => send(nodes.second.client, 'PUT', 'rel.Person', { company: { id } })
      const stopped = () => remove(nodes.first.client, 'rel.Company', id)
      return interleave(nodes, HAS_LOOKED_FOR_REFERENCES, stopped, refer)
    },
  },
  'a company has its seat at an address of another, which is deleted with its addresses': {
    answers: ['200', '409 still-referenced'],
    play: async (nodes) => {
      const [{ id, seat }, other] = [await makeWithAddress(nodes), await make(nodes, 'rel.Company')]
      const refer = () => takeSeat(nodes.first.client, other, seat)
      return interleave(nodes, HAS_TAKEN_SEAT, refer, () => remove(nodes.second.client, 'rel.Company', id))
    },
  },
  'a company is deleted with its addresses, and another has its seat at one': {
    answers: ['200', '422 invalid'],
    play: async (nodes) => {
      const [{ id, seat }, other] = [await makeWithAddress(nodes), await make(nodes, 'rel.Company')]
      const stopped = () => remove(nodes.first.client, 'rel.Company', id)
      const refer = () => takeSeat(nodes.second.client, other, seat)
      return interleave(nodes, HAS_LOOKED_FOR_SEATS, stopped, refer)
    },
  },
  'a circle is linked, and deleted': {
    answers: ['200', '200'],
    play: async (nodes) => {
      const [{ id }, person] = [await make(nodes, 'rel.Circle'), await make(nodes, 'rel.Person')]
      const join = () => link(nodes.first.client, person, id)
      return interleave(nodes, HAS_LINKED, join, () => remove(nodes.second.client, 'rel.Circle', id))
    },
  },
  'a circle is deleted, and linked': {
    answers: ['200', '422 invalid'],
    play: async (nodes) => {
      const [{ id }, person] = [await make(nodes, 'rel.Circle'), await make(nodes, 'rel.Person')]
      const stopped = () => remove(nodes.first.client, 'rel.Circle', id)
      return interleave(nodes, HAS_UNLINKED, stopped, () => link(nodes.second.client, person, id))
    },
  },
}

onEveryEngine((engine) => {
  const orders = Object.entries(ORDERS)

  test('a delete and a concurrent new reference leave nothing dangling, in either order', async () => {
    const results = await playInOrder(engine)
    expect(results).toEqual(orders.map(([order, { answers }]) => ({ order, answers, faults: [] })))
  })

  test(`deletes during concurrent creates and links leave nothing dangling, in ${ROUNDS} rounds`, async () => {
    const { faults, others } = await playTogether(engine)
    expect({ faults, others }).toEqual({ faults: [], others: [] })
  })

  // SQLite runs one write transaction at a time and needs no such locks.
  if (engine === 'postgres') {
    const caughtBy = async (mutant: Mutant) => {
      const results = await playInOrder(engine, mutant)
      return results.filter(({ faults }) => faults.length > 0).map(({ order }) => order)
    }

    test('the mutant that does not lock referenced records is caught', async () => {
      const lockedOnce = orders.filter(([, { isLockedTwice = false }]) => !isLockedTwice)
      expect(await caughtBy(withoutReferenceLocks)).toEqual(lockedOnce.map(([order]) => order))
    })

    test('the mutant without any row locks is caught in every order', async () => {
      const mutant: Mutant = (db) => withoutRowLocks(withoutReferenceLocks(db))
      expect(await caughtBy(mutant)).toEqual(orders.map(([order]) => order))
    })
  }
})

interface Result {
  readonly order: string
  readonly answers: readonly string[]
  readonly faults: readonly string[]
}

async function playInOrder(engine: Engine, mutant?: Mutant): Promise<Result[]> {
  return onNodes(engine, { mutant }, async (nodes) => {
    const results: Result[] = []
    let known: readonly string[] = []
    for (const [order, { play }] of Object.entries(ORDERS)) {
      const answers = (await play(nodes)).map(inWords)
      const found = await faultsIn(nodes.db.reader)
      results.push({ order, answers, faults: found.filter((fault) => !known.includes(fault)) })
      known = found
    }
    return results
  })
}

const ALLOWED = ['200', '409 still-referenced', '422 invalid', '404 not-found', '503 busy']

/** Each round deletes a company and a circle while persons start to refer to the one and to link the other. */
async function playTogether(engine: Engine): Promise<{ faults: string[]; others: string[] }> {
  return onNodes(engine, {}, async (nodes) => {
    const { first, second, db } = nodes
    const others = new Set<string>()
    for (let round = 0; round < ROUNDS; round++) {
      const [company, circle] = [await make(nodes, 'rel.Company'), await make(nodes, 'rel.Circle')]
      // One person already has the circle, so its list changes with the delete.
      await first.client.create('rel.Person', { circles: [{ id: circle.id }] })
      const people = await Promise.all(Array.from({ length: REFERRING }, () => make(nodes, 'rel.Person')))
      const client = (index: number) => ((round + index) % 2 === 0 ? first.client : second.client)
      const requests = [
        ...people.map((person, index) => () => link(client(index), person, circle.id)),
        ...people.map(
          (_, index) => () => send(client(index), 'PUT', 'rel.Person', { company: { id: company.id } }),
        ),
      ]
      // The deletes come early in one round and late in another.
      requests.splice((round * 3) % requests.length, 0, () => remove(client(0), 'rel.Company', company.id))
      requests.splice((round * 5) % requests.length, 0, () => remove(client(1), 'rel.Circle', circle.id))
      const answers = await Promise.all(requests.map((request) => request()))
      for (const answer of answers.map(inWords)) if (!ALLOWED.includes(answer)) others.add(answer)
    }
    return { faults: await faultsIn(db.reader), others: [...others] }
  })
}

/** Dangling references and links, and lists that differ from the change log. */
async function faultsIn(db: Queryable): Promise<string[]> {
  const lost = [
    ...(await leadingNowhere(db, 'rel.Person', 'company', 'rel.Company')),
    ...(await leadingNowhere(db, 'rel.Company', 'seat', 'rel.Address')),
    ...(await leadingNowhere(db, 'rel.Address', 'company', 'rel.Company')),
  ]
  const links = await db.all(`select "owner", "member" from ${LINKS} order by "member"`)
  const circles = new Set((await db.all(`select "id" from "rel.Circle"`)).map((row) => row['id']))
  const people = await db.all(`select "id", "version" from "rel.Person"`)
  const logged = await loggedLists(db)
  return [
    ...lost,
    ...links
      .filter((row) => !circles.has(row['member'] ?? null))
      .map((row) => `person ${row['owner'] ?? ''} has circle ${row['member'] ?? ''}, which is gone`),
    ...people.flatMap(({ id = null, version = null }) => {
      const members = links.filter((row) => row['owner'] === id).map((row) => row['member'])
      const { list = [], last } = logged.get(Number(id)) ?? {}
      const isTold = list.join() === members.join() && last === version
      return isTold
        ? []
        : [`person ${id ?? ''} has circles ${members.join()}, and the Log says ${list.join()}`]
    }),
  ]
}

async function leadingNowhere(
  db: Queryable,
  model: string,
  field: string,
  target: string,
): Promise<string[]> {
  const rows = await db.all(
    `select f."id", f."${field}" as "to" from "${model}" as f where f."${field}" is not null ` +
      `and not exists (select 1 from "${target}" as t where t."id" = f."${field}")`,
  )
  return rows.map(
    (row) => `${model} ${row['id'] ?? ''} refers to ${target} ${row['to'] ?? ''}, which is gone`,
  )
}

interface Logged {
  readonly list: readonly number[]
  /** The last version in the change log. */
  readonly last: number
}

async function loggedLists(db: Queryable): Promise<Map<number, Logged>> {
  const rows = await db.all(
    `select record, version, changes from ${LOG_TABLE} where model = 'rel.Person' order by seq`,
  )
  const lists = new Map<number, Logged>()
  for (const row of rows) {
    const { circles } = JSON.parse(String(row['changes'])) as Change['changes']
    const after = circles?.after as readonly { readonly id: number }[] | undefined
    const before = lists.get(Number(row['record']))?.list ?? []
    lists.set(Number(row['record']), {
      list: after ? after.map(({ id }) => id) : before,
      last: Number(row['version']),
    })
  }
  return lists
}

async function make({ first }: Nodes, model: string): Promise<WireRecord> {
  return (await first.client.create(model, { name: 'made before' })).data
}

async function makeWithAddress({ first }: Nodes): Promise<{ readonly id: number; readonly seat: number }> {
  const { data } = await first.client.create('rel.Company', { name: 'C', addresses: [{ city: 'Oslo' }] })
  return { id: data.id, seat: listOf(data, 'addresses')[0]?.id ?? 0 }
}

async function takeSeat(client: HttpClient, { id, version }: WireRecord, seat: number): Promise<Sent> {
  return send(client, 'POST', `rel.Company/${id}`, { version, seat: { id: seat } })
}

async function link(client: HttpClient, { id, version }: WireRecord, circle: number): Promise<Sent> {
  return send(client, 'POST', `rel.Person/${id}`, { version, circles: [{ id: circle }] })
}

async function remove(client: HttpClient, model: string, id: number): Promise<Sent> {
  return send(client, 'DELETE', `${model}/${id}`)
}
