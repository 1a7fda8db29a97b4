// Mutants of the choice between the reader and the query pool, and of the plans that searches share.
import type { Model } from '../../src/model/definition/model.js'
import type { App } from '../../src/service/context/app.js'
import { SearchPlan, SearchPlans, type PlanKey } from '../../src/store/find/search-plan.js'
import { TableSizes, type TableSize } from '../../src/store/find/table-sizes.js'
import type { Reader } from '../../src/store/engine/database.js'
import { changedReader } from '../queryables.js'
import { faceOf } from './records.js'

type Sizes = ReadonlyMap<Model, TableSize>

function withSizes(app: App, change: (read: () => Promise<Sizes>) => Promise<Sizes>): App {
  class ChangedSizes extends TableSizes {
    override read(models: ReadonlySet<Model>): Promise<Sizes> {
      return change(() => super.read(models))
    }
  }
  const { db, tables, clock } = app
  return { ...app, tableSizes: new ChangedSizes(db.reader, tables, () => clock.elapsed?.() ?? 0) }
}

/** Keeps the first measurement for ever. */
export function measuringOnce(app: App): App {
  let first: Promise<Sizes> | undefined
  return withSizes(app, (read) => (first ??= read()))
}

/** Counts rows and ignores their size. */
export function withoutBytes(app: App): App {
  return withSizes(app, async (read) => {
    const sizes = [...(await read())]
    return new Map(sizes.map(([model, { rows }]) => [model, { rows, bytes: 0, maxRowBytes: 0 }]))
  })
}

/** Measures only the searched table, and believes that related tables are empty. */
export function withoutRelatedTables(app: App): App {
  return withSizes(app, async (read) => {
    const [[model, size] = [], ...related] = [...(await read())]
    const empty = related.map(([each]) => [each, { rows: 0, bytes: 0, maxRowBytes: 0 }] as const)
    return new Map(model && size ? [[model, size], ...empty] : empty)
  })
}

/** Scans a table whose size is known, although the Log has another Change. */
export function scanningGrownTables(app: App): App {
  return withReader(app, (sql, params) =>
    app.db.reader.all(sql.replace(') = ?) select', ') >= ?) select'), params),
  )
}

/** Believes that the sizes which it knows are those of the tables. */
export function trustingKnownSizes(app: App): App {
  return withReader(app, async (sql, params) => {
    const rows = await app.db.reader.all(sql, params)
    return sql.startsWith('with "unchanged"')
      ? rows.map((row) => ({ ...row, $seq: params?.[0] ?? null }))
      : rows
  })
}

function withReader(app: App, all: Reader['all']): App {
  return { ...app, db: { ...faceOf(app.db), reader: changedReader(app.db.reader, all) } }
}

/** Finds the plan of an equal query, whoever has sent it. */
export function sharingPlans(app: App): App {
  class SharedPlans extends SearchPlans {
    override find(key: PlanKey): SearchPlan | undefined {
      return super.find({ ...key, visibility: app.catalog })
    }

    override add(key: PlanKey, plan: SearchPlan): SearchPlan {
      return super.add({ ...key, visibility: app.catalog }, plan)
    }
  }
  return { ...app, searchPlans: new SharedPlans() }
}

/** Counts the matches although the search asks for no total. */
export function countingAnyway(app: App): App {
  class CountingPlans extends SearchPlans {
    override add(_key: PlanKey, { table, search, select }: SearchPlan): SearchPlan {
      return new SearchPlan(table, { ...search, uncounted: false }, select)
    }
  }
  return { ...app, searchPlans: new CountingPlans() }
}
