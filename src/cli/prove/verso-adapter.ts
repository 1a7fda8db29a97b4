// This service, as a client sees it: docs/wire.md.
import { ConfigError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import type {
  Adapter,
  AdapterOptions,
  FeedAnswer,
  FeedChange,
  HttpAnswer,
  ListAnswer,
  Other,
  RecordAnswer,
  Send,
  State,
} from './adapter.js'

/** What the nodes of prove serve: examples/prove. */
export const OWN_MODEL = { model: 'prove.TokenList', field: 'tokens', mark: 'run' }
const PAGE = 100
const FEED_PAGE = 200

type Json = Readonly<Record<string, unknown>>

export function versoAdapter(options: AdapterOptions): Adapter {
  const { run, mark, model = '', field = '' } = options
  const path = `/ws/rest/${encodeURIComponent(model)}`
  const filter = mark === undefined ? '' : `filter=${encodeURIComponent(`${mark} = '${run}'`)}`
  let headers: Readonly<Record<string, string>> = {}
  /** The commit that the run begins behind. */
  let firstSeq = 0
  const ask = async (send: Send, method: string, place: string, body?: unknown, key?: string) =>
    send(method, place, {
      headers: key === undefined ? headers : { ...headers, 'idempotency-key': key },
      ...(body === undefined ? {} : { body }),
    })
  const record = (answer: HttpAnswer): RecordAnswer => {
    const [data] = dataOf(answer)
    if (answer.status !== 200) return otherOf(answer, field)
    const state = isObject(data) ? stateOf(data, field) : undefined
    return state ? { outcome: 'ok', ...state } : unexpected(answer)
  }
  const listPage = async (send: Send, offset: number): Promise<ListAnswer> => {
    const shown = `fields=${encodeURIComponent(field)}&limit=${PAGE}&offset=${offset}`
    const answer = await ask(send, 'GET', `${path}?${filter}&${shown}`)
    if (answer.status !== 200) return otherOf(answer)
    const records = dataOf(answer).flatMap((each) => (isObject(each) ? (stateOf(each, field) ?? []) : []))
    return { outcome: 'ok', records }
  }
  return {
    name: 'verso',
    takesKeys: true,
    open: async (send) => {
      headers = await login(send, options)
      const found = await ask(send, 'GET', `${path}?limit=0`)
      if (found.status !== 200) throw new ConfigError('Nothing was proved', [`${model}: ${said(found)}`])
      firstSeq = Number(found.headers['x-commit-seq'] ?? 0)
    },
    create: async (send, tokens, key) => {
      const data = { [field]: tokens, ...(mark === undefined ? {} : { [mark]: run }) }
      return record(await ask(send, 'PUT', path, { data }, key))
    },
    read: async (send, id) => record(await ask(send, 'GET', `${path}/${id}`)),
    update: async (send, id, version, tokens, key) =>
      record(await ask(send, 'POST', `${path}/${id}`, { data: { version, [field]: tokens } }, key)),
    remove: async (send, id, version, key) => {
      const answer = await ask(send, 'DELETE', `${path}/${id}?version=${version}`, undefined, key)
      return answer.status === 200 ? { outcome: 'ok' } : otherOf(answer)
    },
    ...(mark === undefined
      ? {}
      : {
          total: async (send: Send) => {
            const answer = await ask(send, 'GET', `${path}?${filter}&limit=0`)
            const total = isObject(answer.body) ? answer.body['total'] : undefined
            if (answer.status !== 200) return otherOf(answer)
            return typeof total === 'number' ? { outcome: 'ok' as const, total } : unexpected(answer)
          },
          list: async (send: Send): Promise<ListAnswer> => {
            const records: ({ readonly id: string } & State)[] = []
            for (let offset = 0; ; offset += PAGE) {
              const page = await listPage(send, offset)
              if (page.outcome !== 'ok') return page
              records.push(...page.records)
              if (page.records.length < PAGE) return { outcome: 'ok', records }
            }
          },
        }),
    feed: async (send, since = firstSeq, waitSeconds): Promise<FeedAnswer> => {
      const query = `since=${since}&model=${encodeURIComponent(model)}&limit=${FEED_PAGE}&wait=${waitSeconds}`
      const answer = await ask(send, 'GET', `/ws/changes?${query}`)
      if (answer.status === 404) return { outcome: 'absent' }
      if (answer.status !== 200) return otherOf(answer)
      const next = isObject(answer.body) ? answer.body['next'] : undefined
      const changes = dataOf(answer).map((each) => changeOf(each, field))
      return typeof next === 'number' ? { outcome: 'ok', changes, next } : unexpected(answer)
    },
    close: async (send) => {
      if (options.key === undefined) await ask(send, 'POST', '/logout')
    },
  }
}

async function login(
  send: Send,
  { user, password, key }: AdapterOptions,
): Promise<Readonly<Record<string, string>>> {
  if (key !== undefined) return { 'api-key': key }
  const answer = await send('POST', '/callback', { body: { username: user, password } })
  if (answer.status !== 200)
    throw new ConfigError('Nothing was proved', [
      `the login of ${user ?? 'nobody'} was refused: ${said(answer)}`,
    ])
  const cookies = answer.headers['set-cookie'] ?? []
  return { cookie: cookies.map((cookie) => cookie.split(';')[0] ?? '').join('; ') }
}

function dataOf({ body }: HttpAnswer): readonly unknown[] {
  return isObject(body) && Array.isArray(body['data']) ? body['data'] : []
}

function stateOf(record: Json, field: string): ({ readonly id: string } & State) | undefined {
  const { id, version } = record
  const tokens = tokensOf(record[field])
  const isRecord = typeof id === 'number' && typeof version === 'number' && tokens
  return isRecord ? { id: String(id), version, tokens } : undefined
}

function tokensOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((each) => typeof each === 'string') ? value : undefined
}

function changeOf(change: unknown, field: string): FeedChange {
  const { seq, id, version, action, changes } = change as Omit<FeedChange, 'id'> & {
    readonly id: number
    readonly changes?: Readonly<Record<string, { readonly before?: unknown; readonly after?: unknown }>>
  }
  const { before, after } = changes?.[field] ?? {}
  return { seq, id: String(id), version, action, before: tokensOf(before), after: tokensOf(after) }
}

/** What came instead of a success. 429, 503 and 507 are for another try; some of them say that nobody knows what happened. */
function otherOf(answer: HttpAnswer, field = ''): Other {
  const { status, headers } = answer
  const { kind, message, theirs } = refusalOf(answer)
  if (status === 409 && kind === 'conflict') {
    const now = isObject(theirs) ? stateOf(theirs, field) : undefined
    return { outcome: 'conflict', ...(now ? { theirs: { version: now.version, tokens: now.tokens } } : {}) }
  }
  if (status === 404 && kind === 'not-found') return { outcome: 'missing' }
  if (status !== 429 && status !== 503 && status !== 507) return unexpected(answer)
  const seconds = Number(headers['retry-after'])
  const isUnknown = typeof message === 'string' && message.includes('read before you try again')
  return { outcome: isUnknown ? 'unknown' : 'refused', retryAfterMs: seconds > 0 ? seconds * 1000 : 100 }
}

function unexpected(answer: HttpAnswer): Other {
  return { outcome: 'unexpected', message: `it was answered with ${said(answer)}` }
}

function said(answer: HttpAnswer): string {
  const { kind, message } = refusalOf(answer)
  return [answer.status, kind, message]
    .filter((word) => word !== undefined)
    .map(String)
    .join(', ')
}

function refusalOf({ body }: HttpAnswer): Json {
  return isObject(body) && isObject(body['data']) ? body['data'] : {}
}
