// Calls every documented operation of a live server, as a client that knows only the document and some records.
import type { ApiDocument, Call } from './api-document.js'
import { findDifferences, receive, type ReceivedAnswer } from './check-answer.js'

/** Sends a request with the credentials of the user. */
export type Sender = (method: string, path: string, init?: SentBody) => Promise<Response>

export interface SentBody {
  readonly json?: unknown
  readonly form?: FormData
  readonly headers?: Readonly<Record<string, string>>
}

export interface ExercisedModel {
  readonly name: string
  /** Creates a record, or returns the id of an existing one. */
  readonly makeRecord: (isNew: boolean) => Promise<number>
  /** The data of a create; undefined if no request can create a record. */
  readonly makeData: () => Promise<unknown>
  readonly versionOf: (id: number) => Promise<number>
}

export interface Exercise {
  /** The operations that were called. */
  readonly called: readonly string[]
  /** The operations that succeeded at least once, without the names of models. */
  readonly succeeded: ReadonlySet<string>
  readonly differences: readonly string[]
  readonly statuses: ReadonlyMap<number, number>
}

/** What an operation on a model sends, by the beginning of its id. */
type Request = (model: ExercisedModel) => Promise<{ readonly path?: string } & SentBody>

const withRecord = async (
  model: ExercisedModel,
  build: (id: number, version: number) => SentBody & { readonly path?: string },
  isNew = false,
) => {
  const id = await model.makeRecord(isNew)
  return build(id, await model.versionOf(id))
}
const onRecord =
  (build: (id: number, version: number) => SentBody & { readonly path?: string }): Request =>
  async (model) =>
    withRecord(model, (id, version) => ({ path: String(id), ...build(id, version) }))

const upload = (data: object) => {
  const form = new FormData()
  form.set('request', JSON.stringify({ data }))
  form.set('file', new Blob(['content']), 'a.txt')
  return form
}

const REQUESTS: Readonly<Record<string, Request>> = {
  find: async () => ({}),
  search: async () => ({ json: { limit: 5 } }),
  read: onRecord(() => ({})),
  fetch: onRecord(() => ({ json: { fields: ['id'] } })),
  details: onRecord(() => ({})),
  copy: onRecord(() => ({})),
  permitted: async () => ({}),
  verify: async (model) => withRecord(model, (id, version) => ({ json: { data: { id, version } } })),
  export: async () => ({ json: { fields: ['id'] } }),
  history: onRecord(() => ({})),
  atVersion: onRecord(() => ({})),
  deleted: async () => ({}),
  create: async (model) => ({
    json: { data: await model.makeData() },
    headers: { 'idempotency-key': `create ${model.name}` },
  }),
  save: async (model) => withRecord(model, (id, version) => ({ json: { data: { id, version } } })),
  update: onRecord((id, version) => ({
    json: { data: { id, version } },
    headers: { prefer: 'merge=fields' },
  })),
  patch: onRecord((_, version) => ({
    json: {},
    headers: { 'if-match': `"${version}"`, 'content-type': 'application/merge-patch+json' },
  })),
  remove: async (model) =>
    withRecord(model, (id) => ({ path: String(id), headers: { prefer: 'return=representation' } }), true),
  bulkRemove: async (model) =>
    withRecord(model, (id, version) => ({ json: { records: [{ id, version }] } }), true),
  massUpdate: async (model) =>
    withRecord(model, (id) => ({ json: { data: { _domain: `id = ${id}` }, records: [{ title: 'x' }] } })),
  revert: onRecord((_, version) => ({ json: { data: { version, to: 0 } } })),
  upload: async (model) => withRecord(model, (id, version) => ({ form: upload({ id, version }) })),
  download: onRecord(() => ({})),
  clear: onRecord((_, version) => ({ headers: { 'if-match': `"${version}"` } })),
}

/** Splits an operation id such as `findCrmContact`. */
function findRequest(id: string): string | undefined {
  return Object.keys(REQUESTS).find((stem) => id.startsWith(stem) && /^[A-Z]/.test(id.slice(stem.length)))
}

export async function exerciseModels(
  api: ApiDocument,
  models: readonly ExercisedModel[],
  send: Sender,
): Promise<Exercise> {
  const seen = new Recorder(api)
  for (const [index, model] of models.entries()) {
    const calls = api.calls.filter(({ operation }) => operation.tags[0] === model.name)
    // Deletes come last, so that the others find records.
    for (const call of calls.sort((a, b) => rank(a) - rank(b))) {
      const { operationId } = call.operation
      const stem = findRequest(operationId)
      if (stem === undefined) throw new Error(`no request for the operation ${operationId}`)
      const { path: id = '', ...body } = await (REQUESTS[stem] as Request)(model)
      const path = fillPath(call, id)
      seen.add(call, stem, await receive(await send(call.method, path, body)))
      // The same request for a record that does not exist. A few models suffice.
      if (call.path.includes('{id}') && (index % 5 === 0 || call.path.includes('{field}')))
        seen.add(call, stem, await receive(await send(call.method, fillPath(call, '999999'), body)))
    }
  }
  return seen
}

export async function exerciseGeneral(
  api: ApiDocument,
  requests: Readonly<Record<string, () => Promise<readonly [path: string, body?: SentBody]>>>,
  send: Sender,
): Promise<Exercise> {
  const seen = new Recorder(api)
  for (const [id, build] of Object.entries(requests)) {
    const call = api.find(id)
    const [path, body = {}] = await build()
    seen.add(call, id, await receive(await send(call.method, path, body)))
  }
  return seen
}

class Recorder implements Exercise {
  readonly #called = new Set<string>()
  readonly succeeded = new Set<string>()
  readonly differences: string[] = []
  readonly statuses = new Map<number, number>()

  constructor(private readonly api: ApiDocument) {}

  get called(): readonly string[] {
    return [...this.#called]
  }

  add(call: Call, stem: string, answer: ReceivedAnswer): void {
    this.#called.add(call.operation.operationId)
    const isOk = answer.status < 400 && !answer.text.startsWith('{"status":-')
    if (isOk) this.succeeded.add(stem)
    this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1)
    this.differences.push(...findDifferences(this.api, call, answer))
  }
}

function rank({ operation }: Call): number {
  return /^(remove|bulkRemove)/.test(operation.operationId) ? 1 : 0
}

function fillPath({ path, operation }: Call, id: string): string {
  const field = operation.parameters?.find(({ name }) => name === 'field')
  const [first = ''] = (field?.schema['enum'] ?? []) as readonly string[]
  return path.replace('{id}', id).replace('{version}', '0').replace('{field}', first)
}
