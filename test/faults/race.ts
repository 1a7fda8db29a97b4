// Many equal concurrent updates of one record: one must succeed, all others must be conflicts.
import type { Database, Queryable } from '../../src/store/engine/database.js'
import { changesBetween } from '../log.js'
import { openDatabase } from '../../src/store/open.js'
import type { WireRecord } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, preparedLocation, startService, USERNAME, type Engine } from '../targets.js'
import { exchange, type Answer } from './load-client.js'
import { startServerProcess } from './server-process.js'

const MODEL = 'crm.Contact'

export interface Race {
  readonly rounds: number
  readonly writers: number
}

export interface Result {
  readonly successes: number
  readonly conflicts: number
  /** Must stay empty. */
  readonly violations: readonly string[]
}

interface Sent extends Answer {
  readonly token: string
}

/** Runs the race on a service in this process; a mutant can replace its database. */
export async function raceInProcess(
  engine: Engine,
  options: Race,
  mutant: (db: Database) => Database = (db) => db,
  prepare: (db: Database) => Promise<void> = async () => undefined,
): Promise<Result> {
  const location = await preparedLocation(engine)
  const database = mutant(await openDatabase(location.url, { poolSize: 10, statementTimeoutMs: 10_000 }))
  const service = await startService(engine, { location, database })
  try {
    await prepare(database)
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    return await race([client], database.reader, options)
  } finally {
    await service.close()
    location.remove()
  }
}

/** Runs the race through two processes on one database, with half of the writers on each. */
export async function raceOfTwoProcesses(engine: Engine, options: Race): Promise<Result> {
  const location = await preparedLocation(engine)
  const nodes = await Promise.all([startServerProcess(location.url), startServerProcess(location.url)])
  const observer = await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 })
  try {
    const clients = await Promise.all(nodes.map(({ url }) => HttpClient.login(url, USERNAME, PASSWORD)))
    return await race(clients, observer.reader, options)
  } finally {
    await observer.close()
    await Promise.all(nodes.map((node) => node.kill()))
    location.remove()
  }
}

/** Distributes the writers over the clients, that is over the nodes; `db` reads the stored rows. */
export async function race(
  clients: readonly HttpClient[],
  db: Queryable,
  { rounds, writers }: Race,
): Promise<Result> {
  const [judge] = clients
  if (!judge) throw new Error('a race needs a client')
  const { data: record } = await judge.create(MODEL, { firstName: 'the record', lastName: 'nobody' })
  const violations: string[] = []
  let [successes, conflicts] = [0, 0]
  for (let round = 1; round <= rounds && violations.length === 0; round++) {
    const before = await judge.read(MODEL, record.id)
    const answers = await Promise.all(
      Array.from({ length: writers }, (_, index) =>
        send(clients[index % clients.length] ?? judge, before, `round ${round}, writer ${index}`),
      ),
    )
    const after = await judge.read(MODEL, record.id)
    violations.push(...faultsOf(answers, before, after).map((fault) => `round ${round}: ${fault}`))
    successes += answers.filter(({ status }) => status === 200).length
    conflicts += answers.filter(({ status }) => status === 409).length
  }
  for (const client of clients) {
    const { version } = await client.read(MODEL, record.id)
    if (version !== successes)
      violations.push(`${successes} updates succeeded, and the version is ${version}`)
  }
  const logged = (await changesBetween(db, MODEL, record.id, -1, Number.MAX_SAFE_INTEGER)).reverse()
  const isComplete =
    logged.length === successes + 1 && logged.every(({ version }, index) => version === index)
  if (!isComplete) violations.push(`the Log has the versions ${logged.map(({ version }) => version).join()}`)
  return { successes, conflicts, violations }
}

async function send(client: HttpClient, { id, version }: WireRecord, token: string): Promise<Sent> {
  const data = { version, lastName: token }
  return { token, ...(await exchange(client, 'POST', `/ws/rest/${MODEL}/${id}`, { data })) }
}

function faultsOf(answers: readonly Sent[], before: WireRecord, after: WireRecord): string[] {
  const faults: string[] = []
  const winners = answers.filter(({ status }) => status === 200)
  const losers = answers.filter(({ status }) => status === 409)
  if (winners.length !== 1) faults.push(`${winners.length} of ${answers.length} succeeded`)
  const others = answers.filter(({ status }) => status !== 200 && status !== 409)
  if (others.length > 0)
    faults.push(`answered ${[...new Set(others.map(({ status }) => status))].join(', ')}`)
  if (after.version !== before.version + 1) faults.push(`version ${before.version} became ${after.version}`)
  for (const { token } of winners) {
    if (after['lastName'] !== token) faults.push(`"${token}" was acknowledged, and is lost`)
  }
  for (const { body } of losers) {
    const { current } = body.data as { current: number }
    if (current !== before.version + 1) faults.push(`a loser was told of version ${current}`)
  }
  return faults
}
