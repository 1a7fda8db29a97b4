// How far the readers of the Log are behind its last Change, for metrics.
import { readLastSeq } from '../../store/log/feed.js'
import { listWebhookPositions, type WebhookPosition } from '../../store/webhooks/webhooks.js'
import { describeHookLag, type HookLag } from '../background/commit-status.js'
import type { App } from '../context/app.js'

export interface LogLag {
  /** The sequence number of the last Change. */
  readonly lastSeq: number
  /** The number of Changes after the position of the waiting reader that is furthest behind; 0 without readers. */
  readonly feed: number
  readonly webhooks: readonly (WebhookPosition & { readonly lag: number })[]
  readonly hooks: readonly HookLag[]
}

/** Measures the lag of the feed, of `afterCommit` hooks, and of at most `maxWebhooks` webhooks. */
export async function measureLogLag(
  { catalog, changeWaiters, db }: App,
  maxWebhooks: number,
): Promise<LogLag> {
  // Read before the end of the Log, so that no reader seems to be ahead of it.
  const webhooks = await listWebhookPositions(db.reader, db.dialect, maxWebhooks)
  const oldest = changeWaiters.oldestPosition
  // Counts Changes, so it may scan many: the query pool keeps such statements from blocking other requests.
  const hooks = catalog.storedModels.some((model) => model.hooks.length > 0)
    ? await describeHookLag({ catalog, db: db.queryPool })
    : []
  const lastSeq = await readLastSeq(db.reader)
  return {
    lastSeq,
    feed: oldest === undefined ? 0 : Math.max(0, lastSeq - oldest),
    webhooks: webhooks.map((webhook) => ({ ...webhook, lag: Math.max(0, lastSeq - webhook.cursor) })),
    hooks,
  }
}
