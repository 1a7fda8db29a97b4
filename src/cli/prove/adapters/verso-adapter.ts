// Adapter for Verso, over the protocol of docs/reference.
import { ConfigError } from '../../../errors.js'
import { isObject } from '../../../model/values/value.js'
import {
  NOTHING_TESTED,
  type Adapter,
  type AdapterOptions,
  type FeedResult,
  type FeedChange,
  type HttpResponse,
  type ListResult,
  type FailureResult,
  type RecordResult,
  type SendRequest,
  type ObservedState,
} from './adapter.js'

/** Model that the nodes of prove serve, from examples/prove. */
export const PROVE_MODEL = { model: 'prove.TokenList', field: 'tokens', mark: 'run' }
const LIST_PAGE_RECORDS = 100
const FEED_PAGE_CHANGES = 200

/** Body and idempotency key of a write. */
interface ProveRequest {
  readonly body?: unknown
  readonly key?: string | undefined
}

type ResponseObject = Readonly<Record<string, unknown>>

export function createVersoAdapter(options: AdapterOptions): Adapter {
  const { run, mark, model = '', field = '' } = options
  const path = `/ws/rest/${encodeURIComponent(model)}`
  const filter = mark === undefined ? '' : `filter=${encodeURIComponent(`${mark} = '${run}'`)}`
  let headers: Readonly<Record<string, string>> = {}
  /** The feed starts after this commit. */
  let firstSeq = 0
  const request = async (send: SendRequest, method: string, url: string, { body, key }: ProveRequest = {}) =>
    send(method, url, {
      headers: key === undefined ? headers : { ...headers, 'idempotency-key': key },
      ...(body === undefined ? {} : { body }),
    })
  const toRecordResult = (answer: HttpResponse): RecordResult => {
    const [data] = readResponseData(answer)
    if (answer.status !== 200) return toFailureResult(answer, field)
    const state = isObject(data) ? parseState(data, field) : undefined
    return state ? { outcome: 'ok', ...state } : toUnexpectedResult(answer)
  }
  const listPage = async (send: SendRequest, offset: number): Promise<ListResult> => {
    const query = `fields=${encodeURIComponent(field)}&limit=${LIST_PAGE_RECORDS}&offset=${offset}`
    const answer = await request(send, 'GET', `${path}?${filter}&${query}`)
    if (answer.status !== 200) return toFailureResult(answer)
    const records = readResponseData(answer).flatMap((each) =>
      isObject(each) ? (parseState(each, field) ?? []) : [],
    )
    return { outcome: 'ok', records }
  }
  return {
    name: 'verso',
    takesKeys: true,
    open: async (send) => {
      headers = await logInToService(send, options)
      const found = await request(send, 'GET', `${path}?limit=0`)
      if (found.status !== 200)
        throw new ConfigError(NOTHING_TESTED, [`${model}: ${describeResponse(found)}`])
      firstSeq = Number(found.headers['x-commit-seq'] ?? 0)
    },
    create: async (send, tokens, key) => {
      const data = { [field]: tokens, ...(mark === undefined ? {} : { [mark]: run }) }
      return toRecordResult(await request(send, 'PUT', path, { body: { data }, key }))
    },
    read: async (send, id) => toRecordResult(await request(send, 'GET', `${path}/${id}`)),
    update: async (send, id, version, tokens, key) =>
      toRecordResult(
        await request(send, 'POST', `${path}/${id}`, { body: { data: { version, [field]: tokens } }, key }),
      ),
    remove: async (send, id, version, key) => {
      const answer = await request(send, 'DELETE', `${path}/${id}?version=${version}`, { key })
      return answer.status === 200 ? { outcome: 'ok' } : toFailureResult(answer)
    },
    ...(mark === undefined
      ? {}
      : {
          total: async (send: SendRequest) => {
            const answer = await request(send, 'GET', `${path}?${filter}&limit=0`)
            const total = isObject(answer.body) ? answer.body['total'] : undefined
            if (answer.status !== 200) return toFailureResult(answer)
            return typeof total === 'number' ? { outcome: 'ok' as const, total } : toUnexpectedResult(answer)
          },
          list: async (send: SendRequest): Promise<ListResult> => {
            const records: ({ readonly id: string } & ObservedState)[] = []
            for (let offset = 0; ; offset += LIST_PAGE_RECORDS) {
              const page = await listPage(send, offset)
              if (page.outcome !== 'ok') return page
              records.push(...page.records)
              if (page.records.length < LIST_PAGE_RECORDS) return { outcome: 'ok', records }
            }
          },
        }),
    feed: async (send, since = firstSeq, waitSeconds): Promise<FeedResult> => {
      const query = `since=${since}&model=${encodeURIComponent(model)}&limit=${FEED_PAGE_CHANGES}&wait=${waitSeconds}`
      const answer = await request(send, 'GET', `/ws/changes?${query}`)
      if (answer.status === 404) return { outcome: 'absent' }
      if (answer.status !== 200) return toFailureResult(answer)
      const next = isObject(answer.body) ? answer.body['next'] : undefined
      const changes = readResponseData(answer).map((each) => parseChange(each, field))
      return typeof next === 'number' ? { outcome: 'ok', changes, next } : toUnexpectedResult(answer)
    },
    close: async (send) => {
      if (options.key === undefined) await request(send, 'POST', '/logout')
    },
  }
}

async function logInToService(
  send: SendRequest,
  { user, password, key }: AdapterOptions,
): Promise<Readonly<Record<string, string>>> {
  if (key !== undefined) return { 'api-key': key }
  const answer = await send('POST', '/callback', { body: { username: user, password } })
  if (answer.status !== 200)
    throw new ConfigError(NOTHING_TESTED, [
      `the login of ${user ?? 'an unnamed user'} failed: ${describeResponse(answer)}`,
    ])
  const cookies = answer.headers['set-cookie'] ?? []
  return { cookie: cookies.map((cookie) => cookie.split(';')[0] ?? '').join('; ') }
}

function readResponseData({ body }: HttpResponse): readonly unknown[] {
  return isObject(body) && Array.isArray(body['data']) ? body['data'] : []
}

function parseState(
  record: ResponseObject,
  field: string,
): ({ readonly id: string } & ObservedState) | undefined {
  const { id, version } = record
  const tokens = parseTokens(record[field])
  const isRecord = typeof id === 'number' && typeof version === 'number' && tokens
  return isRecord ? { id: String(id), version, tokens } : undefined
}

function parseTokens(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((each) => typeof each === 'string') ? value : undefined
}

function parseChange(change: unknown, field: string): FeedChange {
  const { seq, id, version, action, changes } = change as Omit<FeedChange, 'id'> & {
    readonly id: number
    readonly changes?: Readonly<Record<string, { readonly before?: unknown; readonly after?: unknown }>>
  }
  const { before, after } = changes?.[field] ?? {}
  return { seq, id: String(id), version, action, before: parseTokens(before), after: parseTokens(after) }
}

/**
 * Translates an error response. 429, 503 and 507 may be retried; some of their messages say that the write may have
 * taken effect.
 */
function toFailureResult(answer: HttpResponse, field = ''): FailureResult {
  const { status, headers } = answer
  const { kind, message, theirs } = readErrorBody(answer)
  if (status === 409 && kind === 'conflict') {
    const now = isObject(theirs) ? parseState(theirs, field) : undefined
    return { outcome: 'conflict', ...(now ? { theirs: { version: now.version, tokens: now.tokens } } : {}) }
  }
  if (status === 404 && kind === 'not-found') return { outcome: 'missing' }
  if (status !== 429 && status !== 503 && status !== 507) return toUnexpectedResult(answer)
  const seconds = Number(headers['retry-after'])
  const isUnknown = typeof message === 'string' && message.includes('read before you try again')
  return { outcome: isUnknown ? 'unknown' : 'refused', retryAfterMs: seconds > 0 ? seconds * 1000 : 100 }
}

function toUnexpectedResult(answer: HttpResponse): FailureResult {
  return { outcome: 'unexpected', message: `the response was ${describeResponse(answer)}` }
}

function describeResponse(answer: HttpResponse): string {
  const { kind, message } = readErrorBody(answer)
  return [answer.status, kind, message]
    .filter((word) => word !== undefined)
    .map(String)
    .join(', ')
}

function readErrorBody({ body }: HttpResponse): ResponseObject {
  return isObject(body) && isObject(body['data']) ? body['data'] : {}
}
