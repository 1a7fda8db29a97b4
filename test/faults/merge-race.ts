// Many writers change one record concurrently, each another field, and all from the same version. With `Prefer: merge=fields` every change
// is kept.
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DEFAULT_SETTINGS } from '../../src/service/context/settings.js'
import type { Database, Queryable } from '../../src/store/engine/database.js'
import { changesBetween } from '../log.js'
import { openDatabase } from '../../src/store/open.js'
import type { WireRecord } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import { newLocation, PASSWORD, startService, USERNAME, type Engine } from '../targets.js'
import { exchange, type Answer } from './load-client.js'
import { startServerProcess } from './server-process.js'
import { FIELDS, models, WIDE } from './wide-model.js'

export interface MergeRace {
  /** The number of fields that are changed, each by another writer. */
  readonly writers: number
  readonly connections: number
}

export interface Result {
  readonly successes: number
  readonly version: number
  /** Must stay empty. */
  readonly violations: readonly string[]
}

const MAX_SHOWN_CHARACTERS = 300
const MAX_REPEATS = 20

interface Sent extends Answer {
  readonly field: string
  readonly value: string
}

/** Runs the race on a service in this process; a mutant can replace its database. */
export async function mergeInProcess(
  engine: Engine,
  race: MergeRace,
  mutant: (db: Database) => Database = (db) => db,
  prepare: (db: Database) => Promise<void> = async () => undefined,
): Promise<Result> {
  const location = await newLocation(engine)
  const { poolSize, statementTimeoutMs } = DEFAULT_SETTINGS
  const database = await openDatabase(location.url, { poolSize, statementTimeoutMs })
  const service = await startService(engine, { location, database: mutant(database), models })
  try {
    await prepare(database)
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    return await mergeAtOnce([client], database.reader, race)
  } finally {
    await service.close()
    location.remove()
  }
}

/** Runs the race through several processes on one database. */
export async function mergeInProcesses(engine: Engine, count: number, race: MergeRace): Promise<Result> {
  const location = await newLocation(engine)
  const file = fileURLToPath(new URL('wide-model.ts', import.meta.url))
  const start = () =>
    startServerProcess(location.url, undefined, undefined, { MODELS: file, expects: ['busy'] })
  const nodes = await Promise.all(Array.from({ length: count }, start))
  const observer = await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 })
  try {
    const clients = await Promise.all(nodes.map(({ url }) => HttpClient.login(url, USERNAME, PASSWORD)))
    return await mergeAtOnce(clients, observer.reader, race)
  } finally {
    await observer.close()
    await Promise.all(nodes.map((node) => node.kill()))
    location.remove()
  }
}

async function mergeAtOnce(
  clients: readonly HttpClient[],
  db: Queryable,
  { writers, connections }: MergeRace,
): Promise<Result> {
  const [judge] = clients
  if (!judge) throw new Error('a race needs a client')
  const { data: record } = await judge.create(WIDE, {})
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const send = async (field: string, index: number): Promise<Sent> => {
    const value = String(index + 1)
    const body = { data: { version: 0, [field]: value }, fields: [field, 'total'] }
    const manner = { agent, headers: { prefer: 'merge=fields' } }
    const path = `/ws/rest/${WIDE}/${record.id}`
    const exchangeOnce = () => exchange(clients[index % clients.length] ?? judge, 'POST', path, body, manner)
    let answer = await exchangeOnce()
    // On a slow machine a merge may wait for the record longer than the service permits. Clients repeat it then.
    for (let repeats = 0; answer.status === 503 && repeats < MAX_REPEATS; repeats++) {
      const seconds = Number(answer.headers['retry-after'])
      if (!(seconds > 0)) break
      await sleep(seconds * 1_000)
      answer = await exchangeOnce()
    }
    return { ...answer, field, value }
  }
  // All requests are in flight before the first response.
  const answers = await Promise.all(FIELDS.slice(0, writers).map(send))
  agent.destroy()
  const violations = [...faultsInAnswers(answers), ...(await faultsInLog(db, record.id, answers))]
  for (const client of clients) violations.push(...faultsIn(await client.read(WIDE, record.id), answers))
  const { version } = await judge.read(WIDE, record.id)
  return { successes: answers.filter(({ status }) => status === 200).length, version, violations }
}

function faultsInAnswers(answers: readonly Sent[]): string[] {
  const faults: string[] = []
  const refusals = new Map<string, number>()
  for (const { status, body } of answers) {
    const refusal = `${status} ${JSON.stringify(body)}`.slice(0, MAX_SHOWN_CHARACTERS)
    if (status !== 200) refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1)
  }
  for (const [refusal, count] of refusals) faults.push(`${count} were answered ${refusal}`)
  const versions = new Set<number>()
  for (const { status, headers, body, field, value } of answers) {
    if (status !== 200) continue
    const [record] = body.data as readonly WireRecord[]
    const { version = 0 } = record ?? {}
    if (versions.has(version)) faults.push(`version ${version} was given twice`)
    versions.add(version)
    if (record?.[field] !== value) faults.push(`${field} was answered as ${String(record?.[field])}`)
    if ((headers['preference-applied'] === 'merge=fields') !== version > 1)
      faults.push(`version ${version} was answered with ${String(headers['preference-applied'])}`)
  }
  return faults
}

function faultsIn(record: WireRecord, answers: readonly Sent[]): string[] {
  const accepted = answers.filter(({ status }) => status === 200)
  const faults = accepted.flatMap(({ field, value }) =>
    record[field] === value ? [] : [`${field} was acknowledged, and is lost`],
  )
  if (record.version !== accepted.length)
    faults.push(`${accepted.length} updates succeeded, and the version is ${record.version}`)
  const total = accepted.reduce((sum, { value }) => sum + Number(value), 0)
  if (record['total'] !== total) faults.push(`the total is ${String(record['total'])}, not ${total}`)
  return faults
}

/** Each version is one change of one field. */
async function faultsInLog(db: Queryable, id: number, answers: readonly Sent[]): Promise<string[]> {
  const made = (await changesBetween(db, WIDE, id, 0, Number.MAX_SAFE_INTEGER)).reverse()
  const faults: string[] = []
  const values = new Map(answers.map(({ field, value }) => [field, value]))
  for (const [index, { version, changes }] of made.entries()) {
    const own = Object.keys(changes).filter((name) => name !== 'total')
    const [field = ''] = own
    const isRight = own.length === 1 && changes[field]?.after === values.get(field)
    if (version !== index + 1 || !isRight) faults.push(`the Log has ${own.join()} as version ${version}`)
  }
  return faults
}
