// The feed: Changes in commit order, from a number that the reader has seen.
import { VersoError } from '../../errors.js'
import { listUnknownParameters } from '../../model/query/parameters.js'
import { parseWholeParameter } from '../../model/query/search.js'
import { readFeedPage, readRetentionFloor } from '../../store/log/feed.js'
import type { Change, ChangePage, FeedQuery } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { modelFor, modelsKnownTo, requirePermitted } from '../access/permission-checks.js'
import { changesFor, seesAllAlike } from './visible-changes.js'

const DEFAULT_CHANGES = 100
const MAX_WAIT_S = 30
const MAX_MODELS = 100
/** So many pages without anything to see are looked through for one answer. */
const MAX_LOOKS = 20
const WORDS: (keyof FeedQuery)[] = ['since', 'limit', 'wait', 'model']

/** What a reader wants of the feed. */
export interface Following {
  readonly since: number
  readonly limit: number
  /** Undefined for all that the reader may see. */
  readonly models: readonly string[] | undefined
  readonly waitMs: number
}

/** A request that is understood, or one Refusal with all of its faults. */
export function followingFrom(app: App, query: FeedQuery): Following {
  // Somebody who misspelled model would get the Changes of all models.
  const faults = listUnknownParameters(query, { known: WORDS })
  const since = parseWholeParameter('since', query.since ?? undefined, 0, faults)
  const limit = parseWholeParameter('limit', query.limit ?? undefined, DEFAULT_CHANGES, faults)
  const wait = parseWholeParameter('wait', query.wait ?? undefined, 0, faults)
  const models = namesFrom(query.model)
  // A variable that was not set must not look as if nothing ever happened.
  if (models?.length === 0) faults.push('model must name models, or be left out')
  if (models && models.length > MAX_MODELS) faults.push(`model names at most ${MAX_MODELS} models`)
  if (limit === 0) faults.push('limit must be 1 at least')
  if (faults.length > 0) throw new VersoError('bad-request', faults.join('; '))
  return {
    ...{ since, models, limit: Math.min(limit, app.settings.maxLimit) },
    waitMs: Math.min(wait, MAX_WAIT_S) * 1_000,
  }
}

/** The next Changes that the caller sees, at once; `next` is where to go on, also where there was nothing to see. */
export async function followingPage(app: App, by: Caller, following: Following): Promise<ChangePage> {
  let page = await pageAfter(app, by, following)
  // How many there are that they do not see is nobody's business: what is told next comes after all of those.
  for (let looks = 1; page.data.length === 0 && !page.isLast && looks < MAX_LOOKS; looks++)
    page = await pageAfter(app, by, { ...following, since: page.next, limit: app.settings.maxLimit })
  const isCut = page.data.length > following.limit
  if (!isCut) return page
  const data = page.data.slice(0, following.limit)
  return { data, next: data.at(-1)?.seq ?? page.next, isLast: false }
}

async function pageAfter(app: App, by: Caller, following: Following): Promise<ChangePage> {
  const { since, limit } = following
  const models = modelsOf(app, by, following.models)
  const db = app.db.queryPool
  const { retentionFloor, lastSeq, changes, isTruncated } = await readFeedPage(db, app.db.dialect, {
    since,
    limit,
    models,
  })
  if (since < retentionFloor || since > lastSeq) throw goneSince(since, retentionFloor, lastSeq)
  // Whether it concerned something that they could see, nobody knows any more.
  const purged = changes.find((change) => change.purged && isBlindTo(app, by, change))
  if (purged) throw goneSince(since, purged.seq, lastSeq)
  const isLast = changes.length < limit && !isTruncated
  const next = isLast ? lastSeq : (changes.at(-1)?.seq ?? lastSeq)
  const data = await changesFor(app, by, db, changes)
  // What they may see was looked for in the past: some of it may have gone meanwhile.
  const reached = by.rights ? await readRetentionFloor(db) : retentionFloor
  if (since < reached) throw goneSince(since, reached, lastSeq)
  return { data, next, isLast }
}

/** The same; where there is nothing to see yet, it is waited for. */
export async function followingChanges(
  app: App,
  caller: () => Promise<Caller>,
  following: Following,
  signal: AbortSignal,
): Promise<ChangePage> {
  const until = performance.now() + following.waitMs
  for (let { since } = following; ;) {
    const page = await followingPage(app, await caller(), { ...following, since })
    const left = until - performance.now()
    if (page.data.length > 0 || left <= 0 || signal.aborted) return page
    since = page.next
    if (page.isLast) await app.waiting.wait(since, left, signal)
  }
}

/** For whoever waits to the end, come what may. */
export async function changesNow(
  app: App,
  caller: () => Promise<Caller>,
  query: FeedQuery = {},
): Promise<ChangePage> {
  return followingChanges(app, caller, followingFrom(app, query), new AbortController().signal)
}

/** Whether the caller sees some records of the model and not others. */
function isBlindTo({ catalog }: App, by: Caller, { model: name }: Change): boolean {
  const model = catalog.find(name)
  return model !== undefined && !seesAllAlike(by, model)
}

/** Undefined for all there are. */
function modelsOf(app: App, by: Caller, names: readonly string[] | undefined): readonly string[] | undefined {
  if (!names && !by.rights) return undefined
  const asked = names?.map((name) => modelFor(app, by, name))
  for (const model of asked ?? []) requirePermitted(by, 'read', model)
  const seen = asked ?? modelsKnownTo(app, by).filter((model) => by.rights?.of(model).can('read'))
  return seen.map(({ name }) => name)
}

function goneSince(since: number, horizon: number, last: number): VersoError {
  const why =
    since < horizon
      ? `The Log begins after ${horizon}: what came after ${since} is no longer all there`
      : `The Log ends at ${last}: there never was a Change ${since} here`
  const message = `${why}. Read the records anew, and go on from the X-Commit-Seq of that answer`
  return new VersoError('gone', message, { data: { since, horizon, last } })
}

/** One or several, each also with commas. */
function namesFrom(model: unknown): readonly string[] | undefined {
  if (model === undefined || model === null) return undefined
  const texts = [model].flat().filter((each) => typeof each === 'string')
  const names = texts.flatMap((each) => each.split(','))
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ''))]
}
