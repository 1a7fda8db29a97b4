// Plain records of one request are written together. Errors name the request that they belong to, as if each was written alone.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordsFor } from '../../src/service/records/records.js'
import type { Database } from '../../src/store/engine/database.js'
import type { Records } from '../../src/wire.js'
import { faceOf, withoutListGuard } from '../mutants/records.js'
import { unsharedTransaction } from '../queryables.js'
import { catchError, identityIn, onEveryEngine, startService, type Service } from '../targets.js'

const EVERYTHING = 'test.Everything'
/** Enough that SQLite updates the list with one statement. */
const LIST_LENGTH = 24

onEveryEngine((engine) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine)
    records = recordsFor(service.app, await identityIn(service))
  })
  afterAll(() => service.close())

  test('a stale record in the middle of a batch is reported with its index, and nothing is written', async () => {
    const drafts = Array.from({ length: 6 }, (_, index) => ({ label: `n${index}` }))
    const { data } = await records.save(EVERYTHING, drafts)
    await records.update(EVERYTHING, data[3]?.id ?? 0, { version: 0, label: 'changed' })
    const requests = data.map(({ id }) => ({
      op: 'update',
      model: EVERYTHING,
      id,
      version: 0,
      data: { label: 'x' },
    }))
    const error = await catchError(records.batch(requests))
    expect([error.kind, error.details.data?.['index']]).toEqual(['conflict', 3])
    const after = await records.find(EVERYTHING, { sortBy: 'id' })
    expect(after.data.map(({ version }) => version)).toEqual([0, 0, 0, 1, 0, 0])
  })

  test('a list does not overwrite a record that changes after the list was read', async () => {
    const saveList = async (mutate: (db: Database) => Database) => {
      const drafts = Array.from({ length: LIST_LENGTH }, (_, index) => ({ label: `m${index}` }))
      const { data } = await records.save(EVERYTHING, drafts)
      const db = changingBeforeUpdate(mutate(service.app.db), EVERYTHING, data[2]?.id ?? 0)
      const app = { ...service.app, db }
      const updates = data.map(({ id, version }) => ({ id, version, label: 'x' }))
      return recordsFor(app, await identityIn(service)).save(EVERYTHING, updates)
    }
    const error = await catchError(saveList((db) => db))
    expect(error.kind).toBe('conflict')
    const { data } = await records.find(EVERYTHING, { filter: "label = 'x'" })
    expect(data).toEqual([])
    // A mutant without the guard is caught: it overwrites the record.
    const overwritten = await saveList(withoutListGuard)
    expect(overwritten.data).toHaveLength(LIST_LENGTH)
  })
})

/** Changes the record right before the first statement that updates a list. */
function changingBeforeUpdate(db: Database, table: string, id: number): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) =>
      db.transaction((tx) => {
        let isChanged = false
        const changeFirst = async (sql: string) => {
          // On SQLite the list has a savepoint, which would take the change back.
          if (isChanged || !/^savepoint |^update .* as t set /.test(sql)) return
          isChanged = true
          await tx.run(`update "${table}" set "version" = "version" + 1 where "id" = ?`, [id])
        }
        const changing = unsharedTransaction({
          all: async (sql, params) => {
            await changeFirst(sql)
            return tx.all(sql, params)
          },
          run: async (sql, params) => {
            await changeFirst(sql)
            return tx.run(sql, params)
          },
          insert: (sql, params) => tx.insert(sql, params),
        })
        return work(changing)
      }, options),
  }
}
