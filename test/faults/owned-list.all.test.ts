// Two clients and one owned list: an outdated list is a conflict, from whichever side the list has changed.
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { changesBetween } from '../log.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { listOf } from '../behaviour/related-service.js'
import type { HttpClient } from '../http-client.js'
import { onEveryEngine, type Engine } from '../targets.js'
import { withoutOwnerRaise, withoutRowLocks } from '../mutants/records.js'
import { interleave, onNodes, send, type Sent, type Mutant } from './nodes.js'

const ROUNDS = 60
const SOON_MS = 40
const ADDERS = 3
const IS_LOST = 'was acknowledged, and is lost'

interface Outdated {
  readonly model: string
  readonly list: string
  /** The record as A has read it. */
  readonly before: WireRecord
  /** The members of the list after the change of B. */
  readonly members: readonly number[]
}

interface Clients {
  readonly a: Records
  readonly b: Records
}

/** Changes of B to the list that A has read. */
const CHANGES: Readonly<Record<string, (clients: Clients) => Promise<Outdated>>> = {
  'B has added a child': async ({ a, b }) => {
    const before = await companyIn(a, 'Oslo')
    const { data: added } = await b.create('rel.Address', { city: 'Rome', company: { id: before.id } })
    return addressesOf(before, [...idsIn(before, 'addresses'), added.id])
  },
  'B has moved a child in from another list': async ({ a, b }) => {
    const [before, other] = [await companyIn(a, 'Oslo'), await companyIn(a, 'Rome')]
    const [child = 0] = idsIn(other, 'addresses')
    await b.update('rel.Address', child, { version: 0, company: { id: before.id } })
    return addressesOf(before, [...idsIn(before, 'addresses'), child])
  },
  'B has moved a child out to another list': async ({ a, b }) => {
    const [before, other] = [await companyIn(a, 'Oslo', 'Bonn'), await companyIn(a, 'Rome')]
    const [child = 0, ...rest] = idsIn(before, 'addresses')
    await b.update('rel.Address', child, { version: 0, company: { id: other.id } })
    return addressesOf(before, rest)
  },
  'B has taken a child out of all lists': async ({ a, b }) => {
    const before = await companyIn(a, 'Oslo', 'Bonn')
    const [child = 0, ...rest] = idsIn(before, 'addresses')
    await b.update('rel.Address', child, { version: 0, company: null })
    return addressesOf(before, rest)
  },
  'B has deleted a child': async ({ a, b }) => {
    const before = await companyIn(a, 'Oslo', 'Bonn')
    const [child = 0, ...rest] = idsIn(before, 'addresses')
    await b.remove('rel.Address', child)
    return addressesOf(before, rest)
  },
  'B has deleted a circle that was linked': async ({ a, b }) => {
    const { data } = await a.create('rel.Person', { name: 'P', circles: [{ name: 'C' }, { name: 'D' }] })
    const [circle = 0, ...rest] = idsIn(data, 'circles')
    await b.remove('rel.Circle', circle)
    return { model: 'rel.Person', list: 'circles', before: data, members: rest }
  },
}

onEveryEngine((engine) => {
  const changes = Object.keys(CHANGES)

  test('saving an outdated owned list is a conflict after every kind of change', async () => {
    expect(await faultsOfOlderLists(engine)).toEqual(changes.map((change) => ({ change, faults: [] })))
  })

  test('the mutant that does not raise the version of the owner is caught after every kind of change', async () => {
    const results = await faultsOfOlderLists(engine, withoutOwnerRaise)
    expect(results.filter(({ faults }) => faults.length > 0).map(({ change }) => change)).toEqual(changes)
  })

  test(`saves of an owned list during concurrent additions lose no member, in ${ROUNDS} rounds`, async () => {
    const { saved, rejected, violations } = await raceForList(engine)
    expect(violations).toEqual([])
    expect(saved + rejected).toBe(ROUNDS)
    // Both sides won at times, so it was a race.
    expect(Math.min(saved, rejected)).toBeGreaterThan(0)
  })

  test('the mutant that does not raise the version of the owner is caught in the race', async () => {
    const { violations } = await raceForList(engine, withoutOwnerRaise)
    expect(violations).toContainEqual(expect.stringContaining(IS_LOST))
  })

  test('an unchanged owned list in a nested save removes no member that was added concurrently', async () => {
    expect(await membersLostAlong(engine)).toEqual([])
  })

  // SQLite runs one write transaction at a time and needs no such lock.
  if (engine === 'postgres') {
    test('the mutant that does not lock the owner of the list is caught', async () => {
      expect(await membersLostAlong(engine, withoutRowLocks)).not.toEqual([])
    })
  }
})

interface Verdict {
  readonly change: string
  readonly faults: readonly string[]
}

/** Violations by A's save of the outdated list. */
async function faultsOfOlderLists(engine: Engine, mutant?: Mutant): Promise<Verdict[]> {
  return onNodes(engine, { mutant }, async ({ first, second }) => {
    const verdicts: Verdict[] = []
    for (const [change, make] of Object.entries(CHANGES)) {
      const { model, list, before, members } = await make({ a: first.client, b: second.client })
      const { id, version } = before
      const data = { version, name: 'saved by A', [list]: before[list] }
      const { status, kind } = await send(first.client, 'POST', `${model}/${id}`, data)
      const after = idsIn(await second.client.read(model, id), list)
      const faults = [
        ...(kind === 'conflict' ? [] : [`answered ${status}`]),
        ...(after.join() === members.join()
          ? []
          : [`the members are ${after.join()}, not ${members.join()}`]),
      ]
      verdicts.push({ change, faults })
    }
    return verdicts
  })
}

interface Race {
  /** Counts the saves of the whole list. */
  readonly saved: number
  readonly rejected: number
  /** Must stay empty. */
  readonly violations: readonly string[]
}

async function raceForList(engine: Engine, mutant?: Mutant): Promise<Race> {
  return onNodes(engine, { mutant }, async ({ first, second, db }) => {
    const { id } = await companyIn(first.client, 'Oslo')
    const clients = [first.client, second.client] as const
    const violations: string[] = []
    let [saved, rejected] = [0, 0]
    const isLost = (fault: string) => fault.endsWith(IS_LOST)
    for (let round = 1; round <= ROUNDS && !violations.some(isLost); round++) {
      const before = await first.client.read('rel.Company', id)
      const { save, adds } = await playRound(
        round % 2 === 0 ? clients : [clients[1], clients[0]],
        before,
        round,
      )
      const after = await second.client.read('rel.Company', id)
      violations.push(...violationsOf(before, save, adds, after).map((fault) => `round ${round}: ${fault}`))
      if (save.record) saved++
      else rejected++
    }
    const { version } = await second.client.read('rel.Company', id)
    const logged = await changesBetween(db.reader, 'rel.Company', id, -1, Number.MAX_SAFE_INTEGER)
    const versions = logged.map((change) => change.version).reverse()
    if (versions.join() !== Array.from({ length: version + 1 }, (_, index) => index).join())
      violations.push(`the record is at version ${version}, and the Log has ${versions.join()}`)
    return { saved, rejected, violations }
  })
}

interface Round {
  readonly save: Sent
  readonly adds: readonly Sent[]
}

/** A saves the list that it has read, without the oldest members and with a new one, while B adds some, in random order. */
async function playRound(
  [a, b]: readonly [HttpClient, HttpClient],
  before: WireRecord,
  round: number,
): Promise<Round> {
  const { id, version } = before
  const kept = idsIn(before, 'addresses')
    .slice(-2)
    .map((member) => ({ id: member }))
  const addresses = [...kept, { city: `A in ${round}` }]
  const saving = soon(() =>
    send(a, 'POST', `rel.Company/${id}`, { version, name: `saved in ${round}`, addresses }),
  )
  const adding = Array.from({ length: ADDERS }, () =>
    soon(() => send(b, 'PUT', 'rel.Address', { city: `B in ${round}`, company: { id } })),
  )
  return { save: await saving, adds: await Promise.all(adding) }
}

/** Runs `work` after a random delay, so that chance decides who is first. */
async function soon<T>(work: () => Promise<T>): Promise<T> {
  await sleep(randomInt(SOON_MS))
  return work()
}

function violationsOf(before: WireRecord, save: Sent, adds: readonly Sent[], after: WireRecord): string[] {
  const faults: string[] = []
  if (save.status !== 200 && save.kind !== 'conflict') faults.push(`a save was answered ${save.status}`)
  const there = new Set(idsIn(after, 'addresses'))
  // No save of this round contains an address that was added in this round.
  const wanted = new Set(idsIn(save.record ?? before, 'addresses'))
  for (const { status, record } of adds) {
    if (!record) faults.push(`an add was answered ${status}`)
    else if (!there.has(record.id)) faults.push(`address ${record.id} ${IS_LOST}`)
    if (record) wanted.add(record.id)
  }
  for (const id of wanted) if (!there.has(id)) faults.push(`address ${id} is not in the list`)
  for (const id of there) if (!wanted.has(id)) faults.push(`address ${id} is in the list again`)
  const successes = [save, ...adds].filter(({ record }) => record).length
  if (after.version !== before.version + successes)
    faults.push(`${successes} changes made version ${before.version} to ${after.version}`)
  return faults
}

/** A saves a person together with a company as it was read; meanwhile B adds an address to that company. */
async function membersLostAlong(engine: Engine, mutant?: Mutant): Promise<readonly number[]> {
  return onNodes(engine, { mutant }, async (nodes) => {
    const { first, second } = nodes
    const company = await companyIn(first.client, 'Oslo')
    const { data: person } = await first.client.create('rel.Person', { company: { id: company.id } })
    const { id, version, addresses } = company
    const data = { version: person.version, company: { id, version, addresses } }
    const [save, add] = await interleave(
      nodes,
      /from "rel\.Company" as t where/,
      () => send(first.client, 'POST', `rel.Person/${person.id}`, data),
      () => send(second.client, 'PUT', 'rel.Address', { city: 'Rome', company: { id } }),
    )
    expect([save, add]).toMatchObject([{ status: expect.toBeOneOf([200, 409]) }, { status: 200 }])
    const there = idsIn(await second.client.read('rel.Company', id), 'addresses')
    return [...idsIn(company, 'addresses'), add.record?.id ?? 0].filter((member) => !there.includes(member))
  })
}

async function companyIn(records: Records, ...cities: readonly string[]): Promise<WireRecord> {
  const addresses = cities.map((city) => ({ city }))
  return (await records.create('rel.Company', { name: 'the owner', addresses })).data
}

function addressesOf(before: WireRecord, members: readonly number[]): Outdated {
  return { model: 'rel.Company', list: 'addresses', before, members }
}

function idsIn(record: WireRecord, list: string): number[] {
  return listOf(record, list).map(({ id }) => id)
}
