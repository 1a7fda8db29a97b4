import type { Queryable, QueryPool } from '../src/store/engine/database.js'
import { queryPoolOf } from './queryables.js'

/** A query pool whose statements are changed, also inside of snapshots. */
export function searchingBy(queryPool: QueryPool, change: (queryable: Queryable) => Queryable): QueryPool {
  const changed = change(queryPool)
  return queryPoolOf(
    (sql, params) => changed.all(sql, params),
    (work) => queryPool.snapshot((db) => work(change(db))),
  )
}

/** A query pool without snapshots. */
export function withoutSnapshots(queryable: Queryable): QueryPool {
  return queryPoolOf(
    (sql, params) => queryable.all(sql, params),
    (work) => work(queryable),
  )
}
