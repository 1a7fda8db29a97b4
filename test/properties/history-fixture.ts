// Random writes to related records, with the records as read after each: a replay without the change log.
import type { Records, WireRecord } from '../../src/wire.js'
import type { VersoError } from '../../src/errors.js'
import type { TestClock } from '../targets.js'

const MODELS = ['rel.Company', 'rel.Address', 'rel.Person', 'rel.Circle'] as const
type ModelName = (typeof MODELS)[number]

const FIELDS: Readonly<Record<ModelName, string>> = {
  'rel.Company': 'code,name,founded,addresses,seat,createdOn,updatedOn',
  'rel.Address': 'city,street,company,updatedOn',
  'rel.Person': 'name,born,rate,isActive,company,boss,circles,createdBy,updatedBy',
  'rel.Circle': 'name,createdOn',
}

interface Moment {
  readonly at: string
  readonly lists: ReadonlyMap<ModelName, unknown>
}

export class HistoryFixture {
  /** `model id version` → the record as read at that version. */
  readonly seen = new Map<string, unknown>()
  readonly moments: Moment[] = []
  /** The number of deleted records that were reverted. */
  returns = 0
  readonly #gone = new Map<ModelName, Map<number, number>>(MODELS.map((name) => [name, new Map()]))
  #names = 0

  constructor(
    private readonly records: Records,
    private readonly clock: TestClock,
    private readonly random: () => number,
  ) {}

  async step(): Promise<void> {
    this.clock.advance(1_000)
    try {
      await this.#write()
    } catch (error) {
      // A rejected write changes nothing, and counts as a step.
      if (!(error instanceof Error) || !('kind' in (error as VersoError))) throw error
    }
    this.clock.advance(1_000)
    const lists = new Map<ModelName, unknown>()
    for (const model of MODELS) {
      const { data, total } = await this.records.find(model, { fields: FIELDS[model], limit: 1_000 })
      lists.set(model, { total, data: data.map(identities) })
      const there = new Set(data.map(({ id }) => id))
      for (const { id } of data) {
        const record = await this.records.read(model, id)
        this.seen.set(`${model} ${id} ${record.version}`, identities(record))
        this.#gone.get(model)?.delete(id)
      }
      for (const key of this.seen.keys()) {
        const [name, id = '', version = ''] = key.split(' ')
        if (name !== model || there.has(Number(id))) continue
        const gone = this.#gone.get(model)
        gone?.set(Number(id), Math.max(Number(version) + 1, gone.get(Number(id)) ?? 0))
      }
    }
    this.moments.push({ at: new Date(this.clock.now()).toISOString(), lists })
  }

  /** Differences between the history and the records as read at the time. */
  async differences(): Promise<string[]> {
    const faults: string[] = []
    for (const [key, expected] of this.seen) {
      const [model = '', id, version] = key.split(' ')
      const was = await this.records
        .readAt(model, Number(id), Number(version))
        .then(identities, (error: unknown) => String(error))
      if (!same(was, expected)) faults.push(`${key}: ${JSON.stringify(was)} was ${JSON.stringify(expected)}`)
    }
    for (const { at, lists } of this.moments) {
      for (const [model, expected] of lists) {
        const { data, total } = await this.records.find(model, {
          ...{ fields: FIELDS[model], limit: 1_000, asOf: at },
        })
        const was = { total, data: data.map(identities) }
        if (!same(was, expected))
          faults.push(`${model} at ${at}: ${JSON.stringify(was)} was ${JSON.stringify(expected)}`)
      }
    }
    return faults
  }

  async #write(): Promise<void> {
    const model = this.#pick(MODELS) ?? 'rel.Company'
    const all = (await this.records.find(model, { limit: 1_000 })).data
    const one = this.#pick(all)
    const chance = this.random()
    if (!one || chance < 0.25) await this.records.create(model, await this.#dataFor(model))
    else if (chance < 0.7)
      await this.records.update(model, one.id, { version: one.version, ...(await this.#dataFor(model)) })
    else if (chance < 0.8) await this.records.remove(model, one.id)
    else if (chance < 0.9 && one.version > 0)
      await this.records.revert(model, one.id, {
        version: one.version,
        to: Math.floor(this.random() * one.version),
      })
    else {
      const gone = this.#pick([...(this.#gone.get(model) ?? [])])
      if (!gone) return
      const [id, version] = gone
      const last = (await this.records.history(model, id, { limit: 1 })).data[0]?.version ?? version
      await this.records.revert(model, id, { version: last, to: Math.max(0, version - 1) })
      this.returns++
    }
  }

  async #dataFor(model: ModelName): Promise<object> {
    const name = `n${++this.#names}`
    const maybe = <T>(value: T) => (this.random() < 0.5 ? value : undefined)
    if (model === 'rel.Circle') return { name }
    if (model === 'rel.Address')
      return { city: name, street: maybe(name), company: maybe(await this.#reference('rel.Company')) }
    if (model === 'rel.Company')
      return {
        ...{
          name,
          code: maybe(name),
          founded: maybe('2001-01-01'),
          seat: maybe(await this.#reference('rel.Address')),
        },
        addresses: maybe([{ city: name }, { city: `${name}b` }]),
      }
    return {
      ...{ name, born: maybe('1999-09-09'), rate: maybe(`${this.#names}.25`), isActive: this.random() < 0.5 },
      ...{
        company: maybe(await this.#reference('rel.Company')),
        boss: maybe(await this.#reference('rel.Person')),
      },
      circles: maybe((await this.#some('rel.Circle')).map(({ id }) => ({ id }))),
    }
  }

  async #reference(model: ModelName): Promise<{ id: number } | null> {
    const one = this.#pick((await this.records.find(model, { limit: 1_000 })).data)
    return one ? { id: one.id } : null
  }

  async #some(model: ModelName): Promise<WireRecord[]> {
    return (await this.records.find(model, { limit: 1_000 })).data.filter(() => this.random() < 0.5)
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.random() * items.length)]
  }
}

/** Replaces related records by their ids: the history shows them as they are today. */
function identities(record: WireRecord): unknown {
  return JSON.parse(JSON.stringify(record), (_, value: unknown) =>
    typeof value === 'object' && value !== null && ('$version' in value || Object.keys(value).join() === 'id')
      ? { id: (value as { id: number }).id }
      : value,
  )
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** A random generator that repeats its numbers for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}
