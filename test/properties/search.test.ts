// Both engines find exactly what an independent oracle finds, in every form of a search.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ENGINES, enter } from '../targets.js'
import { WRONG_SEARCHES } from '../mutants/records.js'
import {
  asking,
  claimSearches,
  expectedBy,
  openDatasets,
  RELATED,
  searchPages,
  SEED,
  serviceOf,
} from './search-claims.js'
import type { Ask } from './search-questions.js'

openDatasets()

// `search.all.test.ts` runs more searches.
claimSearches({ related: 120, values: 60, archived: 25 })

describe('mutants of search', () => {
  const mutants = ENGINES.flatMap((engine) =>
    Object.keys(WRONG_SEARCHES).map((mutant) => [mutant, engine] as const),
  )
  test.for(mutants)('the oracle catches a mutant that finds records %s, on %s', async ([mutant, engine]) => {
    const { app, ...service } = serviceOf(engine)
    const db = WRONG_SEARCHES[mutant]?.(app.db) ?? app.db
    const records = await enter({ ...service, app: { ...app, db } }, 'direct')
    const isRight = async (ask: Ask) => {
      const ids = expectedBy(ask)
      const found = await searchPages(records, ask, ids.length)
      return JSON.stringify(found) === JSON.stringify({ totals: [ids.length], ids })
    }
    const property = fc.asyncProperty(asking.ask([...RELATED, 'test.Note']), isRight)
    // Some mutants break only one search in about 130.
    const options = { seed: SEED, numRuns: 10_000, endOnFailure: true }
    const { failed, errorInstance } = await fc.check(property, options)
    // The mutant fails by a wrong answer, not by a database error.
    expect([failed, String(errorInstance)]).toEqual([true, expect.stringContaining('returning false')])
  })
})
