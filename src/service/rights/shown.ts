// What a caller is shown of records: those that may be seen, without what is hidden in them.
import type { Criteria } from '../../model/criteria.js'
import type { Model } from '../../model/model.js'
import type { Rights } from '../../model/rights.js'
import { fullSelection, listSelection } from '../../model/selection.js'
import type { Queryable } from '../../store/database.js'
import * as store from '../../store/records.js'
import { compileSelection, type Select } from '../../store/select.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../app.js'
import type { Caller } from './caller.js'

type Shown = 'full' | 'list'
type Composed = Pick<App, 'tables' | 'db'>

const SELECTIONS = { full: fullSelection, list: listSelection }
/** Rights are kept from one request to the next, and with them the SQL that follows from them. */
const COMPILED = new WeakMap<Rights, Map<string, Select>>()

/** A record as it is read, or as it is found. */
export function selectFor({ tables, db }: Composed, { rights }: Caller, model: Model, shown: Shown): Select {
  if (!rights) return tables.of(model)[shown]
  const compiled = COMPILED.get(rights) ?? new Map<string, Select>()
  COMPILED.set(rights, compiled)
  const key = `${shown} ${model.name}`
  const select = compiled.get(key) ?? compileSelection(db.dialect, SELECTIONS[shown](rights, model))
  compiled.set(key, select)
  return select
}

/** Whether every record is shown to the caller as it is, with all that it holds. */
export function seesWhole(app: Composed, by: Caller, model: Model): boolean {
  if (!by.rights) return true
  const { full } = app.tables.of(model)
  const { byId, params } = selectFor(app, by, model, 'full')
  return byId === full.byId && params.length === 0 && seenBy(by, model) === undefined
}

/** The records that the caller may see; all of them if undefined. */
export function seenBy({ rights }: Caller, model: Model): Criteria | undefined {
  return rights?.of(model).rows('read')
}

/** A record as the caller sees it; undefined if it is not there, or may not be seen. */
export async function readFor(
  app: Composed,
  by: Caller,
  db: Queryable,
  model: Model,
  id: number,
  select = selectFor(app, by, model, 'full'),
): Promise<WireRecord | undefined> {
  return store.read(db, app.tables.of(model), id, select, { seen: seenBy(by, model) })
}

/** Those of the ids that the caller may see; without regard to whether they are there, where everything may be seen. */
export async function seenAmong(
  app: Composed,
  { rights }: Caller,
  db: Queryable,
  model: Model,
  ids: readonly number[],
  seen = rights?.seen(model),
): Promise<ReadonlySet<number>> {
  return seen && ids.length > 0 ? store.among(db, app.tables.of(model), ids, seen) : new Set(ids)
}
