// Rounds of random writes, while readers copy lists and follow the feed from their cursors.
import { randomInt } from 'node:crypto'
import { VersoError } from '../../src/errors.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { Copy, tableOf } from '../feed.js'
import { enter, preparedLocation, startService, type Engine, type Service } from '../targets.js'

const WRITERS = 8
const WRITES_EACH = 25
const MAX_COPIES = 12
const MODELS = ['rel.Company', 'rel.Address', 'rel.Person', 'rel.Circle'] as const
const FIELDS: Readonly<Record<string, string>> = {
  'rel.Company': 'code,name,founded,addresses,seat,parent',
  'rel.Address': 'city,street,company,doors',
  'rel.Person': 'name,born,rate,isActive,company,boss,circles,keeper',
  'rel.Circle': 'name',
}

/** The errors after up to `rounds` rounds; stops at the first round with one. */
export async function complaintsOf(
  engine: Engine,
  rounds: number,
  mutant: (db: Database) => Database = (db) => db,
): Promise<string[]> {
  const location = await preparedLocation(engine)
  const database = mutant(await openDatabase(location.url, { poolSize: 24, statementTimeoutMs: 10_000 }))
  const service = await startService(engine, { location, database })
  const other = engine === 'postgres' ? await startService(engine, { location }) : service
  try {
    for (let round = 0; round < rounds; round++) {
      const complaints = await complaintsOfRound(service, other)
      if (complaints.length > 0) return complaints
    }
    return []
  } finally {
    if (other !== service) await other.close()
    await service.close()
    location.remove()
  }
}

async function complaintsOfRound(service: Service, other: Service): Promise<string[]> {
  const nodes = [await enter(service, 'http'), await enter(other, 'direct')] as const
  const started = new Map<string, Copy[]>(MODELS.map((model) => [model, [new Copy()]]))
  let isOver = false
  const { seq: from } = await nodes[0].find('rel.Circle', { limit: 0 })
  const following = follow(nodes[0], from, () => isOver)
  const copying = copyNowAndThen(nodes[0], started, () => isOver)
  await Promise.all(
    Array.from({ length: WRITERS }, (_, index) => writeAtRandom(nodes[index % 2] ?? nodes[0])),
  )
  isOver = true
  await copying
  const complaints = await skipped(nodes[0], from, await following)
  for (const [model, copies] of started) {
    const { data, seq } = await nodes[0].find(model, { limit: 1000, fields: FIELDS[model] })
    for (const copy of copies) complaints.push(...(await differences(nodes[0], model, copy, data, seq)))
  }
  return complaints
}

/** A follower that only waits for new Changes: the sequence numbers that it gets. */
async function follow(records: Records, from: number, isOver: () => boolean): Promise<ReadonlySet<number>> {
  const told = new Set<number>()
  for (let since = from, isLast = false; !isOver() || !isLast;) {
    const { data, next } = await records.changes({ since, wait: 1, limit: randomInt(1, 50) })
    for (const { seq } of data) told.add(seq)
    isLast = data.length === 0
    since = next
  }
  return told
}

/** Changes that the feed has by now, but did not deliver to the follower. */
async function skipped(records: Records, from: number, told: ReadonlySet<number>): Promise<string[]> {
  const { data } = await records.changes({ since: from, limit: 1000 })
  return data
    .filter(({ seq }) => !told.has(seq))
    .map(({ seq, model, id }) => `${seq}, ${model} ${id}, was skipped`)
}

async function copyNowAndThen(
  records: Records,
  started: ReadonlyMap<string, Copy[]>,
  isOver: () => boolean,
): Promise<void> {
  for (let copies = 0; copies < MAX_COPIES && !isOver(); copies++) {
    const model = MODELS[randomInt(MODELS.length)] ?? 'rel.Person'
    const { data, seq } = await records.find(model, { limit: 1000, fields: FIELDS[model] })
    started.get(model)?.push(new Copy(seq, { [model]: data }))
  }
}

/** Brings the copy up to date and compares it with the table. */
async function differences(
  records: Records,
  model: string,
  copy: Copy,
  table: readonly WireRecord[],
  upTo: number,
): Promise<string[]> {
  const from = copy.seq
  for (let since = from; since < upTo;) {
    const { data, next } = await records.changes({ since, model, limit: randomInt(1, 300) })
    copy.applyAll(data.filter(({ seq }) => seq <= upTo))
    since = next
  }
  const [expected, folded] = [tableOf(table), copy.recordsOf(model)]
  const ids = new Set([...expected.keys(), ...folded.keys()])
  const isEqual = (id: number) => JSON.stringify(expected.get(id)) === JSON.stringify(folded.get(id))
  const wrong = [...ids].filter((id) => !isEqual(id))
  return [
    ...copy.complaints.map((complaint) => `${model} from ${from}: ${complaint}`),
    ...wrong.map(
      (id) =>
        `${model} ${id} from ${from}: ${JSON.stringify(folded.get(id))} is ${JSON.stringify(expected.get(id))}`,
    ),
  ]
}

/** Ignores errors: conflicts with other writers, and references that prevent a delete. */
async function writeAtRandom(records: Records): Promise<void> {
  for (let turn = 0; turn < WRITES_EACH; turn++) {
    try {
      await writeOnce(records)
    } catch (error) {
      if (!(error instanceof VersoError)) throw error
    }
  }
}

async function writeOnce(records: Records): Promise<void> {
  const kind = randomInt(10)
  const model = MODELS[randomInt(MODELS.length)] ?? 'rel.Person'
  if (kind < 4) {
    await records.create(model, await valuesFor(records, model))
    return
  }
  const target = await anyOf(records, model)
  if (!target) return
  if (kind === 4) await records.remove(model, target.id)
  else
    await records.update(model, target.id, { version: target.version, ...(await valuesFor(records, model)) })
}

async function anyOf(records: Records, model: string): Promise<WireRecord | undefined> {
  const { data } = await records.find(model, { limit: 20, sortBy: '-id' })
  return data[randomInt(Math.max(1, data.length))]
}

async function referenceTo(records: Records, model: string): Promise<{ readonly id: number } | null> {
  const found = randomInt(3) === 0 ? undefined : await anyOf(records, model)
  return found ? { id: found.id } : null
}

async function valuesFor(records: Records, model: string): Promise<Record<string, unknown>> {
  const text = String(randomInt(1_000_000))
  if (model === 'rel.Circle') return { name: text }
  if (model === 'rel.Address')
    return { city: text, street: text, company: await referenceTo(records, 'rel.Company') }
  if (model === 'rel.Company') return { name: text, parent: await referenceTo(records, 'rel.Company') }
  const circle = await referenceTo(records, 'rel.Circle')
  return {
    ...{ name: text, rate: `${randomInt(100)}.50`, isActive: randomInt(2) === 0 },
    ...{ company: await referenceTo(records, 'rel.Company'), circles: circle ? [circle] : [] },
  }
}
