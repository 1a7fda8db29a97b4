// Finds deleted records: the Changes that deleted them, newest first, as a history shows them to the principal.
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { listUnknownParameters, type QueryParameterSet } from '../../model/query/parameters.js'
import { buildTextMatcher, parseTextSearch } from '../../model/query/search-words.js'
import { DEFAULT_PAGE_RECORDS, parseWholeParameter } from '../../model/query/search.js'
import { MAX_HISTORY_PAGE_BYTES } from '../../store/log/change-pages.js'
import { readDeletePage, readDeleteRevisions } from '../../store/log/deleted-records.js'
import type { Change, DeletedPage, DeletedQuery } from '../../wire.js'
import { requirePermission } from '../access/request-checks.js'
import { getVisibility, withDatabase, type Context } from '../context/context.js'
import {
  filterVisibleChanges,
  filterVisibleRevisions,
  seesAllRecordsAlike,
  toRevisionQueries,
} from './visible-changes.js'

export const DELETED_PARAMETERS: QueryParameterSet = {
  known: ['limit', 'before', 'q'] satisfies (keyof DeletedQuery)[],
}

const EXAMINED_PAGE_CHANGES = 100
/** One request examines at most this many pages of deletes: 2,000 Changes. */
const MAX_EXAMINED_PAGES = 20

export async function findDeletedRecords(
  context: Context,
  model: Model,
  query: DeletedQuery,
): Promise<DeletedPage> {
  const { app, principal } = context
  requirePermission(principal, 'read', model)
  const { limit, matches, ...request } = parseDeletedQuery(context, model, query)
  const db = app.db.queryPool
  const data: Change[] = []
  let { before } = request
  for (let [pages, size] = [0, 0]; pages < MAX_EXAMINED_PAGES; pages++) {
    const { changes, next } = await readDeletePage(db, model.name, { before, limit: EXAMINED_PAGE_CHANGES })
    for (const change of await filterVisibleDeletes(withDatabase(context, db), model, changes)) {
      if (!matches(change)) continue
      // Hidden deletes have no influence on `next` here, because a further visible one is known.
      if (data.length === limit || size >= MAX_HISTORY_PAGE_BYTES) return { data, next: data.at(-1)?.seq }
      data.push(change)
      size += JSON.stringify(change.changes).length
    }
    if (next === undefined) return { data }
    before = next
  }
  return { data, next: before }
}

interface DeletedRequest {
  readonly limit: number
  readonly before: number
  readonly matches: (change: Change) => boolean
}

/** Fails with one VersoError that lists all errors. */
function parseDeletedQuery({ app, principal }: Context, model: Model, query: DeletedQuery): DeletedRequest {
  const errors = listUnknownParameters(query, DELETED_PARAMETERS)
  const limit = parseWholeParameter('limit', query.limit, DEFAULT_PAGE_RECORDS, errors)
  if (limit === 0) errors.push('limit must be at least 1')
  const before = parseWholeParameter('before', query.before, Number.MAX_SAFE_INTEGER, errors)
  const visibility = getVisibility(app, principal)
  const search = query.q === undefined ? undefined : parseTextSearch(visibility, model, query.q, errors)
  if (errors.length > 0) throw new VersoError('bad-request', errors.slice(0, 20).join('; '))
  const hasWords = search && buildTextMatcher(search)
  return {
    before,
    limit: Math.min(limit, app.settings.maxPageSize),
    matches: ({ changes }) => hasWords?.((name) => changes[name]?.before) ?? true,
  }
}

/** Returns the deletes of the records that the principal could read by their last values, in the same order. */
async function filterVisibleDeletes(
  context: Context,
  model: Model,
  deletes: readonly Change[],
): Promise<Change[]> {
  if (seesAllRecordsAlike(context.principal, model)) return filterVisibleChanges(context, deletes)
  const revisions = await readDeleteRevisions(context.db, context.app.tables.of(model), deletes)
  return filterVisibleRevisions(context, model, toRevisionQueries({ revisions, today: 'gone' }))
}
