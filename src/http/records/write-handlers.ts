import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { isObject } from '../../model/values/value.js'
import type { Principal } from '../../service/context/principal.js'
import type { Context } from '../../service/context/context.js'
import { requireWritableModel } from '../../service/access/request-checks.js'
import { updateMass } from '../../service/records/mass-update.js'
import { removeListedRecords, removeRecord } from '../../service/records/remove.js'
import { createRecord, saveRecords, updateRecord } from '../../service/records/save.js'
import type { RemoveOptions, SaveOptions, UpdateOptions } from '../../wire.js'
import { readDataObject, readFieldSelection, readPatch, readRecordList } from '../request/bodies.js'
import { requireContext, readRouteId, readRouteModel } from '../route/guard.js'
import type { Protocol } from '../compat/protocol.js'
import {
  hasPreference,
  isMerged,
  readBaseVersion,
  readMergePreference,
  setMergeApplied,
  setPreferenceApplied,
} from '../request/preferences.js'
import { readVersionParameter } from '../request/parameters.js'
import { buildModelPath, sendCreated, sendRecord, sendWriteResult } from './record-responses.js'
import { readIfMatch, readIdempotencyKey, refuseIfMatch } from '../request/headers.js'
import type { SentReply } from '../response/send.js'
import type { HttpSettings } from '../settings.js'
import type { RouteContext, RouteHandler } from '../route/resource.js'

type WriteVerb = 'create' | 'update' | 'patch' | 'save' | 'updateMass' | 'remove' | 'removeAll'

const RETURN_REPRESENTATION = 'return=representation'

/** A write request with the values that its handler needs. */
interface WriteExchange {
  readonly settings: HttpSettings
  readonly protocol: Protocol
  readonly principal: Principal
  readonly context: Context
  readonly model: Model
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

export function createWriteHandlers({
  app,
  protocol,
  settings,
}: RouteContext): Record<WriteVerb, RouteHandler> {
  const withExchange =
    (handle: (exchange: WriteExchange) => Promise<SentReply>): RouteHandler =>
    async (request, reply) => {
      const model = readRouteModel(app, request)
      const context = requireContext(app, request)
      return handle({ settings, protocol, principal: context.principal, context, model, request, reply })
    }
  return {
    create: withExchange(async (exchange) => handleSave(exchange, protocol.createMayUpdate)),
    save: withExchange(async (exchange) => handleSave(exchange, true)),
    update: withExchange(async (exchange) => {
      const { model, request } = exchange
      const id = readRouteId(model, request)
      const data = convertRecord(exchange, readDataObject(request.body))
      return handleUpdate(exchange, id, data, { ...readSaveOptions(exchange), ...readIfMatch(request) })
    }),
    patch: withExchange(async (exchange) => {
      const { model, request } = exchange
      const id = readRouteId(model, request)
      const data = convertRecord(exchange, readPatch(request))
      return handleUpdate(exchange, id, data, {
        ...readIdempotencyKey(request),
        ...readMergePreference(request),
        ...readIfMatch(request),
        patch: true,
      })
    }),
    updateMass: withExchange(handleMassUpdate),
    remove: withExchange(handleRemove),
    removeAll: withExchange(async ({ context, model, request, reply }) => {
      refuseIfMatch(request)
      const sent = readRecordList(request.body)
      requireWritableModel(model)
      return sendWriteResult(
        reply,
        await removeListedRecords(context, model, sent, readIdempotencyKey(request)),
      )
    }),
  }
}

/** Saves one record in `data` or several in `records`. `mayUpdate` allows updates of records that have an id. */
async function handleSave(exchange: WriteExchange, mayUpdate: boolean): Promise<SentReply> {
  const { settings, context, model, request, reply } = exchange
  const { body } = request
  const isList = isObject(body) && body['records'] !== undefined && body['records'] !== null
  if (isList && (body['data'] ?? null) !== null)
    throw new VersoError('bad-request', 'The body has both "data" and "records": send one of them')
  if (isList) {
    const sent = readRecordList(body)
    if (!mayUpdate) refuseIds(sent)
    return handleSaveList(exchange, sent)
  }
  const data = convertRecord(exchange, readDataObject(body))
  const options = { ...readSaveOptions(exchange), ...readIfMatch(request) }
  const id = mayUpdate && isObject(data) ? (data['id'] ?? null) : null
  if (id === null && options.ifMatch !== undefined)
    throw new VersoError('bad-request', 'A new record has no version yet: omit If-Match')
  if (id === null) {
    const created = await createRecord(context, requireWritableModel(model), data, options)
    return sendCreated(reply, buildModelPath(settings, model), created)
  }
  if (typeof id !== 'number') throw new VersoError('bad-request', 'data.id must be a whole number from 1')
  return handleUpdate(exchange, id, data, options)
}

async function handleSaveList(exchange: WriteExchange, sent: readonly unknown[]): Promise<SentReply> {
  const { context, model, request, reply } = exchange
  refuseIfMatch(request)
  const drafts = sent.map((data) => convertRecord(exchange, data))
  const saved = await saveRecords(context, requireWritableModel(model), drafts, readSaveOptions(exchange))
  if (drafts.some((data, index) => isMerged(readBaseVersion(data), saved.data[index]))) setMergeApplied(reply)
  return sendWriteResult(reply, saved)
}

async function handleUpdate(
  { context, model, reply }: WriteExchange,
  id: number,
  data: unknown,
  options: UpdateOptions,
): Promise<SentReply> {
  const updated = await updateRecord(context, requireWritableModel(model), { id, data }, options)
  if (options.merge && isMerged(options.ifMatch ?? readBaseVersion(data), updated.data))
    setMergeApplied(reply)
  return sendRecord(reply, updated)
}

async function handleMassUpdate(exchange: WriteExchange): Promise<SentReply> {
  const { protocol, principal, context, model, request, reply } = exchange
  refuseIfMatch(request)
  const [values, ...others] = readRecordList(request.body)
  if (others.length > 0)
    throw new VersoError('bad-request', 'A mass update takes one object in "records": the values to set')
  const { data, expected } = request.body as { data?: unknown; expected?: unknown }
  const search = protocol.convertSearch(principal, model, { data })
  const massUpdate = { data: search.request?.data, values: convertRecord(exchange, values), expected }
  const { data: total, replayed } = await updateMass(
    context,
    requireWritableModel(model),
    massUpdate,
    readIdempotencyKey(request),
  )
  return sendWriteResult(reply, { data: [], replayed }, { total })
}

async function handleRemove({ protocol, context, model, request, reply }: WriteExchange): Promise<SentReply> {
  const id = readRouteId(model, request)
  const options: RemoveOptions = {
    ...readIdempotencyKey(request),
    ...readIfMatch(request),
    ...readVersionParameter(request, protocol),
  }
  const { data, replayed } = await removeRecord(context, requireWritableModel(model), id, options)
  return sendWriteResult(reply, {
    data: [prefersRepresentation(request, reply) ? { id: data } : data],
    replayed,
  })
}

function convertRecord({ protocol, principal, model }: WriteExchange, data: unknown): unknown {
  return protocol.convertRecord(principal, model, data)
}

function readSaveOptions({ protocol, principal, model, request }: WriteExchange): SaveOptions {
  const fields = readFieldSelection(request.body)
  return {
    ...readIdempotencyKey(request),
    ...(request.headers.prefer === undefined ? {} : readMergePreference(request)),
    ...(fields ? { returning: protocol.convertFields(principal, model, fields) } : {}),
  }
}

/** A record with an id is meant as an update, so a create rejects it. */
function refuseIds(records: readonly unknown[]): void {
  const index = records.findIndex((each) => isObject(each) && (each['id'] ?? null) !== null)
  if (index >= 0)
    throw new VersoError(
      'bad-request',
      `records[${index}] has an id, but PUT only creates records: use POST to update records`,
    )
}

/** Some clients expect an object in `data` also after a delete. */
function prefersRepresentation(request: FastifyRequest, reply: FastifyReply): boolean {
  const isPreferred = hasPreference(request, RETURN_REPRESENTATION)
  if (isPreferred) setPreferenceApplied(reply, RETURN_REPRESENTATION)
  return isPreferred
}
