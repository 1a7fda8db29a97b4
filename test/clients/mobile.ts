// A mobile app: reads cookies from headers itself, sends a CSRF token with every request, and has unusual search requests.
import { ClientError, type Answer, type Saved } from './shop.js'

interface Info {
  readonly user?: { readonly id: number; readonly login: string; readonly name: string } | null
}

interface Criterion {
  readonly fieldName?: string
  readonly operator: string
  readonly value?: unknown
  readonly value2?: unknown
  readonly criteria?: readonly Criterion[]
}

interface SearchOptions {
  readonly limit?: number | null
  readonly domain?: string | null
  readonly context?: object
}

export class SessionExpired extends Error {}

export class Mobile {
  #cookie = ''
  #token = ''

  /** The address ends in a slash. */
  constructor(private readonly url: string) {}

  async login(username: string, password: string): Promise<void> {
    const response = await fetch(`${this.url}callback`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json; charset=utf-8',
        accept: 'application/json, text/plain, */*',
      },
      body: JSON.stringify({ username, password }),
    })
    await response.text()
    if (response.status !== 200) throw new ClientError('the login was refused')
    const token = response.headers.get('x-csrf-token')
    if (token === null) throw new ClientError('there is no token')
    const [first = ''] = response.headers.getSetCookie()
    const session = /JSESSIONID=.*?;/.exec(first)?.[0]
    if (session === undefined) throw new ClientError('the first cookie is not the session')
    this.#token = token
    this.#cookie = `CSRF-TOKEN=${token}; ${session}`
  }

  async logout(): Promise<void> {
    await (await this.#fetch('GET', 'logout')).text()
  }

  /** Returns the current user; undefined if the session has expired. */
  async info(): Promise<Info> {
    return (await (await this.#fetch('GET', 'ws/public/app/info')).json()) as Info
  }

  async search(
    model: string,
    fieldList: readonly string[],
    criteria: readonly Criterion[],
    { limit = 10, domain = null, context = {} }: SearchOptions = {},
  ): Promise<readonly Saved[]> {
    return this.#call('POST', `ws/rest/${model}/search`, {
      data: {
        criteria: [{ operator: 'and', criteria }],
        operator: 'and',
        _domain: domain,
        _domainContext: context,
      },
      fields: fieldList,
      sortBy: null,
      limit,
      offset: 0,
      translate: true,
    })
  }

  async fetch(model: string, id: number, fields: readonly string[], related: object): Promise<Saved> {
    return only(await this.#call('POST', `ws/rest/${model}/${id}/fetch`, { fields, related }))
  }

  async read(model: string, id: number): Promise<Saved> {
    return only(await this.#call('GET', `ws/rest/${model}/${id}`))
  }

  async find(model: string): Promise<readonly Saved[]> {
    return this.#call('GET', `ws/rest/${model}/`)
  }

  async create(model: string, data: object): Promise<Saved> {
    return only(await this.#call('PUT', `ws/rest/${model}`, { data }))
  }

  async update(model: string, id: number, data: object): Promise<Saved> {
    return only(await this.#call('POST', `ws/rest/${model}/${id}`, { data }))
  }

  async save(model: string, data: object): Promise<Saved> {
    return only(await this.#call('POST', `ws/rest/${model}`, { data }))
  }

  async delete(model: string, id: number): Promise<void> {
    await this.#call('DELETE', `ws/rest/${model}/${id}`)
  }

  async copy(model: string, id: number): Promise<Readonly<Record<string, unknown>>> {
    const [copy] = await this.#call('GET', `ws/rest/${model}/${id}/copy`)
    if (!copy) throw new ClientError('there is no copy')
    return copy
  }

  async #call(method: string, path: string, body?: unknown): Promise<readonly Saved[]> {
    const response = await this.#fetch(method, path, body)
    if (response.status === 401) throw new SessionExpired()
    if (!response.ok) throw new Error(`HTTP ${response.status}`)
    const answer = (await response.json()) as Answer<Saved>
    if (answer.status !== -1) return answer.data ?? []
    const { title, message } = answer.data as unknown as { title: string; message: string }
    throw new ClientError(`${title}: ${message}`)
  }

  async #fetch(method: string, path: string, body?: unknown): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      method,
      redirect: 'manual',
      headers: {
        ...{ accept: 'application/json, text/plain, */*', 'content-type': 'application/json' },
        ...(this.#token === '' ? {} : { 'x-csrf-token': this.#token, cookie: this.#cookie }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }
}

function only([record]: readonly Saved[]): Saved {
  if (!record) throw new ClientError('there is no record')
  return record
}
