// Mutants of the database. Each breaks one guarantee, and the tests of that guarantee must catch it.
import { rmSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { VersoError } from '../../src/errors.js'
import type {
  BlobStore,
  Database,
  Queryable,
  Reader,
  Row,
  SqlValue,
  Transaction,
} from '../../src/store/engine/database.js'
import { searchingBy, withoutSnapshots } from '../query-pool.js'
import { changedReader, unshared, unsharedTransaction } from '../queryables.js'

const GUARD = ' and "version" = ?'
const LIST_GUARD = / and t\."version" = "new"\.(?:"\$version"|column2)/
const COMMIT_LATE_MS = 40
const FROM = /from ("[^"]*") as t /g

type Statement = [sql: string, params: readonly SqlValue[] | undefined]

/** Updates without the version guard. */
export function withoutVersionGuard(db: Database): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) => db.transaction((tx) => work(unguarded(tx)), options),
  }
}

/** Updates lists of records without the version guard. */
export function withoutListGuard(db: Database): Database {
  const unguardedList = (sql: string) => sql.replace(LIST_GUARD, '')
  const leaving = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(unguardedList(sql), params),
      run: (sql, params) => tx.run(unguardedList(sql), params),
      insert: (sql, params) => tx.insert(sql, params),
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(leaving(tx)), options) }
}

/** Reads, checks and writes without a transaction and without the version guard. */
export function readCheckWrite(db: Database): Database {
  const alone: Transaction = unsharedTransaction({
    all: (sql, params) => db.reader.all(sql, params),
    run: (sql, params) => db.transaction((tx) => tx.run(...withoutGuard(sql, params))),
    insert: (sql, params) => db.transaction((tx) => tx.insert(sql, params)),
  })
  return { ...faceOf(db), transaction: (work) => work(alone) }
}

/** Assigns log numbers in the order of the writes, not of the commits. */
export function withoutLogLock(db: Database): Database {
  // Sends each statement separately, because a statement sent with its COMMIT is hardly ever overtaken.
  const apart = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      run: (sql, params) => tx.run(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
    })
  return {
    ...faceOf(db),
    dialect: { ...db.dialect, lockLog: { with: '', from: '', raiseTime: (ms) => ms } },
    transaction: (work, options) => db.transaction((tx) => work(apart(tx)), options),
  }
}

/** Answers before the COMMIT. */
export function answersBeforeCommit(db: Database, lateMs = COMMIT_LATE_MS): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) =>
      new Promise((resolve, reject) => {
        const lateWork = async (tx: Transaction) => {
          resolve(await work(tx))
          await sleep(lateMs)
        }
        db.transaction(lateWork, options).catch(reject)
      }),
  }
}

/** Leaves the version of an owner as it is when its list changes from the members' side, and logs no Change. */
export function withoutOwnerRaise(db: Database): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) => db.transaction((tx) => work(leavingOwners(tx)), options),
  }
}

/** Takes no locks on referenced records, neither for references nor for deletes. */
export function withoutReferenceLocks(db: Database): Database {
  return { ...faceOf(db), dialect: { ...db.dialect, lockForReference: '', lockForRemoval: '' } }
}

/** Takes no lock on rows that are read for a write. */
export function withoutRowLocks(db: Database): Database {
  return { ...faceOf(db), dialect: { ...db.dialect, lockForUpdate: '' } }
}

/** Locks the records of a nested save one after the other, not in a fixed order beforehand. */
export function withoutOrderedLocks(db: Database): Database {
  const inOrder = /^select 1 from .* where "id" in .* order by "id" for /
  const lockingAsItComes = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: async (sql, params) => (inOrder.test(sql) ? [] : tx.all(sql, params)),
      run: (sql, params) => tx.run(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
    })
  return {
    ...faceOf(db),
    transaction: (work, options) => db.transaction((tx) => work(lockingAsItComes(tx)), options),
  }
}

/** Reports deadlocks to the client instead of a retry. */
export function withoutSecondAttempt(db: Database): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) => {
      let attempts = 0
      const onlyOnce = async (tx: Transaction) => {
        if (++attempts > 1) throw new VersoError('busy', 'a deadlock', { retryAfterS: 1 })
        return work(tx)
      }
      return db.transaction(onlyOnce, options)
    },
  }
}

/** Retries a transaction without a pause. */
export function retryingAtOnce(db: Database): Database {
  class Failed extends Error {}
  return {
    ...faceOf(db),
    transaction: async (work, options) => {
      // The database knows no such error, so it does not retry.
      const once = (tx: Transaction) =>
        work(tx).catch((cause: unknown) => {
          throw new Failed('failed', { cause })
        })
      for (let attempt = 1; ; attempt++) {
        try {
          return await db.transaction(once, options)
        } catch (error) {
          if (!(error instanceof Failed)) throw error
          if (attempt === 3) throw new VersoError('busy', 'a deadlock', { retryAfterS: 1 })
        }
      }
    },
  }
}

/** Reads a sequence number before it is incremented, outside of the transaction. */
export function numbersReadFirst(db: Database): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) => db.transaction((tx) => work(readingNumbersFirst(tx, db.reader)), options),
  }
}

/** Hides existing records from an import. */
export function forgettingWhatIsThere(db: Database): Database {
  return importing(db, async (tx, sql, params) =>
    sql.startsWith('select "id", "version" from ') ? [] : tx.all(sql, params),
  )
}

/** Treats all referenced records as existing. */
export function believingReferences(db: Database): Database {
  return importing(db, async (tx, sql, params) => {
    if (!/^select "id" from .* order by "id"/.test(sql)) return tx.all(sql, params)
    return (JSON.parse(String(params?.[0])) as number[]).map((id) => ({ id }))
  })
}

/** Does not move the id sequence past imported ids. */
export function withoutPassedIds(db: Database): Database {
  return { ...faceOf(db), dialect: { ...db.dialect, advanceIds: () => [] } }
}

/** Runs searches on the reader: on SQLite, on the event loop. */
export function searchingOnReader(db: Database): Database {
  return { ...faceOf(db), queryPool: withoutSnapshots(db.reader) }
}

/** Mutants that change the SQL of searches, by the records they find. */
export const WRONG_SEARCHES: Readonly<Record<string, (db: Database) => Database>> = {
  // Only without an order, because a page with fewer records than its total is requested again and again.
  'only if every relation of the path is set': searching((sql) =>
    sql.includes(' nulls last') ? sql : sql.replaceAll('left join', 'join'),
  ),
  'once for each member of a list': searching((sql) =>
    sql.includes('exists (')
      ? sql.replaceAll(FROM, 'from (select * from $1 union all select * from $1) as t ')
      : sql,
  ),
  'that match a negated list condition': searching((sql) => sql.replaceAll('not exists (', 'exists (')),
  'that match the pattern of not like': searching((sql) => sql.replaceAll('not like', 'like')),
  'that match the values of not in': searching((sql) => sql.replaceAll(' not in (', ' in (')),
  'below the upper end of a range, without the end': searching((sql) => sql.replaceAll('<= ?', '< ?')),
  'that are archived': searching((sql) => sql.replaceAll('"archived" is not true', '"archived" is not null')),
  'sorted with nulls at either end': searching((sql) => sql.replaceAll(' nulls last', '')),
}

/** Skips the recovery after a killed process. */
export function withoutRecovery(db: Database): Database {
  return { ...faceOf(db), blobs: { ...blobsOf(db), recover: async () => Promise.resolve() } }
}

/** SQLite: deletes content in the transaction that deletes its row, before the commit. */
export function removesBeforeCommit(db: Database): Database {
  const { blobs } = db
  if (!('folder' in blobs)) throw new Error('this mutant is for SQLite')
  const folder = String(blobs.folder)
  return {
    ...faceOf(db),
    blobs: {
      ...blobsOf(db),
      drop: async (tx, file) => {
        rmSync(path.join(folder, file.key.slice(0, 2), file.key), { force: true })
        await blobs.drop(tx, file)
      },
    },
  }
}

/** PostgreSQL: stores content after its row is committed. */
export function storesAfterCommit(db: Database): Database {
  const { blobs } = db
  const rows = new Map<string, number>()
  return {
    ...faceOf(db),
    blobs: {
      ...blobsOf(db),
      store: async (_, id, { key }) => {
        rows.set(key, id)
        return Promise.resolve()
      },
      finish: async (incoming) => {
        const id = rows.get(incoming.key)
        if (id !== undefined) await db.transaction((tx) => blobs.store(tx, id, incoming))
        await blobs.finish(incoming)
      },
    },
  }
}

/** Skips the work after the transaction, like a process that ended right after it. */
export function withoutSettling(db: Database): Database {
  return { ...faceOf(db), blobs: { ...blobsOf(db), finish: async () => Promise.resolve() } }
}

/** Returns other content than was stored. */
export function openingOthers(db: Database): Database {
  const open = async () => Promise.resolve(Readable.from([Buffer.from('another')]))
  return { ...faceOf(db), blobs: { ...blobsOf(db), open } }
}

/** Runs another statement for every record that is found. */
export function withRelatedOneByOne(db: Database): Database {
  const oneByOne = (queryable: Queryable): Reader =>
    unshared({
      all: async (sql, params) => {
        const rows = await queryable.all(sql, params)
        for (const row of rows) await queryable.all('select ? as "id"', [String(row['id'])])
        return rows
      },
    })
  return { ...faceOf(db), reader: oneByOne(db.reader), queryPool: searchingBy(db.queryPool, oneByOne) }
}

function importing(
  db: Database,
  all: (tx: Transaction, ...statement: Statement) => Promise<Row[]>,
): Database {
  const changed = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => all(tx, sql, params),
      run: (sql, params) => tx.run(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
    })
  return {
    ...faceOf(db),
    transaction: (work, options) => db.transaction((tx) => work(changed(tx)), options),
  }
}

export function searching(change: (sql: string) => string): (db: Database) => Database {
  return (db) => ({
    ...faceOf(db),
    // Searches of small tables run on the reader.
    reader: changedReader(db.reader, (sql, params) => db.reader.all(change(sql), params)),
    queryPool: searchingBy(db.queryPool, (each) =>
      unshared({ all: (sql, params) => each.all(change(sql), params) }),
    ),
  })
}

export function faceOf(db: Database): Database {
  return {
    dialect: db.dialect,
    reader: db.reader,
    queryPool: db.queryPool,
    blobs: db.blobs,
    commits: db.commits,
    writability: () => db.writability(),
    gauges: () => db.gauges(),
    measure: () => db.measure(),
    transaction: (work, options) => db.transaction(work, options),
    close: () => db.close(),
  }
}

function blobsOf({ blobs }: Database): BlobStore {
  return {
    receive: (source, limitBytes) => blobs.receive(source, limitBytes),
    store: (tx, id, incoming) => blobs.store(tx, id, incoming),
    finish: (incoming) => blobs.finish(incoming),
    drop: (tx, file) => blobs.drop(tx, file),
    collect: () => blobs.collect(),
    open: (file) => blobs.open(file),
    openInSnapshot: (snapshot, file) => blobs.openInSnapshot(snapshot, file),
    retainDropped: () => blobs.retainDropped(),
    recover: (forgottenMs) => blobs.recover(forgottenMs),
    countPending: () => blobs.countPending(),
    findOrphans: () => blobs.findOrphans(),
    close: () => blobs.close(),
  }
}

function unguarded(tx: Transaction): Transaction {
  return unsharedTransaction({
    all: (sql, params) => tx.all(sql, params),
    run: (sql, params) => tx.run(...withoutGuard(sql, params)),
    insert: (sql, params) => tx.insert(sql, params),
  })
}

function withoutGuard(sql: string, params: readonly SqlValue[] | undefined): Statement {
  const isGuarded = sql.startsWith('update ') && sql.endsWith(GUARD)
  return isGuarded ? [sql.slice(0, -GUARD.length), params?.slice(0, -1)] : [sql, params]
}

const OWNER_RAISE = /^update "([^"]+)" set "updatedOn" = \?, "updatedBy" = \?, "version" = /
const COLUMNS_OF_CHANGE = 7

function leavingOwners(tx: Transaction): Transaction {
  const left = new Set<string>()
  const ofOthers = (rows: SqlValue[][]) =>
    rows.filter(([model = '', record = '']) => !left.has(`${model} ${record}`))
  return unsharedTransaction({
    all: (sql, params) => tx.all(sql, params),
    insert: (sql, params) => tx.insert(sql, params),
    run: async (sql, params = []) => {
      const [, owner] = OWNER_RAISE.exec(sql) ?? []
      if (owner !== undefined) {
        left.add(`${owner} ${params[2] ?? ''}`)
        return 1
      }
      if (!sql.includes('insert into verso_log ')) return tx.run(sql, params)
      // The Log rejects a second Change of a version, which would hide the defect.
      const rows = ofOthers(chunksOf(params, COLUMNS_OF_CHANGE))
      if (rows.length === 0) return 0
      const [into = '', row = ''] = sql.split(/(?<=changes\) )| union all /)
      return tx.run(into + rows.map(() => row).join(' union all '), rows.flat())
    },
  })
}

function chunksOf(values: readonly SqlValue[], size: number): SqlValue[][] {
  return Array.from({ length: values.length / size }, (_, index) =>
    values.slice(index * size, (index + 1) * size),
  )
}

function readingNumbersFirst(tx: Transaction, reader: Queryable): Transaction {
  const select = 'select next from verso_sequence where name = ?'
  let read: Row[] = []
  return unsharedTransaction({
    insert: (sql, params) => tx.insert(sql, params),
    run: async (sql, params) => {
      if (sql.startsWith('update verso_sequence ')) read = await reader.all(select, params)
      return tx.run(sql, params)
    },
    all: async (sql, params) =>
      sql === select ? read.map((row) => ({ next: Number(row['next']) + 1 })) : tx.all(sql, params),
  })
}

/** Ignores tables that another node created in between. */
export function blindToOtherNodes(db: Database): Database {
  const isLook = (sql: string) => sql.startsWith('select model, shape from verso_schema where')
  const blind = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: async (sql, params) => (isLook(sql) ? [] : tx.all(sql, params)),
      run: (sql, params) => tx.run(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(blind(tx)), options) }
}

/** Reads the number of the last Change after the page, in its own statement. */
export function withLateSeq(db: Database): Database {
  const late = (inner: Queryable): Reader =>
    unshared({
      all: async (sql, params) => {
        const rows = await inner.all(sql, params)
        if (rows[0]?.['$seq'] === undefined) return rows
        await sleep(COMMIT_LATE_MS)
        const [last] = await inner.all('select max(seq) as "last" from verso_log')
        return rows.map((row) => ({ ...row, $seq: last?.['last'] ?? 0 }))
      },
    })
  return { ...faceOf(db), reader: late(db.reader), queryPool: searchingBy(db.queryPool, late) }
}
