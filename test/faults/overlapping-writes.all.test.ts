// Overlapping writes of many records on both engines and from two nodes: no update is lost, and no client sees a deadlock.
import { describe, expect, test } from 'vitest'
import { changesBetween } from '../log.js'
import type { Change, WireRecord } from '../../src/wire.js'
import { idsOf } from '../behaviour/related-service.js'
import { onEveryEngine, type Engine } from '../targets.js'
import * as mutants from '../mutants/records.js'
import { exchange, type Session } from './load-client.js'
import { interleave, onNodes, type Nodes, type Mutant } from './nodes.js'

const PERSON = 'rel.Person'
const PEOPLE = 8
const REQUESTS = 90
const AT_ONCE = 6

onEveryEngine((engine) => {
  test(`${REQUESTS} concurrent saves and mass updates of the same records through two nodes lose no update`, async () => {
    const { statuses, faults } = await crowd(engine)
    expect(faults).toEqual([])
    expect(statuses.filter((status) => !['200', '409'].includes(status))).toEqual([])
    expect(statuses).toContain('200')
  })

  test('the mutant that reads, checks, then writes is caught', async () => {
    const { statuses, faults } = await crowd(engine, mutants.readCheckWrite)
    expect(faults.length + statuses.filter((status) => status === '500').length).toBeGreaterThan(0)
  })
})

describe('postgres', () => {
  const alone: Mutant = mutants.withoutSecondAttempt
  const unordered: Mutant = (db) => mutants.withoutSecondAttempt(mutants.withoutOrderedLocks(db))

  test('saves of the same records in opposite order are serialized without a retry', async () => {
    expect(await oppositeSaves(alone)).toEqual(['200', '409'])
  })

  test('removals from the same lists in opposite order are serialized without a retry', async () => {
    expect(await oppositeRemovals(alone)).toEqual(['200', '200'])
  })

  test('a mass update and a save in the opposite order are serialized without a retry', async () => {
    expect(await massAgainstSave(alone)).toEqual(['200', '409'])
  })

  test('a mass update of one record waits for a concurrent update, and is applied on top of it', async () => {
    expect(await massOfOne()).toEqual({ answers: ['200', '200'], version: 2, name: 'mine', rate: '1.00' })
  })

  test('the mutant that locks records in request order is caught by deadlocks', async () => {
    expect(await oppositeSaves(unordered)).toContain('503')
    expect(await oppositeRemovals(unordered)).toContain('503')
  })
})

async function post(session: Session, path: string, body: object): Promise<string> {
  return String((await exchange(session, 'POST', `/ws/rest/${path}`, body)).status)
}

async function people({ first }: Nodes, count: number): Promise<readonly WireRecord[]> {
  const all = Array.from({ length: count }, () => ({ name: 'nobody' }))
  return (await first.client.save(PERSON, all)).data
}

function named(records: readonly (WireRecord | undefined)[], name: string): object {
  return { records: records.map((record) => ({ id: record?.id, version: record?.version, name })) }
}

async function oppositeSaves(mutant: Mutant): Promise<string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
    const [a, b] = await people(nodes, 2)
    return interleave(
      nodes,
      /^update "rel\.Person"/,
      () => post(nodes.first.client, PERSON, named([a, b], 'first')),
      () => post(nodes.second.client, PERSON, named([b, a], 'second')),
    )
  })
}

/** Each removes one address of both companies, in opposite order. */
async function oppositeRemovals(mutant: Mutant): Promise<string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
    const owner = async (name: string) => {
      const { data } = await nodes.first.client.create('rel.Company', {
        ...{ name, addresses: [{ city: 'A' }, { city: 'B' }] },
      })
      return idsOf(data, 'addresses')
    }
    const [[a1, a2], [b1, b2]] = [await owner('a'), await owner('b')]
    return interleave(
      nodes,
      /^delete from "rel\.Address"/,
      () => post(nodes.first.client, 'rel.Address/removeAll', { records: [a1, b1] }),
      () => post(nodes.second.client, 'rel.Address/removeAll', { records: [b2, a2] }),
    )
  })
}

const EVERYBODY = { _domain: "name = 'nobody'" }

async function massAgainstSave(mutant: Mutant): Promise<string[]> {
  return onNodes('postgres', { mutant }, async (nodes) => {
    const [a, b] = await people(nodes, 2)
    return interleave(
      nodes,
      /^update "rel\.Person"/,
      () => post(nodes.first.client, `${PERSON}/updateMass`, { data: EVERYBODY, records: [{ rate: '1' }] }),
      () => post(nodes.second.client, PERSON, named([b, a], 'second')),
    )
  })
}

async function massOfOne(): Promise<object> {
  return onNodes('postgres', {}, async (nodes) => {
    const [person = { id: 0, version: 0 }] = await people(nodes, 1)
    const data = { _domain: 'id = :id', _domainContext: { id: person.id } }
    const answers = await interleave(
      nodes,
      /^update "rel\.Person"/,
      () => post(nodes.first.client, `${PERSON}/${person.id}`, { data: { version: 0, name: 'mine' } }),
      () => post(nodes.second.client, `${PERSON}/updateMass`, { data, records: [{ rate: '1' }] }),
    )
    const { version, name, rate } = await nodes.first.client.read(PERSON, person.id)
    return { answers, version, name, rate }
  })
}

interface Crowd {
  readonly statuses: readonly string[]
  readonly faults: readonly string[]
}

async function crowd(engine: Engine, mutant?: Mutant): Promise<Crowd> {
  return onNodes(engine, { mutant, areTwo: true }, async (nodes) => {
    const all = await people(nodes, PEOPLE)
    const ids = all.map(({ id }) => id)
    const acknowledged: { readonly id: number; readonly version: number; readonly name: string }[] = []
    const statuses: string[] = []
    const act = async (number: number) => {
      const { client } = number % 2 === 0 ? nodes.first : nodes.second
      if (number % 3 === 0) {
        const body = { data: { _domain: 'id > 0' }, records: [{ rate: String(number) }] }
        statuses.push(await post(client, `${PERSON}/updateMass`, body))
        return
      }
      const name = `request ${number}`
      const chosen = Array.from({ length: 3 }, (_, index) => ids[(number + index * 5) % ids.length] ?? 0)
      const read = await Promise.all(chosen.map((id) => client.read(PERSON, id)))
      const records = number % 3 === 1 ? read : read.toReversed()
      const { status, body } = await exchange(client, 'POST', `/ws/rest/${PERSON}`, named(records, name))
      statuses.push(String(status))
      if (status !== 200) return
      for (const { id, version } of body.data as readonly WireRecord[])
        acknowledged.push({ id, version, name })
    }
    let next = 0
    const work = async () => {
      while (next < REQUESTS) await act(next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    const faults: string[] = []
    for (const id of ids) {
      const { version } = await nodes.first.client.read(PERSON, id)
      const changes = (
        await changesBetween(nodes.db.reader, PERSON, id, -1, Number.MAX_SAFE_INTEGER)
      ).toSorted((a, b) => a.version - b.version)
      faults.push(...faultsIn(id, version, changes))
      for (const each of acknowledged.filter((one) => one.id === id)) {
        const change = changes.find((one) => one.version === each.version)
        if (change?.changes['name']?.after !== each.name)
          faults.push(`"${each.name}" was acknowledged as version ${each.version} of ${id}, and is lost`)
      }
    }
    return { statuses, faults }
  })
}

/** Each version has one change, and each change starts with the values that the one before it left. */
function faultsIn(
  id: number,
  version: number,
  changes: readonly Pick<Change, 'version' | 'changes'>[],
): string[] {
  const faults: string[] = []
  const versions = changes.map((change) => change.version)
  if (versions.join() !== Array.from({ length: version + 1 }, (_, index) => index).join())
    faults.push(`${id} is at ${version}, and the Log has ${versions.join()}`)
  const held: Record<string, unknown> = {}
  for (const change of changes) {
    for (const [field, { before, after }] of Object.entries(change.changes)) {
      if ((held[field] ?? null) !== before)
        faults.push(`version ${change.version} of ${id} overwrote ${String(held[field])} in ${field} unseen`)
      held[field] = after
    }
  }
  return faults
}
