import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { recordsForPrincipal } from '../../service/records/records.js'
import type { RemoveOptions, SaveOptions, UpdateOptions } from '../../wire.js'
import { dataOf, patchOf } from '../request/bodies.js'
import { callerOf } from '../route/guard.js'
import type { Habits } from '../compat/protocol.js'
import { isMerged, mergeOf, sayMerged, versionIn } from '../request/merge-preference.js'
import { versionOf } from '../request/parameters.js'
import { prefers, sayApplied } from '../request/preferences.js'
import { sendRecord, sendWritten } from './record-answers.js'
import { idOf, ifMatchOf, keyOf, listOf, modelOf, refuseIfMatch, wantedIn } from '../route/record-request.js'
import type { Handler } from '../route/resource.js'

type Verb = 'create' | 'update' | 'patch' | 'save' | 'updateMass' | 'remove' | 'removeAll'

const REPRESENTATION = 'return=representation'

export function makeWriting(app: App, habits: Habits): Record<Verb, Handler> {
  const records = (request: FastifyRequest) => recordsForPrincipal(app, callerOf(request))
  const optionsOf = (model: Model, request: FastifyRequest): SaveOptions => {
    const wanted = wantedIn(request.body)
    return {
      ...keyOf(request),
      ...mergeOf(request),
      ...(wanted ? { wanted: habits.wanted(callerOf(request), model, wanted) } : {}),
    }
  }
  const saveAll = async (
    model: Model,
    sent: readonly unknown[],
    request: FastifyRequest,
    reply: FastifyReply,
  ) => {
    refuseIfMatch(request)
    const all = sent.map((data) => habits.record(callerOf(request), model, data))
    const written = await records(request).save(model.name, all, optionsOf(model, request))
    if (all.some((data, index) => isMerged(versionIn(data), written.data[index]))) sayMerged(reply)
    return sendWritten(reply, written)
  }
  const updateOne = async (
    model: Model,
    id: number,
    data: unknown,
    options: UpdateOptions,
    [request, reply]: Parameters<Handler>,
  ) => {
    const written = await records(request).update(model.name, id, data, options)
    if (isMerged(options.ifMatch ?? versionIn(data), written.data)) sayMerged(reply)
    return sendRecord(reply, written)
  }
  /** One record, or several as `records`; `mayUpdate` says what becomes of those that have an id. */
  const save = async (request: FastifyRequest, reply: FastifyReply, mayUpdate: boolean) => {
    const model = modelOf(app, request)
    const { body } = request
    const isList = isObject(body) && body['records'] !== undefined && body['records'] !== null
    if (isList && (body['data'] ?? null) !== null)
      throw new VersoError('bad-request', 'The body has both "data" and "records"')
    if (isList) {
      const all = listOf(body)
      if (!mayUpdate) refuseIds(all)
      return saveAll(model, all, request, reply)
    }
    const data = habits.record(callerOf(request), model, dataOf(body))
    const options = { ...optionsOf(model, request), ...ifMatchOf(request) }
    const id = mayUpdate && isObject(data) ? (data['id'] ?? null) : null
    if (id === null && options.ifMatch !== undefined)
      throw new VersoError('bad-request', 'A new record has no version yet: leave If-Match out')
    if (id === null) return sendRecord(reply, await records(request).create(model.name, data, options))
    if (typeof id !== 'number') throw new VersoError('bad-request', 'data.id must be a whole number from 1')
    return updateOne(model, id, data, options, [request, reply])
  }
  return {
    create: async (request, reply) => save(request, reply, habits.createsSave),
    save: async (request, reply) => save(request, reply, true),
    update: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const data = habits.record(callerOf(request), model, dataOf(request.body))
      const options = { ...optionsOf(model, request), ...ifMatchOf(request) }
      return updateOne(model, id, data, options, [request, reply])
    },
    patch: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const data = habits.record(callerOf(request), model, patchOf(request))
      const options = { ...keyOf(request), ...mergeOf(request), ...ifMatchOf(request), patch: true }
      return updateOne(model, id, data, options, [request, reply])
    },
    updateMass: async (request, reply) => {
      const model = modelOf(app, request)
      refuseIfMatch(request)
      const [values, ...others] = listOf(request.body)
      if (others.length > 0)
        throw new VersoError('bad-request', 'A mass update takes one record in "records": the values to set')
      const { data, expected } = request.body as { data?: unknown; expected?: unknown }
      const asked = habits.search(callerOf(request), model, { data })
      const { data: total, replayed } = await records(request).updateMass(
        model.name,
        { data: asked.request?.data, values: habits.record(callerOf(request), model, values), expected },
        keyOf(request),
      )
      return sendWritten(reply, { data: [], replayed }, { total })
    },
    remove: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const options: RemoveOptions = {
        ...keyOf(request),
        ...ifMatchOf(request),
        ...versionOf(request, habits),
      }
      const { data, replayed } = await records(request).remove(model.name, id, options)
      return sendWritten(reply, { data: [wantsObject(request, reply) ? { id: data } : data], replayed })
    },
    removeAll: async (request, reply) => {
      const model = modelOf(app, request)
      refuseIfMatch(request)
      const all = listOf(request.body)
      return sendWritten(reply, await records(request).removeAll(model.name, all, keyOf(request)))
    },
  }
}

/** A new record has no id: whoever sends one meant an update. */
function refuseIds(all: readonly unknown[]): void {
  const index = all.findIndex((each) => isObject(each) && (each['id'] ?? null) !== null)
  if (index >= 0)
    throw new VersoError(
      'bad-request',
      `records[${index}] has an id: to change records as well, send them with POST`,
    )
}

/** Some clients take whatever is in `data` for an object, also what was deleted. */
function wantsObject(request: FastifyRequest, reply: FastifyReply): boolean {
  const isWanted = prefers(request, REPRESENTATION)
  if (isWanted) sayApplied(reply, REPRESENTATION)
  return isWanted
}
