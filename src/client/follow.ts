// The change feed: pages of changes, and a stream that continues after the last change when its connection is lost.
import type { Change } from '../wire.js'
import { isJsonObject, isTransient, parseJson } from './answer.js'
import { CallScope } from './call-scope.js'
import type { ChangeList, ChangesQuery, FollowOptions, ModelOption } from './client-types.js'
import { createRequestError, GoneError, RequestError } from './errors.js'
import { readEvents, type ServerEvent } from './event-stream.js'
import { encodeText, type Transport } from './transport.js'
import type { AnyModels } from './types/schema.js'

/** Kinds of refusals after which the service may continue. */
const TRANSIENT_REFUSALS: readonly string[] = ['busy', 'too-many']

export type ChangesParameters = ChangesQuery & ModelOption<AnyModels>
export type FollowParameters = FollowOptions & ModelOption<AnyModels>

export async function fetchChanges(
  transport: Transport,
  scope: CallScope,
  { model, ...query }: ChangesParameters,
): Promise<ChangeList> {
  const parameters = { ...query, model: joinModels(model) }
  const { body } = await transport.send(scope, { method: 'GET', path: '/ws/changes', query: parameters })
  const { data, next } = body as ChangeList
  return { data, next }
}

/** Yields each change after `since` once, in commit order, until the signal aborts or the caller stops. */
export function followChanges(
  transport: Transport,
  parameters: FollowParameters,
): AsyncIterableIterator<Change> {
  // Made here, and not at the first change, so that errors name the caller.
  const scope = new CallScope({ signal: parameters.signal })
  const changes = new ChangeFollower(transport, scope, parameters).run()
  return {
    next: () => changes.next(),
    // A generator would finish its pending read first, which may wait for ever.
    return: () => {
      scope.end()
      return changes.return(undefined)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function isEventStream({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') ?? false
}

class ChangeFollower {
  /** Number of the last change that was yielded or skipped. */
  #last: number | undefined
  readonly #models: readonly string[]

  constructor(
    private readonly transport: Transport,
    private readonly scope: CallScope,
    { since, model = [] }: FollowParameters,
  ) {
    this.#last = since
    this.#models = [model].flat()
  }

  async *run(): AsyncGenerator<Change, undefined> {
    const { scope, transport } = this
    try {
      this.#last ??= await this.#findNewest()
      // The first connection fails like any other call. Later ones are tried again until they succeed.
      let events = await this.#connect()
      for (let failures = 0; ; failures++) {
        let failure: RequestError
        try {
          for await (const event of events) {
            failures = 0
            const change = this.#take(event)
            if (change) yield change
          }
          failure = createRequestError({ kind: 'network', message: 'The stream of changes ended' })
        } catch (error) {
          failure = this.#requireTransient(error)
        }
        await transport.pause(scope, failures + 1, failure)
        events = this.#reconnect()
      }
    } catch (error) {
      if (scope.signal.aborted) return
      throw scope.explain(error)
    } finally {
      scope.close()
    }
  }

  /** Returns the change of an event, if it is new. */
  #take({ id, event, data }: ServerEvent): Change | undefined {
    if (event === 'refused') throw toRefusal(data)
    const position = Number(id)
    if (id === undefined || !Number.isSafeInteger(position) || position <= (this.#last ?? -1))
      return undefined
    this.#last = position
    return event === 'change' ? (parseJson(data) as Change) : undefined
  }

  async *#reconnect(): AsyncGenerator<ServerEvent> {
    yield* await this.#connect()
  }

  async #connect(): Promise<AsyncGenerator<ServerEvent>> {
    const { transport, scope } = this
    const query = { since: this.#last, model: joinModels(this.#models) }
    const headers = { accept: 'text/event-stream' }
    return transport.begin({ signal: scope.signal }, async (connection) => {
      const request = { method: 'GET', path: '/ws/changes', query, headers }
      const response = await transport.open(connection, request, isEventStream)
      return readConnection(response, connection, transport.stallTimeoutMs)
    })
  }

  /** Returns a failure after which another attempt may succeed. Throws any other. */
  #requireTransient(error: unknown): RequestError {
    this.scope.throwIfAborted()
    if (!(error instanceof RequestError))
      return createRequestError({ kind: 'network', message: 'The stream of changes ended', cause: error })
    const canContinue =
      isTransient(error) ||
      TRANSIENT_REFUSALS.includes(error.kind) ||
      (error.kind === 'unauthenticated' && error.status === 0 && this.transport.session.canLogIn)
    if (!canContinue) throw error
    return error
  }

  async #findNewest(): Promise<number> {
    const [model] = this.#models
    const { transport } = this
    return transport.run({ signal: this.scope.signal }, async (scope) => {
      if (model !== undefined) {
        const path = `/ws/rest/${encodeText(model)}`
        const { headers } = await transport.send(scope, { method: 'GET', path, query: { limit: 0 } })
        return Number(headers.get('x-commit-seq'))
      }
      try {
        // Only a number beyond the end makes the feed say where it ends.
        return (await fetchChanges(transport, scope, { since: Number.MAX_SAFE_INTEGER })).next
      } catch (error) {
        if (error instanceof GoneError) return Number(error.data['last'])
        throw error
      }
    })
  }
}

async function* readConnection(
  response: Response,
  connection: CallScope,
  stallMs: number,
): AsyncGenerator<ServerEvent> {
  try {
    if (response.body) yield* readEvents(response.body, stallMs)
  } finally {
    connection.end()
  }
}

/** Reason that the service gives before it ends a stream. */
function toRefusal(data: string): RequestError {
  const refusal = parseJson(data)
  const { kind, message, ...more } = isJsonObject(refusal) ? refusal : {}
  return createRequestError({ kind: String(kind), message: String(message), data: more })
}

function joinModels(model: string | readonly string[] | undefined): string | undefined {
  const names = [model ?? []].flat().join(',')
  return names === '' ? undefined : names
}
