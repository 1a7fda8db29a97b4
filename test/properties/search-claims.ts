// Random searches on both engines, over every transport and in every form, compared with an independent oracle.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SearchRequest } from '../../src/model/query/search.js'
import type { Page, Records } from '../../src/wire.js'
import { ENGINES, enter, startService, type Transport, type Engine, type Service } from '../targets.js'
import { domainOf, filterOf, jsonOf } from './search-forms.js'
import { Oracle } from './search-oracle.js'
import { Asking, type Ask } from './search-questions.js'
import { storeDataset, SHAPES, generateDataset } from './search-fixture.js'

/** The seed of the records and the searches. fast-check prints it on failure; set it in the environment to repeat a run. */
export const SEED = Number(process.env['VERSO_SEARCH_SEED'] ?? Date.now() % 2 ** 31)
const PEOPLE = ['rel.Person', 'rel.Person', 'rel.Circle', 'rel.Badge']
export const RELATED = [...PEOPLE, 'rel.Company', 'rel.Address', 'rel.Door']

const dataset = generateDataset(SEED)
export const asking = new Asking(dataset)
const services = new Map<Engine, Service>()
const recordsByTransport = new Map<string, Records>()
let oracle: Oracle

/** Creates the same records on both engines, for the tests of one file. */
export function openDatasets(): void {
  beforeAll(async () => {
    const datasets = await Promise.all(
      ENGINES.map(async (engine) => {
        const service = await startService(engine)
        services.set(engine, service)
        const direct = await enter(service, 'direct')
        recordsByTransport.set(`${engine} direct`, direct)
        recordsByTransport.set(`${engine} http`, await enter(service, 'http'))
        return storeDataset(direct, dataset)
      }),
    )
    expect(datasets[1]).toEqual(datasets[0])
    oracle = new Oracle(SHAPES, datasets[0] ?? {})
  })
  afterAll(async () => {
    await Promise.all([...services.values()].map((service) => service.close()))
  })
}

/** The expected ids. */
export function expectedBy({ model, question, sortBy, archived }: Ask): number[] {
  return oracle.find(model, question, sortBy, archived)
}

export function serviceOf(engine: Engine): Service {
  const service = services.get(engine)
  if (!service) throw new Error(`${engine} is not there`)
  return service
}

function through(engine: Engine, transport: Transport): Records {
  const records = recordsByTransport.get(`${engine} ${transport}`)
  if (!records) throw new Error(`${engine} is not there`)
  return records
}

interface Found {
  readonly totals: readonly number[]
  readonly ids: readonly number[]
}

async function searchAll(records: Records, ask: Ask, data: SearchRequest['data']): Promise<Found> {
  const { model, sortBy } = ask
  return foundIn([await records.search(model, { limit: 1000, fields: [], sortBy, data })])
}

async function findAll(records: Records, ask: Ask): Promise<Found> {
  const { model, sortBy, archived } = ask
  const query = { limit: 1000, fields: [], sortBy, archived, filter: filterOf(ask) }
  return foundIn([await records.find(model, query)])
}

export async function searchPages(records: Records, ask: Ask, count: number): Promise<Found> {
  const { model, sortBy, pageSize } = ask
  const data = jsonOf(ask, false)
  const pages = Array.from({ length: Math.max(1, Math.ceil(count / pageSize)) }, (_, page) =>
    records.search(model, { offset: page * pageSize, limit: pageSize, fields: [], sortBy, data }),
  )
  return foundIn(await Promise.all(pages))
}

function foundIn(pages: readonly Page[]): Found {
  return {
    totals: [...new Set(pages.map((page) => page.total))],
    ids: pages.flatMap((page) => page.data.map((record) => record.id)),
  }
}

/** Runs the search in pages on both engines, and in each other form on one of them, concurrently. */
async function check(ask: Ask): Promise<void> {
  const { transport, turn } = ask
  const ids = expectedBy(ask)
  const answers = ENGINES.flatMap((engine, index) => {
    const records = through(engine, transport)
    const forms: [form: string, found: Promise<Found>][] = [
      ['in pages', searchPages(records, ask, ids.length)],
    ]
    if (index === turn)
      forms.push(
        ['spelled out', searchAll(records, ask, jsonOf(ask, true))],
        [filterOf(ask), findAll(records, ask)],
      )
    else forms.push([JSON.stringify(domainOf(ask)), searchAll(records, ask, domainOf(ask))])
    return forms.map(async ([form, found]) => [`${engine}, ${form}`, await found] as const)
  })
  const expected = { totals: [ids.length], ids }
  for (const [form, found] of await Promise.all(answers)) expect(found, form).toEqual(expected)
}

export interface Runs {
  readonly related: number
  readonly values: number
  readonly archived: number
}

/** Runs so many random searches of each kind. */
export function claimSearches({ related, values, archived }: Runs): void {
  const claims: readonly (readonly [claim: string, models: readonly string[], numRuns: number])[] = [
    ['over relations of every kind', RELATED, related],
    ['over values of every type', ['test.Everything'], values],
    ['with and without archived records', ['test.Note'], archived],
  ]
  test.for(claims)(
    'a random search finds what the oracle finds, %s',
    { timeout: 600_000 },
    async ([, models, numRuns]) => {
      await fc.assert(fc.asyncProperty(asking.ask(models), check), { seed: SEED, numRuns })
    },
  )
}
