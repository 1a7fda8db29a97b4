// One model on one database, over starts with changing definitions.
import { afterEach, beforeEach, expect } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { openDatabase } from '../../src/store/open.js'
import type { SchemaPlan } from '../../src/store/schema/plan.js'
import { applySchema, previewSchema } from '../../src/store/schema/apply.js'
import type { Database } from '../../src/store/engine/database.js'
import type { Records } from '../../src/wire.js'
import { enter, newLocation, startService, type Engine, type DatabaseLocation } from '../targets.js'

export const MODEL = 'crm.Lead'
export const text = { type: 'string' }

export const source = (fields: object, more: object = {}) => [
  { file: 'lead.json', definition: { name: MODEL, fields, ...more } },
]

export interface Lead {
  readonly location: () => DatabaseLocation
  /** Starts a service with these fields, runs `use`, and stops it. */
  readonly withModels: <T>(fields: object, use: (lead: Records) => Promise<T>, more?: object) => Promise<T>
  readonly withDatabase: <T>(use: (db: Database) => Promise<T>) => Promise<T>
  /** Shows the plan for these fields, or applies it. */
  readonly plan: (fields: object, drops?: readonly string[], apply?: boolean) => Promise<SchemaPlan>
}

/** Creates a fresh database for each test of the block. */
export function useLead(engine: Engine): Lead {
  let location: DatabaseLocation
  beforeEach(async () => {
    location = await newLocation(engine)
  })
  afterEach(() => {
    location.remove()
  })
  const withDatabase: Lead['withDatabase'] = async (use) => {
    const db = await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 })
    try {
      return await use(db)
    } finally {
      await db.close()
    }
  }
  return {
    location: () => location,
    withDatabase,
    withModels: async (fields, use, more = {}) => {
      const service = await startService(engine, { location, models: source(fields, more) })
      try {
        return await use(await enter(service, 'direct'))
      } finally {
        await service.close()
      }
    },
    plan: (fields, drops = [], apply = false) =>
      withDatabase((db) => (apply ? applySchema : previewSchema)(db, Catalog.from(source(fields)), drops)),
  }
}

/** The errors that a start fails with. */
export async function faultsOf(start: Promise<unknown>): Promise<string> {
  const error = await start.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).errors.join('\n')
}
