// Mutants of the choice between the reader and the query pool.
import type { Model } from '../../src/model/definition/model.js'
import type { App } from '../../src/service/context/app.js'
import { TableSizes, type TableSize } from '../../src/store/find/table-sizes.js'

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
