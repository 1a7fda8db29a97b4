// The calls of one model.
import type { Change, WireRecord } from '../wire.js'
import { getFirst, type JsonAnswer } from './answer.js'
import type { CallScope, CallOptions } from './call-scope.js'
import type {
  ChangesQuery,
  ClientWriteOptions,
  DeletedFindQuery,
  DeletedList,
  FollowOptions,
} from './client-types.js'
import {
  createDownload,
  createForm,
  formatRange,
  isFileResponse,
  type FileRange,
  type FileContent,
  type FileDownload,
} from './files.js'
import { createRequestError, type RequestError } from './errors.js'
import { followChanges, fetchChanges } from './follow.js'
import {
  toRecordPage,
  toFindParameters,
  toSearchBody,
  type LooseFindQuery,
  type LoosePage,
  type LooseSearchQuery,
} from './pages.js'
import {
  createIdempotencyKey,
  encodeText,
  type ClientRequest,
  type QueryValues,
  type Transport,
} from './transport.js'
import { runUpdate, type ChangeCalculation, type ConflictResolution, type UpdateDraft } from './update.js'

const PAGE_OF_ALL_RECORDS = 200

export interface LooseUpdateOptions extends ClientWriteOptions {
  readonly onConflict?: ConflictResolution
  readonly merge?: boolean | undefined
}

interface LooseUpload {
  readonly version?: number | undefined
  readonly field?: string | undefined
  readonly content: FileContent
  readonly name: string
}

type RecordValues = Readonly<Record<string, unknown>>

export const MERGE_HEADERS = { prefer: 'merge=fields' }

export class ModelVerbs {
  readonly #path: string

  constructor(
    readonly transport: Transport,
    readonly name: string,
  ) {
    this.#path = `/ws/rest/${encodeText(name)}`
  }

  async find(query: LooseFindQuery = {}, options?: CallOptions): Promise<LoosePage> {
    return this.transport.run(options, (scope) => this.#findPage(scope, query))
  }

  /** Each page has a time limit of its own. */
  all(query: LooseFindQuery = {}, options?: CallOptions): AsyncIterableIterator<unknown> {
    // Nobody sees the total, and counting may cost more than the page.
    return this.#readAll({ limit: PAGE_OF_ALL_RECORDS, count: 'none', ...query }, options)
  }

  async read(id: number, query: { asOf?: string | number } = {}, options?: CallOptions): Promise<WireRecord> {
    return this.transport.run(options, (scope) => this.#read(scope, id, query.asOf))
  }

  async create(data: RecordValues, options: ClientWriteOptions = {}): Promise<WireRecord> {
    return this.#write(options, { method: 'PUT', path: '', body: { data } })
  }

  async update(
    id: number,
    change: ChangeCalculation | RecordValues,
    options: LooseUpdateOptions = {},
  ): Promise<WireRecord> {
    const { onConflict, merge: merges = true } = options
    // All attempts share the key, so at most one of them takes effect. The service keeps no key of a rejected write.
    const key = options.idempotencyKey ?? createIdempotencyKey()
    if (onConflict === 'retry' && typeof change !== 'function')
      throw new TypeError("onConflict: 'retry' calls a function again: pass the changes as a function")
    return this.transport.run(options, (scope) => {
      const record = {
        model: this.name,
        id,
        read: () => this.#read(scope, id),
        save: ({ source, version, changes }: UpdateDraft) =>
          this.#save(scope, {
            method: 'POST',
            path: toPath(id),
            body: { data: { ...changes, version } },
            headers: merges && source === 'values' ? MERGE_HEADERS : {},
            key,
          }),
      }
      return runUpdate(scope, record, { change, onConflict, merges })
    })
  }

  async remove(id: number, options: ClientWriteOptions & { version?: number } = {}): Promise<void> {
    await this.#write(options, { method: 'DELETE', path: toPath(id), query: { version: options.version } })
  }

  async search(query: LooseSearchQuery = {}, options?: CallOptions): Promise<LoosePage> {
    return this.transport.run(options, async (scope) =>
      toRecordPage(await this.#post(scope, '/search', toSearchBody(query))),
    )
  }

  async fetch(id: number, selection: object = {}, options?: CallOptions): Promise<WireRecord> {
    return this.transport.run(options, async (scope) => {
      const { body } = await this.#post(scope, `${toPath(id)}/fetch`, selection)
      return getFirst(body) as WireRecord
    })
  }

  async history(
    id: number,
    query: { offset?: number; limit?: number } = {},
    options?: CallOptions,
  ): Promise<LoosePage> {
    return this.transport.run(options, (scope) => this.#history(scope, id, query))
  }

  async revert(
    id: number,
    { to, version }: { to: number; version?: number },
    options: ClientWriteOptions = {},
  ): Promise<WireRecord> {
    return this.transport.run(options, async (scope) => {
      // The newest change has the current version, also that of a deleted record.
      const [newest] =
        version === undefined
          ? ((await this.#history(scope, id, { limit: 1 })).data as readonly Change[])
          : []
      const data = { to, version: version ?? newest?.version }
      const key = options.idempotencyKey ?? createIdempotencyKey()
      return this.#save(scope, { method: 'POST', path: `${toPath(id)}/revert`, body: { data }, key })
    })
  }

  async deleted(query: DeletedFindQuery = {}, options?: CallOptions): Promise<DeletedList> {
    return this.transport.run(options, async (scope) => {
      const request = { method: 'GET', path: `${this.#path}/deleted`, query: { ...query } }
      const { data, next } = (await this.transport.send(scope, request)).body as DeletedList
      return next === undefined ? { data } : { data, next }
    })
  }

  async changes(query: ChangesQuery = {}, options?: CallOptions) {
    return this.transport.run(options, (scope) =>
      fetchChanges(this.transport, scope, { ...query, model: this.name }),
    )
  }

  follow(options: FollowOptions = {}): AsyncIterableIterator<Change> {
    return followChanges(this.transport, { ...options, model: this.name })
  }

  /** Without an id, creates a record. */
  async upload(
    id: number | undefined,
    upload: LooseUpload & { data?: RecordValues },
    options: ClientWriteOptions = {},
  ): Promise<WireRecord> {
    const { version, data, ...file } = upload
    const record = id === undefined ? { ...data } : { ...data, id, version }
    return this.transport.run(options, async (scope) => {
      const body = await scope.race(createForm({ ...file, field: file.field, data: record }))
      const key = options.idempotencyKey ?? createIdempotencyKey()
      return this.#save(scope, { method: 'POST', path: '/upload', body, key })
    })
  }

  /** The time limit covers the beginning of the response; the content may take as long as it needs. */
  async download(
    id: number,
    field: string,
    options: CallOptions & { range?: FileRange } = {},
  ): Promise<FileDownload | undefined> {
    const request = {
      method: 'GET',
      path: `${this.#path}${toPath(id)}/${encodeText(field)}/download`,
      headers: { accept: '*/*', ...formatRange(options.range) },
    }
    return this.transport.begin(options, async (scope) =>
      createDownload(await this.transport.open(scope, request, isFileResponse), scope),
    )
  }

  async clear(
    id: number,
    field: string,
    options: ClientWriteOptions & { version?: number } = {},
  ): Promise<WireRecord> {
    const { version } = options
    const path = `${toPath(id)}/${encodeText(field)}/download`
    return this.#write(options, { method: 'DELETE', path, query: { version } })
  }

  async #findPage(scope: CallScope, query: LooseFindQuery): Promise<LoosePage> {
    const request = { method: 'GET', path: this.#path, query: toFindParameters(query) }
    return toRecordPage(await this.transport.send(scope, request))
  }

  async *#readAll(query: LooseFindQuery, options?: CallOptions): AsyncGenerator {
    for (let page = await this.find(query, options); ;) {
      yield* page.data
      const { next } = page
      if (!next) return
      page = await this.find({ ...query, ...next }, options)
      // Pages by offset repeat or skip records when others write. The past does not change.
      if (next.after === undefined && query.asOf === undefined && page.data.length > 0)
        throw createMissingCursorError()
    }
  }

  async #read(scope: CallScope, id: number, asOf?: string | number): Promise<WireRecord> {
    const request = { method: 'GET', path: `${this.#path}${toPath(id)}`, query: { asOf } }
    return getFirst((await this.transport.send(scope, request)).body) as WireRecord
  }

  async #history(scope: CallScope, id: number, query: QueryValues): Promise<LoosePage> {
    const request = { method: 'GET', path: `${this.#path}${toPath(id)}/history`, query }
    return toRecordPage(await this.transport.send(scope, request))
  }

  async #post(scope: CallScope, path: string, body: object): Promise<JsonAnswer> {
    return this.transport.send(scope, { method: 'POST', path: this.#path + path, body, isRead: true })
  }

  async #write(
    { idempotencyKey, ...options }: ClientWriteOptions,
    request: ClientRequest,
  ): Promise<WireRecord> {
    const key = idempotencyKey ?? createIdempotencyKey()
    return this.transport.run(options, (scope) => this.#save(scope, { ...request, key }))
  }

  async #save(scope: CallScope, request: ClientRequest): Promise<WireRecord> {
    const { body } = await this.transport.send(scope, { ...request, path: this.#path + request.path })
    return getFirst(body) as WireRecord
  }
}

/** An id that is not a whole number would lead to another path. */
function toPath(id: number): string {
  if (!/^\d+$/.test(String(id))) throw new TypeError(`An id is a whole number, not ${JSON.stringify(id)}`)
  return `/${id}`
}

function createMissingCursorError(): RequestError {
  const message =
    'The service sent no cursor: the values of the sort keys are too long. Sort by shorter fields, or find pages by offset'
  return createRequestError({ kind: 'unexpected', message })
}
