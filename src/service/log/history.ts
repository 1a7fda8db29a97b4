// What became of one record: its Changes as a caller may see them, newest first.
import { parsePageQuery, type FindQuery } from '../../model/query/search.js'
import type { Model } from '../../model/definition/model.js'
import { MAX_HISTORY_PAGE_BYTES, readHistoryPage, findLastVersion } from '../../store/log/history.js'
import { walkBack } from '../../store/log/past.js'
import type { Change, HistoryPage } from '../../wire.js'
import { requireId, throwNotFound } from '../context/ids.js'
import { isRecordVisible } from '../access/visible-records.js'
import {
  toRevisionQueries,
  filterVisibleChanges,
  filterVisibleRevisions,
  seesAllRecordsAlike,
} from './visible-changes.js'
import { withDatabase, type Context } from '../context/context.js'

/** Who does not see everything of a record is shown no more than its last Changes: each of them has to be looked into. */
const MAX_SCANNED_CHANGES = 10_000

export async function readHistory(
  context: Context,
  model: Model,
  id: number,
  query: Pick<FindQuery, 'offset' | 'limit'>,
): Promise<HistoryPage> {
  const { app, principal } = context
  const page = parsePageQuery(query, app.settings.maxLimit)
  requireId(model, id)
  if (principal.permissions && !principal.permissions.of(model).can('read')) throwNotFound(model, id)
  const db = app.db.queryPool
  const { total, lastSeq, changes, nextOffset } = await readHistoryPage(
    ...([db, model.name, id] as const),
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
  const seen = await scanHistoryPage(context, model, id, page)
  if (seen.total === 0) await requireVisibleRecord(context, model, id)
  return { ...page, ...seen, seq: lastSeq }
}

/** Those that the caller sees, newest first. All are counted, and no more are kept than are shown. */
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
  for await (const walked of walkBack(db, app.tables.of(model), id, from)) {
    for (const change of await filterVisibleRevisions(
      withDatabase(context, db),
      model,
      toRevisionQueries(walked),
    )) {
      if (++total <= offset || data.length >= limit || size >= MAX_HISTORY_PAGE_BYTES) continue
      data.push(change)
      size += JSON.stringify(change.changes).length
    }
  }
  const next = offset + data.length
  return { total, data, next: limit > 0 && next < total ? next : undefined }
}

/** What is there may have no past any more; what never was is not there, and neither is what may not be seen. */
async function requireVisibleRecord(context: Context, model: Model, id: number): Promise<void> {
  if (!(await isRecordVisible(withDatabase(context, context.app.db.queryPool), { model, id })))
    throwNotFound(model, id)
}
