import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { recordsForPrincipal } from '../../service/records/records.js'
import type { RemoveOptions, SaveOptions, UpdateOptions } from '../../wire.js'
import { readDataObject, readPatch } from '../request/bodies.js'
import { requirePrincipal } from '../route/guard.js'
import type { Protocol } from '../compat/protocol.js'
import {
  isMerged,
  readMergePreference,
  setMergeApplied,
  readBaseVersion,
} from '../request/merge-preference.js'
import { readVersionParameter } from '../request/parameters.js'
import { hasPreference, setPreferenceApplied } from '../request/preferences.js'
import { sendRecord, sendWriteResult } from './record-responses.js'
import {
  readRouteId,
  readIfMatch,
  readIdempotencyKey,
  readRecordList,
  readRouteModel,
  refuseIfMatch,
  readFieldSelection,
} from '../route/record-request.js'
import type { RouteHandler } from '../route/resource.js'

type WriteVerb = 'create' | 'update' | 'patch' | 'save' | 'updateMass' | 'remove' | 'removeAll'

const RETURN_REPRESENTATION = 'return=representation'

export function createWriteHandlers(app: App, protocol: Protocol): Record<WriteVerb, RouteHandler> {
  const records = (request: FastifyRequest) => recordsForPrincipal(app, requirePrincipal(request))
  const readSaveOptions = (model: Model, request: FastifyRequest): SaveOptions => {
    const fields = readFieldSelection(request.body)
    return {
      ...readIdempotencyKey(request),
      ...readMergePreference(request),
      ...(fields ? { wanted: protocol.convertFields(requirePrincipal(request), model, fields) } : {}),
    }
  }
  const saveAll = async (
    model: Model,
    sent: readonly unknown[],
    request: FastifyRequest,
    reply: FastifyReply,
  ) => {
    refuseIfMatch(request)
    const all = sent.map((data) => protocol.convertRecord(requirePrincipal(request), model, data))
    const written = await records(request).save(model.name, all, readSaveOptions(model, request))
    if (all.some((data, index) => isMerged(readBaseVersion(data), written.data[index])))
      setMergeApplied(reply)
    return sendWriteResult(reply, written)
  }
  const updateOne = async (
    model: Model,
    id: number,
    data: unknown,
    options: UpdateOptions,
    [request, reply]: Parameters<RouteHandler>,
  ) => {
    const written = await records(request).update(model.name, id, data, options)
    if (isMerged(options.ifMatch ?? readBaseVersion(data), written.data)) setMergeApplied(reply)
    return sendRecord(reply, written)
  }
  /** Saves one record in `data` or several in `records`. `mayUpdate` allows updates of records that have an id. */
  const save = async (request: FastifyRequest, reply: FastifyReply, mayUpdate: boolean) => {
    const model = readRouteModel(app, request)
    const { body } = request
    const isList = isObject(body) && body['records'] !== undefined && body['records'] !== null
    if (isList && (body['data'] ?? null) !== null)
      throw new VersoError('bad-request', 'The body has both "data" and "records"')
    if (isList) {
      const all = readRecordList(body)
      if (!mayUpdate) refuseIds(all)
      return saveAll(model, all, request, reply)
    }
    const data = protocol.convertRecord(requirePrincipal(request), model, readDataObject(body))
    const options = { ...readSaveOptions(model, request), ...readIfMatch(request) }
    const id = mayUpdate && isObject(data) ? (data['id'] ?? null) : null
    if (id === null && options.ifMatch !== undefined)
      throw new VersoError('bad-request', 'A new record has no version yet: leave If-Match out')
    if (id === null) return sendRecord(reply, await records(request).create(model.name, data, options))
    if (typeof id !== 'number') throw new VersoError('bad-request', 'data.id must be a whole number from 1')
    return updateOne(model, id, data, options, [request, reply])
  }
  return {
    create: async (request, reply) => save(request, reply, protocol.createMayUpdate),
    save: async (request, reply) => save(request, reply, true),
    update: async (request, reply) => {
      const model = readRouteModel(app, request)
      const id = readRouteId(model, request)
      const data = protocol.convertRecord(requirePrincipal(request), model, readDataObject(request.body))
      const options = { ...readSaveOptions(model, request), ...readIfMatch(request) }
      return updateOne(model, id, data, options, [request, reply])
    },
    patch: async (request, reply) => {
      const model = readRouteModel(app, request)
      const id = readRouteId(model, request)
      const data = protocol.convertRecord(requirePrincipal(request), model, readPatch(request))
      const options = {
        ...readIdempotencyKey(request),
        ...readMergePreference(request),
        ...readIfMatch(request),
        patch: true,
      }
      return updateOne(model, id, data, options, [request, reply])
    },
    updateMass: async (request, reply) => {
      const model = readRouteModel(app, request)
      refuseIfMatch(request)
      const [values, ...others] = readRecordList(request.body)
      if (others.length > 0)
        throw new VersoError('bad-request', 'A mass update takes one record in "records": the values to set')
      const { data, expected } = request.body as { data?: unknown; expected?: unknown }
      const search = protocol.convertSearch(requirePrincipal(request), model, { data })
      const { data: total, replayed } = await records(request).updateMass(
        model.name,
        {
          data: search.request?.data,
          values: protocol.convertRecord(requirePrincipal(request), model, values),
          expected,
        },
        readIdempotencyKey(request),
      )
      return sendWriteResult(reply, { data: [], replayed }, { total })
    },
    remove: async (request, reply) => {
      const model = readRouteModel(app, request)
      const id = readRouteId(model, request)
      const options: RemoveOptions = {
        ...readIdempotencyKey(request),
        ...readIfMatch(request),
        ...readVersionParameter(request, protocol),
      }
      const { data, replayed } = await records(request).remove(model.name, id, options)
      return sendWriteResult(reply, {
        data: [prefersRepresentation(request, reply) ? { id: data } : data],
        replayed,
      })
    },
    removeAll: async (request, reply) => {
      const model = readRouteModel(app, request)
      refuseIfMatch(request)
      const all = readRecordList(request.body)
      return sendWriteResult(
        reply,
        await records(request).removeAll(model.name, all, readIdempotencyKey(request)),
      )
    },
  }
}

/** A record with an id is meant as an update, so a create rejects it. */
function refuseIds(records: readonly unknown[]): void {
  const index = records.findIndex((each) => isObject(each) && (each['id'] ?? null) !== null)
  if (index >= 0)
    throw new VersoError(
      'bad-request',
      `records[${index}] has an id: to change records as well, send them with POST`,
    )
}

/** Some clients expect an object in `data` also after a delete. */
function prefersRepresentation(request: FastifyRequest, reply: FastifyReply): boolean {
  const isPreferred = hasPreference(request, RETURN_REPRESENTATION)
  if (isPreferred) setPreferenceApplied(reply, RETURN_REPRESENTATION)
  return isPreferred
}
