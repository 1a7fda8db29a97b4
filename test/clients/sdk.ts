// An SDK for apps: the app brings its own login; data of every response must be a list of objects.
import { ClientError, type Answer, type Saved } from './shop.js'

export type Interceptor = (headers: Record<string, string>) => Record<string, string>

export class Sdk {
  constructor(
    private readonly url: string,
    private readonly intercept: Interceptor,
  ) {}

  async find(model: string, offset: number, limit: number): Promise<Answer<Saved>> {
    return this.#call('GET', `${model}?offset=${offset}&limit=${limit}`)
  }

  async search(model: string, body: object): Promise<Answer<Saved>> {
    return this.#call('POST', `${model}/search`, body)
  }

  async fetch(model: string, id: number, body: object): Promise<Saved> {
    return firstOf(await this.#call('POST', `${model}/${id}/fetch`, body))
  }

  async create(model: string, data: object): Promise<Saved> {
    return firstOf(await this.#call('POST', model, { data }))
  }

  async update(model: string, id: number, data: object): Promise<Saved> {
    return firstOf(await this.#call('POST', `${model}/${id}`, { data }))
  }

  async delete(model: string, id: number): Promise<Saved> {
    return firstOf(await this.#call('DELETE', `${model}/${id}`), false)
  }

  async removeAll(
    model: string,
    records: readonly { id: number; version: number }[],
  ): Promise<readonly Saved[]> {
    return (await this.#call('POST', `${model}/removeAll`, { records })).data ?? []
  }

  async #call(method: string, path: string, body?: object): Promise<Answer<Saved>> {
    const response = await fetch(`${this.url}/ws/rest/${path}`, {
      method,
      headers: this.intercept({ 'content-type': 'application/json; charset=utf-8' }),
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    if (!response.ok) throw new Error(`HTTP ${response.status}`)
    const answer = (await response.json()) as Answer<Saved>
    if (answer.status === 0) return answer
    if (answer.status === -1) throw new ClientError((answer.data as unknown as { message: string }).message)
    throw new ClientError(answer.errors?.['error'] ?? 'unknown')
  }
}

/** Requires an object in `data`, with whole numbers as id and version. */
function firstOf({ data = [] }: Answer<Saved>, hasVersion = true): Saved {
  const [first] = data
  if (typeof first !== 'object') throw new ClientError('data holds no object')
  if (!Number.isInteger(first.id) || (hasVersion && !Number.isInteger(first.version)))
    throw new ClientError('id and version are no whole numbers')
  return first
}
