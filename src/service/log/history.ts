// The history of one record: the Changes that the principal may see, newest first.
import { parsePageQuery, type FindQuery } from '../../model/query/search.js'
import type { Model } from '../../model/definition/model.js'
import { MAX_HISTORY_PAGE_BYTES, readHistoryPage, findLastVersion } from '../../store/log/change-pages.js'
import { openTimeline } from '../../store/log/timeline.js'
import type { Change, HistoryPage } from '../../wire.js'
import { requireId, throwNotFound } from '../access/request-checks.js'
import { isRecordVisible } from '../access/visible-records.js'
import {
  toRevisionQueries,
  filterVisibleChanges,
  filterVisibleRevisions,
  seesAllRecordsAlike,
} from './visible-changes.js'
import { withDatabase, type Context } from '../context/context.js'

/** With record conditions, every Change must be evaluated, so only this many of the newest ones are scanned. */
const MAX_SCANNED_CHANGES = 10_000

export async function readHistory(
  context: Context,
  model: Model,
  id: number,
  query: Pick<FindQuery, 'offset' | 'limit'>,
): Promise<HistoryPage> {
  const { app, principal } = context
  const page = parsePageQuery(query, app.settings.maxPageSize)
  requireId(model, id)
  if (principal.permissions && !principal.permissions.of(model).can('read')) throwNotFound(model, id)
  const db = app.db.queryPool
  const { total, lastSeq, changes, nextOffset } = await readHistoryPage(
    db,
    model.name,
    id,
    seesAllRecordsAlike(principal, model) ? page : { offset: 0, limit: 0 },
  )
  if (seesAllRecordsAlike(principal, model)) {
    if (total === 0) await requireVisibleRecord(context, model, id)
    return {
      ...page,
      total,
      seq: lastSeq,
      next: nextOffset,
      data: await filterVisibleChanges(withDatabase(context, db), changes),
    }
  }
  const history = await scanHistoryPage(context, model, id, page)
  if (history.total === 0) await requireVisibleRecord(context, model, id)
  return { ...page, ...history, seq: lastSeq }
}

/** Scans the visible Changes, newest first. Counts all of them, and keeps only those of the page in memory. */
async function scanHistoryPage(
  context: Context,
  model: Model,
  id: number,
  { offset, limit }: Pick<HistoryPage, 'offset' | 'limit'>,
): Promise<Pick<HistoryPage, 'total' | 'data' | 'next'>> {
  const { app } = context
  const db = app.db.queryPool
  const last = (await findLastVersion(db, model.name, id)) ?? 0
  const from = Math.max(0, last - MAX_SCANNED_CHANGES + 1)
  const data: Change[] = []
  let [total, size] = [0, 0]
  const { today, pages } = await openTimeline(db, app.tables.of(model), id, from)
  for await (const revisions of pages) {
    for (const change of await filterVisibleRevisions(
      withDatabase(context, db),
      model,
      toRevisionQueries({ revisions, today }),
    )) {
      if (++total <= offset || data.length >= limit || size >= MAX_HISTORY_PAGE_BYTES) continue
      data.push(change)
      size += JSON.stringify(change.changes).length
    }
  }
  const next = offset + data.length
  return { total, data, next: limit > 0 && next < total ? next : undefined }
}

/** An existing record may have no Changes left in the Log. Missing and invisible records are not found. */
async function requireVisibleRecord(context: Context, model: Model, id: number): Promise<void> {
  if (!(await isRecordVisible(withDatabase(context, context.app.db.queryPool), { model, id })))
    throwNotFound(model, id)
}
