// Random concurrent changes of one record from versions of any age: the accepted changes, applied in the order of their versions, must
// equal the record, and each must be rightly accepted or rejected.
import fc from 'fast-check'
import type { HttpClient } from '../http-client.js'
import { exchange } from './load-client.js'
import type { Nodes } from './nodes.js'

const MODEL = 'crm.Contact'
const FIELDS = ['firstName', 'lastName', 'email', 'notes'] as const

type Fields = Readonly<Record<string, string | null>>

interface Wish {
  /** The age of the version that it names: 0 is the oldest, 1 the newest known one. */
  readonly age: number
  readonly fields: Fields
}

const value = fc.constantFrom('a', 'b', null)
const fields = fc
  .record(Object.fromEntries(FIELDS.map((name) => [name, value])), { requiredKeys: [] })
  .filter((each) => Object.keys(each).length > 0) as fc.Arbitrary<Fields>
const wish = fc.record({ age: fc.double({ min: 0, max: 1, noNaN: true }), fields })
const waves = fc.array(fc.array(wish, { minLength: 8, maxLength: 24 }), { minLength: 2, maxLength: 3 })

interface Outcome {
  readonly named: number
  readonly fields: Fields
  /** The version that it created; undefined if it was rejected. */
  readonly made: number | undefined
  /** The version at which it was rejected. */
  readonly rejectedAt: number
}

/** Runs this many rounds, or until one has errors; returns the errors. */
export async function mergeAtRandom(nodes: Nodes, rounds: number): Promise<string[]> {
  for (const some of fc.sample(waves, rounds)) {
    const faults = await mergeWaves(nodes, some)
    if (faults.length > 0) return faults
  }
  return []
}

async function mergeWaves({ first, second }: Nodes, waves: readonly (readonly Wish[])[]): Promise<string[]> {
  const clients = [first.client, second.client]
  const { data } = await first.client.create(MODEL, {})
  const outcomes: Outcome[] = []
  for (const wishes of waves) {
    const { version } = await first.client.read(MODEL, data.id)
    const sent = wishes.map(async ({ age, fields }, index) =>
      send(clients[index % 2] ?? first.client, data.id, Math.round(age * version), fields),
    )
    outcomes.push(...(await Promise.all(sent)))
  }
  return faultsOf(outcomes, await second.client.read(MODEL, data.id))
}

async function send(client: HttpClient, id: number, named: number, fields: Fields): Promise<Outcome> {
  const body = { data: { version: named, ...fields } }
  const headers = { prefer: 'merge=fields' }
  const answer = await exchange(client, 'POST', `/ws/rest/${MODEL}/${id}`, body, { headers })
  if (answer.status === 200) {
    const [record] = answer.body.data as readonly { version: number }[]
    return { named, fields, made: record?.version, rejectedAt: NaN }
  }
  if (answer.status !== 409) throw new Error(`answered ${answer.status}: ${JSON.stringify(answer.body)}`)
  return { named, fields, made: undefined, rejectedAt: (answer.body.data as { current: number }).current }
}

function faultsOf(outcomes: readonly Outcome[], record: Readonly<Record<string, unknown>>): string[] {
  const faults: string[] = []
  const states: Fields[] = [Object.fromEntries(FIELDS.map((name) => [name, null]))]
  const accepted = outcomes.filter(({ made }) => made !== undefined)
  for (const { fields, made } of accepted.sort((a, b) => (a.made ?? 0) - (b.made ?? 0))) {
    if (made !== states.length) faults.push(`version ${made} follows ${states.length - 1}`)
    states.push({ ...states.at(-1), ...fields })
  }
  for (const name of FIELDS)
    if (record[name] !== states.at(-1)?.[name])
      faults.push(`${name} is ${String(record[name])}, not ${String(states.at(-1)?.[name])}`)
  if (record['version'] !== states.length - 1) faults.push(`the version is ${String(record['version'])}`)
  /** True if a field holds neither its value at the named version nor the sent value. */
  const isTaken = ({ named, fields }: Outcome, at: number) =>
    Object.entries(fields).some(
      ([name, wish]) => ![states[named]?.[name], wish].includes(states[at]?.[name] ?? null),
    )
  for (const outcome of outcomes) {
    const { made, rejectedAt } = outcome
    const what = JSON.stringify(outcome)
    if (made !== undefined && isTaken(outcome, made - 1)) faults.push(`wrongly accepted: ${what}`)
    if (made === undefined && !isTaken(outcome, rejectedAt)) faults.push(`wrongly rejected: ${what}`)
  }
  return faults
}
