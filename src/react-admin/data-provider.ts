// A data provider for react-admin over the client. Imports only types of ra-core, which is an optional peer.
import type { DataProvider } from 'ra-core'
import type { Client } from '../client/client-types.js'
import { ConflictError, createRequestError } from '../client/errors.js'
import type { WireRecord } from '../wire.js'
import { findChanges, isRecordId, toId, toWritableRecord, type AdminValues } from './changes.js'
import { findRecords } from './find-pages.js'
import { buildQuery, readMeta, type ListParams } from './list-query.js'
import { toProviderError } from './provider-error.js'
import { ReferenceLoader } from './reference-loader.js'

export { ProviderError, type ProviderErrorBody } from './provider-error.js'
export type { ProviderMeta } from './list-query.js'

/** How often updateMany reads the versions again because others have changed one of the records. */
const MAX_ATTEMPTS = 5

interface ProviderContext {
  readonly client: Client
  readonly references: ReferenceLoader
}

interface OneParams {
  readonly id: unknown
  readonly meta?: unknown
  readonly signal?: AbortSignal | undefined
}

interface ManyParams {
  readonly ids: readonly unknown[]
  readonly meta?: unknown
  readonly signal?: AbortSignal | undefined
}

interface WriteParams {
  readonly data: AdminValues
  readonly meta?: unknown
}

type UpdateParams = WriteParams & OneParams & { readonly previousData?: AdminValues | undefined }

/**
 * Makes a data provider for react-admin. A resource is the name of a model.
 *
 * ```ts
 * const dataProvider = createDataProvider(connect('/'))
 * ```
 *
 * An update sends only the fields that the form changed, with the version that the form is based on. The service merges changes
 * of other fields. If both sides changed a field, the call rejects with a {@link ProviderError} of status 409, whose `body`
 * has `base`, `ours`, `theirs` and `fields`. Use `mutationMode="pessimistic"`: the other modes leave the form before the
 * service has answered.
 */
export function createDataProvider<S>(client: Client<S>): DataProvider {
  // A resource is any text at run time.
  const untyped = client as unknown as Client
  const context = { client: untyped, references: new ReferenceLoader(untyped) }
  const verbs = Object.entries(VERBS).map(([name, verb]) => [name, bindVerb(context, verb as Verb)])
  return {
    ...(Object.fromEntries(verbs) as Pick<DataProvider, keyof typeof VERBS>),
    supportAbortSignal: true,
  }
}

type Verb = (context: ProviderContext, model: string, params: unknown) => Promise<unknown>

function bindVerb(context: ProviderContext, verb: Verb) {
  return async (model: string, params: { readonly data?: AdminValues }): Promise<unknown> => {
    try {
      return await verb(context, model, params)
    } catch (error) {
      throw toProviderError(error, params.data)
    }
  }
}

const VERBS = {
  getList,
  getOne,
  getMany,
  getManyReference: getList,
  create: createSingle,
  update: updateSingle,
  updateMany: updateSeveral,
  delete: removeSingle,
  deleteMany: removeSeveral,
}

async function getList({ client }: ProviderContext, model: string, params: ListParams) {
  const query = buildQuery(params)
  const { data, total, hasNext } = await findRecords(client, model, query, { signal: params.signal })
  if (total !== undefined) return { data, total }
  return { data, pageInfo: { hasNextPage: hasNext, hasPreviousPage: (query.offset ?? 0) > 0 } }
}

async function getOne({ client }: ProviderContext, model: string, { id, meta, signal }: OneParams) {
  const { fields, asOf } = readMeta(meta)
  const records = client.model(model)
  // A record of the past is read with all fields.
  const data =
    fields && asOf === undefined
      ? await records.fetch(toRecordId(model, id), { fields }, { signal })
      : await records.read(toRecordId(model, id), { asOf }, { signal })
  return { data }
}

async function getMany({ references }: ProviderContext, model: string, { ids, meta, signal }: ManyParams) {
  // react-admin asks for whatever a record holds. Only ids lead to records.
  const known = ids.map(toId).filter(isRecordId)
  return { data: await references.load(model, { ids: known, fields: readMeta(meta).fields, signal }) }
}

async function createSingle({ client }: ProviderContext, model: string, { data, meta }: WriteParams) {
  const { idempotencyKey } = readMeta(meta)
  return { data: await client.model(model).create(toWritableRecord(data), { idempotencyKey }) }
}

async function updateSingle({ client }: ProviderContext, model: string, params: UpdateParams) {
  const id = toRecordId(model, params.id)
  const { idempotencyKey } = readMeta(params.meta)
  const records = client.model(model)
  const base = await findBase(client, model, params)
  if (!base)
    return {
      data: await records.update(id, (record) => findChanges(params.data, record), { idempotencyKey }),
    }
  const changes = findChanges(params.data, base)
  // An update without changes would raise the version.
  if (Object.keys(changes).length === 0) return { data: await records.read(id) }
  return { data: await records.update(id, { ...changes, version: base.version }, { idempotencyKey }) }
}

/**
 * Finds the record that a form was filled from. `previousData` comes from react-admin's cache, which may be newer than the form.
 * Compared with it, the changes of others would look like changes of the form, undone.
 */
async function findBase(
  client: Client,
  model: string,
  { id, data, previousData }: UpdateParams,
): Promise<WireRecord | undefined> {
  const previous = previousData as WireRecord | undefined
  const version = data['version'] ?? previous?.version
  if (typeof version !== 'number') return undefined
  return previous?.version === version
    ? previous
    : client.model(model).read(toRecordId(model, id), { asOf: version })
}

async function updateSeveral(
  { client }: ProviderContext,
  model: string,
  { ids, data, meta }: WriteParams & ManyParams,
) {
  const { versions: given, idempotencyKey } = readMeta(meta)
  const changes = toWritableRecord(data)
  if (ids.length === 0) return { data: ids }
  for (let attempt = 1; ; attempt++) {
    const versions = given ?? (await findVersions(client, model, ids))
    const requests = [...new Set(ids)].map((id) => ({
      op: 'update' as const,
      model,
      id: toRecordId(model, id),
      data: changes,
      // The service names a record that does not exist.
      version: versions[String(id)] ?? 0,
    }))
    try {
      await client.batch(requests, { idempotencyKey })
      return { data: ids }
    } catch (error) {
      const isRace = error instanceof ConflictError && given === undefined
      if (!isRace || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

async function findVersions(
  client: Client,
  model: string,
  ids: readonly unknown[],
): Promise<Record<string, number>> {
  const records = await new ReferenceLoader(client).load(model, {
    ids: ids.map((id) => toRecordId(model, id)),
    fields: ['id'],
  })
  return Object.fromEntries(records.map(({ id, version }) => [id, version]))
}

async function removeSingle(
  { client }: ProviderContext,
  model: string,
  { id, previousData, meta }: Omit<UpdateParams, 'data'>,
) {
  const { idempotencyKey } = readMeta(meta)
  const version = previousData?.['version'] as number | undefined
  await client.model(model).remove(toRecordId(model, id), { version, idempotencyKey })
  return { data: previousData ?? { id } }
}

async function removeSeveral({ client }: ProviderContext, model: string, { ids, meta }: ManyParams) {
  const { versions = {}, idempotencyKey } = readMeta(meta)
  if (ids.length === 0) return { data: ids }
  const requests = [...new Set(ids)].map((id) => {
    const version = versions[String(id)]
    const request = { op: 'delete' as const, model, id: toRecordId(model, id) }
    return version === undefined ? request : { ...request, version }
  })
  await client.batch(requests, { idempotencyKey })
  return { data: ids }
}

/** An id comes from the address of a page, so it may be any text. */
function toRecordId(model: string, value: unknown): number {
  const id = toId(value)
  if (isRecordId(id)) return id
  throw createRequestError({
    kind: 'not-found',
    message: `${model} ${String(value)} does not exist`,
    status: 404,
  })
}
