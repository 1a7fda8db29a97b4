// The change feed: Changes in commit order, after the sequence number that the reader has already seen.
import { VersoError } from '../../errors.js'
import { listUnknownParameters } from '../../model/query/parameters.js'
import { parseWholeParameter } from '../../model/query/search.js'
import { readFeedPage, readRetentionFloor } from '../../store/log/feed.js'
import type { Change, ChangePage, FeedQuery } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { requireKnownModel, listPermittedModels, requirePermission } from '../access/request-checks.js'
import { filterVisibleChanges, seesAllRecordsAlike } from './visible-changes.js'
import { createContext, withDatabase, type Context } from '../context/context.js'

const DEFAULT_FEED_LIMIT = 100
const MAX_WAIT_S = 30
const MAX_FEED_MODELS = 100
/** One request scans at most this many pages without a visible Change. */
const MAX_EMPTY_PAGES = 20
export const FEED_PARAMETERS: readonly (keyof FeedQuery)[] = ['since', 'limit', 'wait', 'model']

export interface FeedRequest {
  readonly since: number
  readonly limit: number
  /** Undefined for all models that the reader may see. */
  readonly models: readonly string[] | undefined
  readonly waitMs: number
}

/** Parses the query parameters. Fails with one VersoError that lists all errors. */
export function parseFeedRequest(app: App, query: FeedQuery): FeedRequest {
  // Ignoring a misspelled `model` would return the Changes of all models.
  const errors = listUnknownParameters(query, { known: FEED_PARAMETERS })
  const since = parseWholeParameter('since', query.since ?? undefined, 0, errors)
  const limit = parseWholeParameter('limit', query.limit ?? undefined, DEFAULT_FEED_LIMIT, errors)
  const wait = parseWholeParameter('wait', query.wait ?? undefined, 0, errors)
  const models = parseModelNames(query.model)
  // An empty `model` often comes from an unset variable. Returning no Changes would hide that mistake.
  if (models?.length === 0) errors.push('model must name at least one model, or be omitted')
  if (models && models.length > MAX_FEED_MODELS)
    errors.push(`model must name at most ${MAX_FEED_MODELS} models`)
  if (limit === 0) errors.push('limit must be at least 1')
  if (errors.length > 0) throw new VersoError('bad-request', errors.join('; '))
  return {
    since,
    models,
    limit: Math.min(limit, app.settings.maxPageSize),
    waitMs: Math.min(wait, MAX_WAIT_S) * 1_000,
  }
}

/** Returns the next visible Changes without waiting. `next` is the cursor of the following page, even if this one is empty. */
export async function readVisibleFeedPage(context: Context, request: FeedRequest): Promise<ChangePage> {
  let page = await readPageAfter(context, request)
  // Skips pages without visible Changes, so that the reader cannot count the hidden ones.
  for (let attempts = 1; page.data.length === 0 && !page.isLast && attempts < MAX_EMPTY_PAGES; attempts++)
    page = await readPageAfter(context, {
      ...request,
      since: page.next,
      limit: context.app.settings.maxPageSize,
    })
  const isCut = page.data.length > request.limit
  if (!isCut) return page
  const data = page.data.slice(0, request.limit)
  return { data, next: data.at(-1)?.seq ?? page.next, isLast: false }
}

async function readPageAfter(context: Context, request: FeedRequest): Promise<ChangePage> {
  const { app } = context
  const { since, limit } = request
  const models = resolveFeedModels(context, request.models)
  const db = app.db.queryPool
  const { retentionFloor, restoreFloor, lastSeq, changes, isTruncated } = await readFeedPage(
    db,
    app.db.dialect,
    {
      since,
      limit,
      models,
    },
  )
  if (since < retentionFloor || since > lastSeq) throw createGoneError(since, retentionFloor, lastSeq)
  // The reader has a number from before the restore: it may have read Changes that the restore undid.
  if (since > 0 && since < restoreFloor) throw createRestoredError(since, restoreFloor, lastSeq)
  // The values of a purged Change are gone, so record conditions cannot be evaluated for it.
  const purged = changes.find((change) => change.purged && seesOnlySomeRecords(context, change))
  if (purged) throw createGoneError(since, purged.seq, lastSeq)
  const isLast = changes.length < limit && !isTruncated
  const next = isLast ? lastSeq : (changes.at(-1)?.seq ?? lastSeq)
  const data = await filterVisibleChanges(withDatabase(context, db), changes)
  // The filter above reads earlier states from the Log. A purge in between may have removed some of them.
  const currentFloor = context.principal.permissions ? await readRetentionFloor(db) : retentionFloor
  if (since < currentFloor) throw createGoneError(since, currentFloor, lastSeq)
  return { data, next, isLast }
}

/** Returns the next visible Changes. If there are none yet, waits for a commit up to `request.waitMs`. */
export async function waitForChanges(
  app: App,
  resolvePrincipal: () => Promise<Principal>,
  request: FeedRequest,
  signal: AbortSignal,
): Promise<ChangePage> {
  const until = performance.now() + request.waitMs
  for (let { since } = request; ;) {
    const page = await readVisibleFeedPage(createContext(app, await resolvePrincipal()), {
      ...request,
      since,
    })
    // The page may have Changes that were committed after the access of its reader had ended.
    if (page.data.length > 0) await resolvePrincipal()
    const left = until - performance.now()
    if (page.data.length > 0 || left <= 0 || signal.aborted) return page
    since = page.next
    if (page.isLast) await app.changeWaiters.wait(since, left, signal)
  }
}

/** Reads the feed for code in this process, which cannot disconnect. */
export async function readChanges(
  app: App,
  resolvePrincipal: () => Promise<Principal>,
  query: FeedQuery = {},
): Promise<ChangePage> {
  return waitForChanges(app, resolvePrincipal, parseFeedRequest(app, query), new AbortController().signal)
}

/** True if record conditions hide some records of the model from the principal. */
function seesOnlySomeRecords(context: Context, { model: name }: Change): boolean {
  const model = context.app.catalog.find(name)
  return model !== undefined && !seesAllRecordsAlike(context.principal, model)
}

/** Returns undefined for all models. */
function resolveFeedModels(
  context: Context,
  names: readonly string[] | undefined,
): readonly string[] | undefined {
  const { principal, app } = context
  if (!names && !principal.permissions) return undefined
  const requested = names?.map((name) => requireKnownModel(app, principal, name))
  for (const model of requested ?? []) requirePermission(principal, 'read', model)
  const models =
    requested ??
    listPermittedModels(app, principal).filter((model) => principal.permissions?.of(model).can('read'))
  return models.map(({ name }) => name)
}

function createGoneError(since: number, retentionFloor: number, last: number): VersoError {
  const why =
    since < retentionFloor
      ? `The change log begins after ${retentionFloor}: some Changes after ${since} were removed`
      : `The change log ends at ${last}: Change ${since} does not exist`
  const message = `${why}. Read the records again and continue from the X-Commit-Seq of that response`
  return new VersoError('gone', message, { data: { since, horizon: retentionFloor, last } })
}

function createRestoredError(since: number, restoreFloor: number, last: number): VersoError {
  const message =
    `The database was restored from a backup after Change ${since} was read, and all records have other versions. ` +
    `Read the records again and continue from the X-Commit-Seq of that response`
  return new VersoError('gone', message, { data: { since, horizon: restoreFloor, last } })
}

/** Accepts one text or several, each with names separated by commas. */
export function parseModelNames(model: unknown): readonly string[] | undefined {
  if (model === undefined || model === null) return undefined
  const texts = [model].flat().filter((each) => typeof each === 'string')
  const names = texts.flatMap((each) => each.split(','))
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ''))]
}
