// Builds the next message of a webhook from the change log.
import { hash } from 'node:crypto'
import { VersoError } from '../../errors.js'
import { findUser } from '../../store/auth/accounts.js'
import { readLastSeq } from '../../store/log/feed.js'
import type { Webhook } from '../../store/webhooks/webhooks.js'
import type { Change } from '../../wire.js'
import { toUserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import { readVisibleFeedPage } from '../log/feed.js'
import { SERVICE_PRINCIPAL, type Principal } from '../context/principal.js'
import { createContext, type Context } from '../context/context.js'

const MAX_MESSAGE_CHANGES = 100
/** A larger Change is sent alone. */
const MAX_BODY_BYTES = 1024 * 1024

export interface WebhookMessage {
  /** A hash of the body, so receivers can detect repeated messages. */
  readonly id: string
  readonly body: string
  readonly changes: number
  readonly firstSeq: number | null
  readonly lastSeq: number | null
}

export type NextMessage =
  | { readonly kind: 'message'; readonly message: WebhookMessage; readonly next: number }
  | { readonly kind: 'nothing'; readonly next: number; readonly isLast: boolean }
  /** The webhook cannot receive anything at present. */
  | { readonly kind: 'error'; readonly error: string }

/** Returns a message with the matching Changes after `since`. A retried message ends at the same Change as the first attempt. */
export async function readNextMessage(app: App, webhook: Webhook, since: number): Promise<NextMessage> {
  const principal = await resolveWebhookPrincipal(app, webhook)
  if (!principal) return { kind: 'error', error: 'the user of the webhook is disabled' }
  const models = listWebhookModels(createContext(app, principal), webhook)
  // No model is visible to the user, so skip all Changes.
  if (models.length === 0) return { kind: 'nothing', next: await readLastSeq(app.db.reader), isLast: true }
  try {
    const page = await readVisibleFeedPage(createContext(app, principal), {
      since,
      limit: MAX_MESSAGE_CHANGES,
      models,
      waitMs: 0,
    })
    if (page.data.length === 0) return { kind: 'nothing', next: page.next, isLast: page.isLast }
    return buildBatchMessage(webhook, page.data, page.next)
  } catch (error) {
    if (!(error instanceof VersoError) || error.kind !== 'gone') throw error
    return buildResync(webhook, error)
  }
}

/** A message without Changes that tests the connection. */
export function buildPing({ id }: Pick<Webhook, 'id'>, nowMs: number): WebhookMessage {
  return buildMessage({ webhook: id, ping: true, on: new Date(nowMs).toISOString() }, [])
}

async function resolveWebhookPrincipal(app: App, { userId }: Webhook): Promise<Principal | undefined> {
  if (userId === null) return SERVICE_PRINCIPAL
  const user = await findUser(app.db.reader, userId)
  return user && !user.disabled ? app.authorizer.resolvePrincipal(toUserIdentity(user)) : undefined
}

/** The models that the webhook names, or else all declared models, as far as they exist and its user may read them. */
function listWebhookModels(context: Context, { models }: Webhook): string[] {
  const named = models
    ? models.flatMap((name) => context.app.catalog.find(name) ?? [])
    : context.app.catalog.models
  return named
    .filter((model) => !context.principal.permissions || context.principal.permissions.of(model).can('read'))
    .map(({ name }) => name)
}

function buildBatchMessage(webhook: Webhook, changes: readonly Change[], next: number): NextMessage {
  const { retryUntilSeq } = webhook
  const isRepeat =
    retryUntilSeq !== null && retryUntilSeq < next && changes.some(({ seq }) => seq <= retryUntilSeq)
  const within = isRepeat ? changes.filter(({ seq }) => seq <= retryUntilSeq) : changes
  const fitting = within.slice(0, countFittingChanges(within))
  const end = isRepeat ? retryUntilSeq : next
  const last = fitting.length < within.length ? (fitting.at(-1)?.seq ?? end) : end
  return {
    kind: 'message',
    message: buildMessage({ webhook: webhook.id, data: fitting, next: last }, fitting),
    next: last,
  }
}

/** Counts the Changes that fit into one call; at least one. */
function countFittingChanges(changes: readonly Change[]): number {
  let bytes = 0
  const tooMany = changes.findIndex((change) => {
    bytes += Buffer.byteLength(JSON.stringify(change)) + 1
    return bytes > MAX_BODY_BYTES
  })
  return tooMany < 0 ? changes.length : Math.max(tooMany, 1)
}

/** Retention removed Changes that the webhook has not received. This message asks the receiver to read all records again. */
function buildResync(webhook: Webhook, { details }: VersoError): NextMessage {
  const { horizon: retentionFloor, last } = details.data as {
    readonly horizon: number
    readonly last: number
  }
  const { retryUntilSeq } = webhook
  const next =
    retryUntilSeq !== null && retryUntilSeq >= retentionFloor && retryUntilSeq <= last ? retryUntilSeq : last
  return { kind: 'message', message: buildMessage({ webhook: webhook.id, resync: true, next }, []), next }
}

function buildMessage(content: object, changes: readonly Change[]): WebhookMessage {
  const body = JSON.stringify(content)
  return {
    id: `msg_${hash('sha256', body, 'base64url')}`,
    body,
    changes: changes.length,
    firstSeq: changes[0]?.seq ?? null,
    lastSeq: changes.at(-1)?.seq ?? null,
  }
}
