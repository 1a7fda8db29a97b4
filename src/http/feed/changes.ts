// The feed of Changes: a page of JSON, at once or as soon as there is one, or a stream of events.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { App } from '../../service/context/app.js'
import { waitForChanges, parseFeedRequest, type FeedRequest } from '../../service/log/feed.js'
import type { FeedQuery } from '../../wire.js'
import { EventStream } from './event-stream.js'
import { actorIn, type Guards } from '../route/guard.js'
import type { Limits } from '../route/limits.js'
import { sendJson, type Resource } from '../route/resource.js'
import { varyAlso } from '../answer/security-headers.js'

export interface FeedContext {
  readonly app: App
  readonly guards: Guards
  readonly limits: Limits
  /** Aborted when the service stops: whoever waits is answered. */
  readonly stopping: AbortSignal
}

export function changesResource(context: FeedContext): Resource {
  const { guards, limits } = context
  return {
    path: '/ws/changes',
    guards: [guards.session],
    writeGuards: [guards.sameSiteOrKey],
    handlers: {
      GET: async (request, reply) => {
        varyAlso(reply, 'Accept')
        const isStream = wantsEvents(request)
        if (isStream || 'wait' in (request.query as FeedQuery)) limits.wait(actorIn(request).id, reply)
        return isStream ? stream(context, request, reply) : sendChanges(context, request, reply)
      },
    },
  }
}

async function sendChanges(
  context: FeedContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { app, guards, limits } = context
  const following = parseFeedRequest(app, request.query as FeedQuery)
  if (following.waitMs > 0) limits.setAside(reply)
  const signal = AbortSignal.any([context.stopping, goneSignal(reply)])
  const { data, next } = await waitForChanges(app, () => guards.still(request), following, signal)
  return sendJson(reply, JSON.stringify({ status: 0, data, next }))
}

/** How long a stream says nothing, at most. */
const HEARTBEAT_MS = 15_000

async function stream(
  context: FeedContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { app, guards, limits, stopping } = context
  const asked = parseFeedRequest(app, sinceLastEvent(request))
  const first = { ...asked, waitMs: 0 }
  const signal = AbortSignal.any([stopping, goneSignal(reply)])
  // Whatever is wrong from the start is still an ordinary refusal.
  let page = await waitForChanges(app, () => guards.still(request), first, signal)
  limits.setAside(reply)
  const events = new EventStream(reply)
  const isOpen = () => !signal.aborted && !reply.raw.destroyed
  try {
    for (let following: FeedRequest = { ...asked, waitMs: HEARTBEAT_MS }; isOpen();) {
      for (const change of page.data) await events.send(change.seq, 'change', change)
      if (page.data.at(-1)?.seq !== page.next) await events.position(page.next)
      following = { ...following, since: page.next }
      page = await waitForChanges(app, () => guards.still(request), following, signal)
    }
  } catch (error) {
    if (!(error instanceof VersoError) && !reply.raw.destroyed)
      app.log.error({ err: error, requestId: request.id }, 'a stream failed')
    await events.refuse(error)
  } finally {
    events.end()
  }
  return reply
}

/** A browser that comes back says which event it has seen last. */
function sinceLastEvent(request: FastifyRequest): FeedQuery {
  const query = request.query as FeedQuery
  const last = request.headers['last-event-id'] ?? ''
  return last === '' ? query : { ...query, since: last }
}

const EVENTS = /^\s*text\/event-stream\s*(?:;(?!.*\bq=0(?:\.0*)?\s*(?:;|$)).*)?$/i

/** A HEAD has no end to wait for. */
function wantsEvents({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' && (headers.accept?.split(',').some((type) => EVENTS.test(type)) ?? false)
}

/** Aborted once nobody is there to be answered. A response that is closed already never says so again. */
function goneSignal({ raw }: FastifyReply): AbortSignal {
  if (raw.destroyed) return AbortSignal.abort()
  const gone = new AbortController()
  raw.once('close', () => {
    gone.abort()
  })
  return gone.signal
}
