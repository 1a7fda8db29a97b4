// The change feed: a page of JSON (at once or as a long poll), or a stream of server-sent events.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import {
  FEED_PARAMETERS,
  waitForChanges,
  parseFeedRequest,
  type FeedRequest,
} from '../../service/log/feed.js'
import type { FeedQuery } from '../../wire.js'
import { EventStream } from './event-stream.js'
import { requireUserIdentity } from '../route/guard.js'
import type { RequestLimits } from '../route/limits.js'
import {
  answerWithList,
  COUNT_SCHEMA,
  LOGIN_ERRORS,
  refTo,
  type OperationDocs,
} from '../route/documentation.js'
import { documented, type Resource, type RouteContext } from '../route/resource.js'
import { addVary, sendJson, type SentReply } from '../response/send.js'

export interface FeedContext extends RouteContext {
  readonly limits: RequestLimits
  /** Aborted when the service stops, so that waiting requests are answered. */
  readonly stopping: AbortSignal
}

const CHANGE_PAGE = answerWithList('Changes in commit order.', refTo('VersoChange'), {
  others: { next: { ...COUNT_SCHEMA, description: 'The value of `since` for the next request.' } },
})

const CHANGES_DOCS: OperationDocs = {
  id: 'listChanges',
  group: 'Records',
  access: 'login',
  summary: 'Follow the changes of records',
  description:
    'Answers at once, after `wait` seconds, or with `Accept: text/event-stream` as a stream of events. A `since` that the change log no longer reaches is an error.',
  query: { known: FEED_PARAMETERS },
  headers: ['Last-Event-ID'],
  answers: {
    200: { ...CHANGE_PAGE, content: { ...CHANGE_PAGE.content, 'text/event-stream': { type: 'string' } } },
  },
  errors: [...LOGIN_ERRORS, 'unknown-model', 'gone'],
}

export function createChangesResource(context: FeedContext): Resource {
  const { guards, limits } = context
  return {
    path: '/ws/changes',
    guards: [guards.requireLogin],
    writeGuards: [guards.requireSameSiteOrKey],
    handlers: {
      GET: documented(CHANGES_DOCS, async (request, reply) => {
        addVary(reply, 'Accept')
        const isStream = acceptsEventStream(request)
        if (isStream || 'wait' in (request.query as FeedQuery))
          limits.addWaiting(requireUserIdentity(request).id, reply)
        return isStream ? streamChanges(context, request, reply) : sendChangePage(context, request, reply)
      }),
    },
  }
}

async function sendChangePage(
  context: FeedContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<SentReply> {
  const { app, guards, limits } = context
  const feedRequest = parseFeedRequest(app, request.query as FeedQuery)
  if (feedRequest.waitMs > 0) limits.release(reply)
  const signal = AbortSignal.any([context.stopping, createDisconnectSignal(reply)])
  const { data, next } = await waitForChanges(app, () => guards.reauthenticate(request), feedRequest, signal)
  return sendJson(reply, JSON.stringify({ status: 0, data, next }))
}

/** Maximum time between two writes to a stream. */
const HEARTBEAT_MS = 15_000

async function streamChanges(
  context: FeedContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<SentReply> {
  const { app, guards, limits, stopping } = context
  const feedRequest = parseFeedRequest(app, readResumeQuery(request))
  const first = { ...feedRequest, waitMs: 0 }
  const signal = AbortSignal.any([stopping, createDisconnectSignal(reply)])
  // The stream starts after the first page, so errors of the request still get an ordinary error response.
  let page = await waitForChanges(app, () => guards.reauthenticate(request), first, signal)
  limits.release(reply)
  const events = new EventStream(reply)
  const isOpen = () => !signal.aborted && !reply.raw.destroyed
  try {
    for (let nextRequest: FeedRequest = { ...feedRequest, waitMs: HEARTBEAT_MS }; isOpen();) {
      for (const change of page.data) await events.send(change.seq, 'change', change)
      if (page.data.at(-1)?.seq !== page.next) await events.sendCursor(page.next)
      nextRequest = { ...nextRequest, since: page.next }
      page = await waitForChanges(app, () => guards.reauthenticate(request), nextRequest, signal)
    }
  } catch (error) {
    if (!(error instanceof VersoError) && !reply.raw.destroyed)
      app.log.error({ err: error, requestId: request.id }, 'change stream failed')
    await events.sendError(error)
  } finally {
    events.end()
  }
  return undefined
}

/** A browser that reconnects sends the id of the last event it received. */
function readResumeQuery(request: FastifyRequest): FeedQuery {
  const query = request.query as FeedQuery
  const last = request.headers['last-event-id'] ?? ''
  return last === '' ? query : { ...query, since: last }
}

const EVENT_STREAM_TYPE = /^\s*text\/event-stream\s*(?:;(?!.*\bq=0(?:\.0*)?\s*(?:;|$)).*)?$/i

/** False for HEAD: a stream without a body would never end. */
function acceptsEventStream({ method, headers }: FastifyRequest): boolean {
  return (
    method === 'GET' && (headers.accept?.split(',').some((type) => EVENT_STREAM_TYPE.test(type)) ?? false)
  )
}

/** Returns a signal that aborts when the client disconnects. A destroyed response does not emit `close` again, so its signal is aborted at once. */
function createDisconnectSignal({ raw }: FastifyReply): AbortSignal {
  if (raw.destroyed) return AbortSignal.abort()
  const controller = new AbortController()
  raw.once('close', () => {
    controller.abort()
  })
  return controller.signal
}
