// A database that rejected a write as read-only accepts writes again after a later one succeeds, without a probe.
import { expect, test } from 'vitest'
import type { UnwritableState } from '../../src/store/engine/write-health.js'
import type { Transaction } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { newLocation, onEveryEngine, catchError } from '../targets.js'

const READ_ONLY = { kind: 'read-only', reason: 'The database is read-only; nothing was changed' }

onEveryEngine((engine) => {
  test('a successful write ends a read-only condition; a transaction that only reads does not', async () => {
    const location = await newLocation(engine)
    const told: (UnwritableState | undefined)[] = []
    const onWriteHealthChange = (unwritable: UnwritableState | undefined) => told.push(unwritable)
    const db = await openDatabase(location.url, {
      poolSize: 1,
      statementTimeoutMs: 10_000,
      onWriteHealthChange,
    })
    await db.transaction((tx) => tx.run('create table item (code integer)'))
    const add = (tx: Transaction) => tx.run('insert into item (code) values (1)')

    if (engine === 'sqlite')
      await db.transaction(async (tx) => {
        await tx.all('pragma query_only = on')
        expect(await catchError(add(tx))).toMatchObject({ kind: 'busy' })
        await tx.all('pragma query_only = off')
      })
    else
      await catchError(
        db.transaction(async (tx) => {
          await tx.all('set transaction_read_only = on')
          await add(tx)
        }),
      )
    expect(told).toEqual([READ_ONLY])
    if (engine === 'sqlite') expect(await db.writability()).toEqual(READ_ONLY)

    await Promise.all([db.transaction(add), db.transaction(add)])
    // On PostgreSQL the next check of the server ends it, within a second.
    await expect.poll(() => told).toEqual([READ_ONLY, undefined])
    expect(await db.writability()).toBeUndefined()
    await db.close()
    location.remove()
  })
})
