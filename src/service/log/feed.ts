// The feed: Changes in commit order, from a number that the reader has seen.
import { VersoError } from '../../errors.js'
import { listUnknownParameters } from '../../model/query/parameters.js'
import { parseWholeParameter } from '../../model/query/search.js'
import { readFeedPage, readRetentionFloor } from '../../store/log/feed.js'
import type { Change, ChangePage, FeedQuery } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { requireKnownModel, listPermittedModels, requirePermission } from '../access/permission-checks.js'
import { filterVisibleChanges, seesAllRecordsAlike } from './visible-changes.js'
import { createContext, withDatabase, type Context } from '../context/context.js'

const DEFAULT_FEED_LIMIT = 100
const MAX_WAIT_S = 30
const MAX_FEED_MODELS = 100
/** So many pages without anything to see are looked through for one answer. */
const MAX_EMPTY_PAGES = 20
const FEED_PARAMETERS: (keyof FeedQuery)[] = ['since', 'limit', 'wait', 'model']

/** What a reader wants of the feed. */
export interface FeedRequest {
  readonly since: number
  readonly limit: number
  /** Undefined for all that the reader may see. */
  readonly models: readonly string[] | undefined
  readonly waitMs: number
}

/** A request that is understood, or one Refusal with all of its faults. */
export function parseFeedRequest(app: App, query: FeedQuery): FeedRequest {
  // Somebody who misspelled model would get the Changes of all models.
  const errors = listUnknownParameters(query, { known: FEED_PARAMETERS })
  const since = parseWholeParameter('since', query.since ?? undefined, 0, errors)
  const limit = parseWholeParameter('limit', query.limit ?? undefined, DEFAULT_FEED_LIMIT, errors)
  const wait = parseWholeParameter('wait', query.wait ?? undefined, 0, errors)
  const models = parseModelNames(query.model)
  // A variable that was not set must not look as if nothing ever happened.
  if (models?.length === 0) errors.push('model must name models, or be left out')
  if (models && models.length > MAX_FEED_MODELS) errors.push(`model names at most ${MAX_FEED_MODELS} models`)
  if (limit === 0) errors.push('limit must be 1 at least')
  if (errors.length > 0) throw new VersoError('bad-request', errors.join('; '))
  return {
    ...{ since, models, limit: Math.min(limit, app.settings.maxLimit) },
    waitMs: Math.min(wait, MAX_WAIT_S) * 1_000,
  }
}

/** The next Changes that the caller sees, at once; `next` is where to go on, also where there was nothing to see. */
export async function readVisibleFeedPage(context: Context, request: FeedRequest): Promise<ChangePage> {
  let page = await readPageAfter(context, request)
  // How many there are that they do not see is nobody's business: what is told next comes after all of those.
  for (let attempts = 1; page.data.length === 0 && !page.isLast && attempts < MAX_EMPTY_PAGES; attempts++)
    page = await readPageAfter(context, {
      ...request,
      since: page.next,
      limit: context.app.settings.maxLimit,
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
  const { retentionFloor, lastSeq, changes, isTruncated } = await readFeedPage(db, app.db.dialect, {
    since,
    limit,
    models,
  })
  if (since < retentionFloor || since > lastSeq) throw createGoneError(since, retentionFloor, lastSeq)
  // Whether it concerned something that they could see, nobody knows any more.
  const purged = changes.find((change) => change.purged && seesOnlySomeRecords(context, change))
  if (purged) throw createGoneError(since, purged.seq, lastSeq)
  const isLast = changes.length < limit && !isTruncated
  const next = isLast ? lastSeq : (changes.at(-1)?.seq ?? lastSeq)
  const data = await filterVisibleChanges(withDatabase(context, db), changes)
  // What they may see was looked for in the past: some of it may have gone meanwhile.
  const currentFloor = context.principal.permissions ? await readRetentionFloor(db) : retentionFloor
  if (since < currentFloor) throw createGoneError(since, currentFloor, lastSeq)
  return { data, next, isLast }
}

/** The same; where there is nothing to see yet, it is waited for. */
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
    const left = until - performance.now()
    if (page.data.length > 0 || left <= 0 || signal.aborted) return page
    since = page.next
    if (page.isLast) await app.changeWaiters.wait(since, left, signal)
  }
}

/** For whoever waits to the end, come what may. */
export async function readChanges(
  app: App,
  resolvePrincipal: () => Promise<Principal>,
  query: FeedQuery = {},
): Promise<ChangePage> {
  return waitForChanges(app, resolvePrincipal, parseFeedRequest(app, query), new AbortController().signal)
}

/** Whether the caller sees some records of the model and not others. */
function seesOnlySomeRecords(context: Context, { model: name }: Change): boolean {
  const model = context.app.catalog.find(name)
  return model !== undefined && !seesAllRecordsAlike(context.principal, model)
}

/** Undefined for all there are. */
function resolveFeedModels(
  context: Context,
  names: readonly string[] | undefined,
): readonly string[] | undefined {
  const { principal, app } = context
  if (!names && !principal.permissions) return undefined
  const requested = names?.map((name) => requireKnownModel(app, principal, name))
  for (const model of requested ?? []) requirePermission(principal, 'read', model)
  const seen =
    requested ??
    listPermittedModels(app, principal).filter((model) => principal.permissions?.of(model).can('read'))
  return seen.map(({ name }) => name)
}

function createGoneError(since: number, retentionFloor: number, last: number): VersoError {
  const why =
    since < retentionFloor
      ? `The Log begins after ${retentionFloor}: what came after ${since} is no longer all there`
      : `The Log ends at ${last}: there never was a Change ${since} here`
  const message = `${why}. Read the records anew, and go on from the X-Commit-Seq of that answer`
  return new VersoError('gone', message, { data: { since, horizon: retentionFloor, last } })
}

/** One or several, each also with commas. */
function parseModelNames(model: unknown): readonly string[] | undefined {
  if (model === undefined || model === null) return undefined
  const texts = [model].flat().filter((each) => typeof each === 'string')
  const names = texts.flatMap((each) => each.split(','))
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ''))]
}
