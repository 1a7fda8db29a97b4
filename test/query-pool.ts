import type { Queryable, QueryPool } from '../src/store/engine/database.js'

/** A query pool whose statements are changed, also inside of snapshots. */
export function searchingBy(queryPool: QueryPool, change: (queryable: Queryable) => Queryable): QueryPool {
  const changed = change(queryPool)
  return {
    all: (sql, params) => changed.all(sql, params),
    snapshot: (work) => queryPool.snapshot((db) => work(change(db))),
  }
}

/** A query pool without snapshots. */
export function withoutSnapshots(queryable: Queryable): QueryPool {
  return { all: (sql, params) => queryable.all(sql, params), snapshot: (work) => work(queryable) }
}
