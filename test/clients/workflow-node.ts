// A node of a workflow program: sends Basic credentials with every request, ignores cookies, treats only status -1 as an error.
import { ClientError, type Saved } from './shop.js'

interface FieldMeta {
  readonly name: string
  readonly type: string
  readonly title: string
  readonly required?: boolean
  readonly nameColumn?: boolean
  readonly target?: string
  readonly targetName?: string
  readonly selectionList?: readonly { readonly value: string; readonly title: string }[]
}

interface Body {
  readonly status?: number
  readonly data?: unknown
}

export class WorkflowNode {
  constructor(
    private readonly url: string,
    private readonly username: string,
    private readonly password: string,
  ) {}

  /** Tests the credentials before they are stored. */
  async testCredentials(): Promise<number> {
    const response = await fetch(`${this.url}/callback`, {
      method: 'POST',
      headers: this.#headers(),
      body: JSON.stringify({ username: this.username, password: this.password }),
    })
    await response.arrayBuffer()
    return response.status
  }

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.url}/ws/${path}`, {
      method,
      headers: this.#headers(),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`HTTP ${response.status}`)
    const answer = (await response.json()) as Body
    if (answer.status === -1) throw new ClientError((answer.data as { message: string }).message)
    return answer.data as T
  }

  #headers(): Record<string, string> {
    const pair = Buffer.from(`${this.username}:${this.password}`).toString('base64')
    return { authorization: `Basic ${pair}`, 'content-type': 'application/json' }
  }

  /** Fills the drop-down of models; no limit means all of them. */
  async models(): Promise<readonly { readonly name: string; readonly fullName: string }[]> {
    const body = { fields: ['name', 'fullName'], sortBy: ['name'] }
    return this.#call('POST', 'rest/com.axelor.meta.db.MetaModel/search', body)
  }

  async fields(model: string): Promise<readonly FieldMeta[]> {
    const { fields } = await this.#call<{ fields: readonly FieldMeta[] }>('GET', `meta/fields/${model}`)
    return fields
  }

  /** Fills the drop-down of a relation. */
  async choices({ target = '', targetName = 'id' }: FieldMeta): Promise<readonly Saved[]> {
    return this.#call('POST', `rest/${encodeURIComponent(target)}/search`, { fields: [targetName] })
  }

  async getMany(
    model: string,
    criteria: readonly object[],
    fields: readonly string[],
  ): Promise<readonly Saved[]> {
    const body = { offset: 0, limit: 50, fields, sortBy: ['-updatedOn'], data: { operator: 'and', criteria } }
    return this.#call('POST', `rest/${model}/search`, body)
  }

  async get(model: string, id: number, fields: readonly string[]): Promise<Saved> {
    const [record] = await this.#call<Saved[]>('POST', `rest/${model}/${id}/fetch`, { fields })
    if (!record) throw new ClientError('not found')
    return record
  }

  /** Creates or updates; an update first reads the current version. */
  async save(model: string, data: Readonly<Record<string, unknown>>): Promise<Saved> {
    const { id } = data
    const version = typeof id === 'number' ? (await this.get(model, id, ['id'])).version : undefined
    const [record] = await this.#call<Saved[]>('POST', `rest/${model}/`, { data: { ...data, version } })
    if (!record) throw new ClientError('not saved')
    return record
  }

  async deleteMany(model: string, ids: readonly number[]): Promise<void> {
    await this.#call('POST', `rest/${model}/removeAll`, { records: ids.map((id) => ({ id })) })
  }

  async delete(model: string, id: number): Promise<void> {
    await this.#call('DELETE', `rest/${model}/${id}`)
  }
}
