// Paging with cursors shows the records of a plain find, in its order, for any sort.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Records } from '../../src/wire.js'
import { WRONG_CURSORS } from '../mutants/cursors.js'
import { ENGINES, enter, startService, type Engine, type Service } from '../targets.js'
import { idsByWalking } from '../paging.js'
import { filterOf } from './search-forms.js'
import { Oracle } from './search-oracle.js'
import { Asking, type Ask } from './search-questions.js'
import { storeDataset, SHAPES, generateDataset } from './search-fixture.js'

const SEED = Number(process.env['VERSO_SEARCH_SEED'] ?? Date.now() % 2 ** 31)
const RELATED = ['rel.Person', 'rel.Person', 'rel.Badge', 'rel.Company', 'rel.Address', 'rel.Door']
const MAX_RECORDS = 60

const dataset = generateDataset(SEED)
const asking = new Asking(dataset)
const services = new Map<Engine, Service>()
const recordsByTransport = new Map<string, Records>()
let oracle: Oracle

interface Walk extends Ask {
  readonly limit: number
  /** True to page through all records: a random condition matches few. */
  readonly isWhole: boolean
}

const walks = (models: readonly string[]): fc.Arbitrary<Walk> =>
  fc
    .record({ ask: asking.ask(models), limit: fc.integer({ min: 1, max: 9 }), isWhole: fc.boolean() })
    .map(({ ask, ...walk }) => ({ ...ask, ...walk }))

beforeAll(async () => {
  const datasets = await Promise.all(
    ENGINES.map(async (engine) => {
      const service = await startService(engine)
      services.set(engine, service)
      for (const transport of ['direct', 'http'] as const)
        recordsByTransport.set(`${engine} ${transport}`, await enter(service, transport))
      return storeDataset(await enter(service, 'direct'), dataset)
    }),
  )
  oracle = new Oracle(SHAPES, datasets[0] ?? {})
})
afterAll(async () => {
  await Promise.all([...services.values()].map((service) => service.close()))
})

const EVERYTHING = { join: 'and', parts: [{ path: 'id', operator: 'notNull' }] } as const

async function walked(records: Records, walk: Walk): Promise<[found: number[], expected: number[]]> {
  const { model, sortBy, archived, limit, isWhole } = walk
  const expected = oracle.find(model, isWhole ? EVERYTHING : walk.question, sortBy, archived)
  const filter = isWhole ? {} : { filter: filterOf(walk) }
  const query = { limit, fields: [], archived, ...filter, ...(sortBy.length > 0 ? { sortBy } : {}) }
  // One page more than possible would repeat a record.
  return [await idsByWalking(records, model, query, MAX_RECORDS + 1), expected]
}

const claims: readonly (readonly [claim: string, models: readonly string[], numRuns: number])[] = [
  ['over relations of every kind', RELATED, 120],
  ['over values of every type', ['test.Everything'], 80],
  ['with and without archived records', ['test.Note'], 40],
]
test.for(claims)('paging with cursors shows every record once and in order, %s', async (claim) => {
  const [, models, numRuns] = claim
  const check = async (walk: Walk) => {
    for (const engine of ENGINES) {
      const records = recordsByTransport.get(`${engine} ${walk.transport}`)
      if (!records) throw new Error(`${engine} is not there`)
      const [found, expected] = await walked(records, walk)
      expect(found, engine).toEqual(expected)
    }
  }
  await fc.assert(fc.asyncProperty(walks(models), check), { seed: SEED, numRuns })
})

describe('mutants of cursors', () => {
  const mutants = ENGINES.flatMap((engine) =>
    Object.keys(WRONG_CURSORS).map((mutant) => [mutant, engine] as const),
  )
  test.for(mutants)('mutant cursors %s are caught, on %s', async ([mutant, engine]) => {
    const service = services.get(engine)
    if (!service) throw new Error(`${engine} is not there`)
    const db = WRONG_CURSORS[mutant]?.(service.app.db) ?? service.app.db
    const records = await enter({ ...service, app: { ...service.app, db } }, 'direct')
    const isRight = async (walk: Walk) => {
      const [found, expected] = await walked(records, walk)
      return found.join() === expected.join()
    }
    const property = fc.asyncProperty(walks(['rel.Person', 'test.Everything']), isRight)
    const options = { seed: SEED, numRuns: 5_000, endOnFailure: true }
    const { failed, errorInstance } = await fc.check(property, options)
    // The mutant fails by a wrong answer, not by a database error.
    expect([failed, String(errorInstance)]).toEqual([true, expect.stringContaining('returning false')])
  })
})
