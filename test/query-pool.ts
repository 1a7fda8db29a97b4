import type { Queryable, QueryPool } from '../src/store/engine/database.js'

/** The same searcher, each statement of which goes another way, inside of snapshots too. */
export function searchingBy(queryPool: QueryPool, change: (queryable: Queryable) => Queryable): QueryPool {
  const changed = change(queryPool)
  return {
    all: (sql, params) => changed.all(sql, params),
    snapshot: (work) => queryPool.snapshot((db) => work(change(db))),
  }
}

/** Where nothing is ever of one moment. */
export function withoutSnapshots(queryable: Queryable): QueryPool {
  return { all: (sql, params) => queryable.all(sql, params), snapshot: (work) => work(queryable) }
}
