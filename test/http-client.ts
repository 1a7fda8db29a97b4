// The verbs over HTTP, with the cookie of a session. Responses with an error status are thrown as VersoError.
import { Readable } from 'node:stream'
import { VersoError, type ErrorKind } from '../src/errors.js'
import type { FindQuery, SearchRequest } from '../src/model/query/search.js'
import type { FieldSelection } from '../src/model/query/selection.js'
import type { Values } from '../src/model/values/value.js'
import type {
  BatchOptions,
  ChangePage,
  DeletedPage,
  DeletedQuery,
  Download,
  FeedQuery,
  HistoryPage,
  MassUpdate,
  Page,
  Records,
  RemovedRecord,
  RemoveOptions,
  SaveOptions,
  UpdateOptions,
  Upload,
  WireRecord,
  WriteOptions,
  WriteResult,
} from '../src/wire.js'

interface ErrorBody {
  readonly status: number
  readonly errors?: Record<string, string>
  readonly data: { readonly kind: ErrorKind; readonly message: string } & Record<string, unknown>
}

const ENVELOPE = new Set(['kind', 'message', 'title', 'requestId'])

export class HttpClient implements Records {
  private constructor(
    readonly url: string,
    readonly cookie: string,
  ) {}

  static async login(url: string, username: string, password: string): Promise<HttpClient> {
    const response = await fetch(`${url}/callback`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username, password }),
    })
    if (response.status !== 200) throw await errorFrom(response)
    await response.arrayBuffer()
    const cookies = response.headers.getSetCookie().map((cookie) => cookie.split(';')[0])
    return new HttpClient(url, cookies.join('; '))
  }

  /** Any request with this session. */
  async request(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    return fetch(`${this.url}${path}`, {
      method,
      headers: { cookie: this.cookie, accept: 'application/json', ...json, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }

  async find(model: string, query: FindQuery = {}): Promise<Page> {
    return pageFrom(await this.request('GET', `/ws/rest/${model}?${queryText(query)}`))
  }

  async search(model: string, request?: SearchRequest): Promise<Page> {
    const response = await this.request('POST', `/ws/rest/${model}/search`, request)
    return pageFrom(response)
  }

  async fetch(model: string, id: number, wanted: FieldSelection = {}): Promise<WireRecord> {
    return first(
      await bodyOf<{ data: WireRecord[] }>(
        await this.request('POST', `/ws/rest/${model}/${id}/fetch`, wanted),
      ),
    )
  }

  async read(model: string, id: number): Promise<WireRecord> {
    return first(await bodyOf<{ data: WireRecord[] }>(await this.request('GET', `/ws/rest/${model}/${id}`)))
  }

  async changes(query: FeedQuery = {}): Promise<ChangePage> {
    const response = await this.request('GET', `/ws/changes?${queryText(query)}`)
    const body = await bodyOf<Omit<ChangePage, 'isLast'>>(response)
    // Not answered: whoever gets nothing has reached the end.
    return { ...body, isLast: body.data.length === 0 }
  }

  async readAt(model: string, id: number, asOf: unknown): Promise<WireRecord> {
    const path = `/ws/rest/${model}/${id}`
    // A version has two ways to be named; both are to be gone.
    const query =
      typeof asOf === 'number'
        ? `${path}/history/${asOf}`
        : `${path}?asOf=${encodeURIComponent(String(asOf))}`
    return first(await bodyOf<{ data: WireRecord[] }>(await this.request('GET', query)))
  }

  async history(
    model: string,
    id: number,
    query: Pick<FindQuery, 'offset' | 'limit'> = {},
  ): Promise<HistoryPage> {
    const response = await this.request('GET', `/ws/rest/${model}/${id}/history?${queryText(query)}`)
    return { ...(await pageFrom(response)), next: undefined } as unknown as HistoryPage
  }

  async deleted(model: string, query: DeletedQuery = {}): Promise<DeletedPage> {
    const response = await this.request('GET', `/ws/rest/${model}/deleted?${queryText(query)}`)
    const { data, next } = await bodyOf<DeletedPage>(response)
    return { data, ...(next === undefined ? {} : { next }) }
  }

  async revert(
    model: string,
    id: number,
    data: unknown,
    options: UpdateOptions = {},
  ): Promise<WriteResult<WireRecord>> {
    const body = { data, ...options.returning }
    return written(await this.request('POST', `/ws/rest/${model}/${id}/revert`, body, headersOf(options)))
  }

  async copy(model: string, id: number): Promise<Values> {
    return first(await bodyOf<{ data: Values[] }>(await this.request('GET', `/ws/rest/${model}/${id}/copy`)))
  }

  async verify(model: string, data: unknown): Promise<void> {
    await bodyOf(await this.request('POST', `/ws/rest/${model}/verify`, { data }))
  }

  async create(model: string, data: unknown, options: SaveOptions = {}): Promise<WriteResult<WireRecord>> {
    const body = { data, ...options.returning }
    return written(await this.request('PUT', `/ws/rest/${model}`, body, headersOf(options)))
  }

  async update(
    model: string,
    id: number,
    data: unknown,
    options: UpdateOptions = {},
  ): Promise<WriteResult<WireRecord>> {
    const headers = headersOf(options)
    if (options.patch) {
      const patch = { 'content-type': 'application/merge-patch+json' }
      return written(await this.request('PATCH', `/ws/rest/${model}/${id}`, data, { ...headers, ...patch }))
    }
    const body = { data, ...options.returning }
    return written(await this.request('POST', `/ws/rest/${model}/${id}`, body, headers))
  }

  async save(
    model: string,
    records: readonly unknown[],
    options: SaveOptions = {},
  ): Promise<WriteResult<readonly WireRecord[]>> {
    const body = { records, ...options.returning }
    return allWritten(await this.request('POST', `/ws/rest/${model}`, body, headersOf(options)))
  }

  async updateMass(
    model: string,
    { data, values, expected }: MassUpdate,
    options: WriteOptions = {},
  ): Promise<WriteResult<number>> {
    const body = { data, records: [values], expected }
    const response = await this.request('POST', `/ws/rest/${model}/updateMass`, body, headersOf(options))
    const { total } = await bodyOf<{ total: number }>(response)
    return { data: total, replayed: response.headers.get('idempotency-replayed') === 'true' }
  }

  async removeAll(
    model: string,
    records: readonly unknown[],
    options: WriteOptions = {},
  ): Promise<WriteResult<readonly RemovedRecord[]>> {
    return allWritten(
      await this.request('POST', `/ws/rest/${model}/removeAll`, { records }, headersOf(options)),
    )
  }

  async batch(
    requests: readonly unknown[],
    options: BatchOptions = {},
  ): Promise<WriteResult<readonly (WireRecord | number)[]>> {
    return allWritten(await this.request('POST', '/ws/batch', { requests }, headersOf(options)))
  }

  async remove(model: string, id: number, options: RemoveOptions = {}): Promise<WriteResult<number>> {
    const query = options.version === undefined ? '' : `?version=${options.version}`
    return written(
      await this.request('DELETE', `/ws/rest/${model}/${id}${query}`, undefined, headersOf(options)),
    )
  }

  async upload(model: string, upload: Upload, options: UpdateOptions = {}): Promise<WriteResult<WireRecord>> {
    const form = new FormData()
    const { data = {} } = upload
    form.set('request', JSON.stringify({ data, ...options.returning }))
    if (upload.field !== undefined) form.set('field', upload.field)
    const chunks: Uint8Array<ArrayBuffer>[] = []
    for await (const chunk of upload.content) chunks.push(Uint8Array.from(chunk))
    form.set('file', new Blob(chunks), upload.name ?? 'blob')
    const headers = { cookie: this.cookie, ...headersOf(options) }
    return written(
      await fetch(`${this.url}/ws/rest/${model}/upload`, { method: 'POST', headers, body: form }),
    )
  }

  async download(model: string, id: number, field: string): Promise<Download | undefined> {
    const response = await this.request('GET', `/ws/rest/${model}/${id}/${field}/download`)
    if (response.status === 204) return undefined
    if (response.status !== 200 || !response.body) throw await errorFrom(response)
    const { headers } = response
    const encoded = /filename\*=UTF-8''(.*)$/.exec(headers.get('content-disposition') ?? '')?.[1] ?? ''
    return {
      name: decodeURIComponent(encoded),
      type: headers.get('content-type') ?? '',
      size: Number(headers.get('content-length')),
      sha256: headers.get('etag')?.slice(1, -1) ?? '',
      content: Readable.fromWeb(response.body),
    }
  }

  async clear(
    model: string,
    id: number,
    field: string,
    options: RemoveOptions,
  ): Promise<WriteResult<WireRecord>> {
    const query = options.version === undefined ? '' : `?version=${options.version}`
    const path = `/ws/rest/${model}/${id}/${field}/download${query}`
    return written(await this.request('DELETE', path, undefined, headersOf(options)))
  }
}

function queryText(query: object): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, String(value))
  return params.toString()
}

function headersOf({ idempotencyKey, ifMatch, merge }: RemoveOptions & SaveOptions): Record<string, string> {
  return {
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    ...(ifMatch === undefined ? {} : { 'if-match': `"${ifMatch}"` }),
    ...(merge === undefined ? {} : { prefer: `merge=${merge}` }),
  }
}

async function allWritten<T>(response: Response): Promise<WriteResult<readonly T[]>> {
  const { data } = await bodyOf<{ data: T[] }>(response)
  return { data, replayed: response.headers.get('idempotency-replayed') === 'true' }
}

async function written<T>(response: Response): Promise<WriteResult<T>> {
  const data = first(await bodyOf<{ data: T[] }>(response))
  return { data, replayed: response.headers.get('idempotency-replayed') === 'true' }
}

async function bodyOf<T>(response: Response): Promise<T> {
  if (response.status !== 200) throw await errorFrom(response)
  return (await response.json()) as T
}

async function errorFrom(response: Response): Promise<Error> {
  const text = await response.text()
  try {
    const { errors, data } = JSON.parse(text) as ErrorBody
    const { kind, message } = data
    const rest = Object.entries(data).filter(([name]) => !ENVELOPE.has(name))
    return new VersoError(kind, message, {
      ...(errors ? { errors } : {}),
      ...(rest.length > 0 ? { data: Object.fromEntries(rest) } : {}),
    })
  } catch {
    return new Error(`${response.status}: ${text.slice(0, 500)}`)
  }
}

function first<T>({ data }: { data: readonly T[] }): T {
  const [only] = data
  if (only === undefined || data.length !== 1) throw new Error(`one answer was expected, not ${data.length}`)
  return only
}

/** How many were asked for is not answered. */
async function pageFrom(response: Response): Promise<Page> {
  const body = await bodyOf<Omit<Page, 'limit' | 'seq'>>(response)
  const next = nextIn(response.headers.get('link') ?? '')
  return { limit: NaN, seq: Number(response.headers.get('x-commit-seq')), ...body, ...(next ? { next } : {}) }
}

function nextIn(link: string): Page['next'] {
  const query = /<[^>?]*\?([^>]*)>; rel="next"/.exec(link)?.[1]
  if (query === undefined) return undefined
  const params = new URLSearchParams(query)
  return { offset: Number(params.get('offset')), after: params.get('after') ?? undefined }
}
