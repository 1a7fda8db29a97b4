import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { PermissionAction } from '../../model/access/permissions.js'
import { FIND_PARAMETERS } from '../../model/query/search.js'
import { isObject } from '../../model/values/value.js'
import { listPermittedActions } from '../../service/access/request-checks.js'
import { stringifyRecord } from '../../service/context/answer-limits.js'
import { findByQuery, readRecord, searchByRequest } from '../../service/records/read.js'
import { recordsForPrincipal } from '../../service/records/records.js'
import { readDataObject, readFieldSelection } from '../request/bodies.js'
import {
  requireContext,
  requirePrincipal,
  parseOptionalRecordId,
  readRouteId,
  readRouteModel,
} from '../route/guard.js'
import {
  DETAILS_PARAMETERS,
  PERMS_PARAMETERS,
  READ_PARAMETERS,
  readWithParameters,
  type QueryParameters,
} from '../request/parameters.js'
import {
  buildModelPath,
  buildRecordBody,
  wrapRecordJson,
  buildPageLinks,
  sendJsonPage,
  sendLinkedPage,
} from './record-responses.js'
import { JSON_TYPE, sendCacheable, sendData, sendJson, setHeader } from '../response/send.js'
import type { RouteContext, RouteHandler } from '../route/resource.js'

type ReadVerb = 'find' | 'search' | 'read' | 'fetch' | 'copy' | 'details' | 'verify' | 'perms'

/** Names of the actions on the wire. */
const ACTION_WORDS: Readonly<Record<PermissionAction, string>> = {
  read: 'READ',
  create: 'CREATE',
  update: 'WRITE',
  remove: 'REMOVE',
  export: 'EXPORT',
}

function requireAction(permittedWords: readonly string[], action: unknown): void {
  const words = Object.values(ACTION_WORDS)
  const requested = typeof action === 'string' ? action.toUpperCase() : ''
  const word = requested === 'UPDATE' ? ACTION_WORDS.update : requested
  if (!words.includes(word))
    throw new VersoError('bad-request', `action must be one of ${words.join(', ').toLowerCase()}`)
  if (!permittedWords.includes(word))
    throw new VersoError('forbidden', `You do not have the ${word.toLowerCase()} permission here`)
}

export function createReadHandlers({
  app,
  protocol,
  settings,
}: RouteContext): Record<ReadVerb, RouteHandler> {
  const bindRecords = (request: FastifyRequest) => recordsForPrincipal(app, requirePrincipal(request))
  return {
    find: async (request, reply) => {
      const model = readRouteModel(app, request)
      const query = protocol.filterParameters(request.query as QueryParameters, FIND_PARAMETERS)
      const page = await findByQuery(requireContext(app, request), model, query)
      return sendLinkedPage(reply, page, buildPageLinks(buildModelPath(settings, model), page, query))
    },
    search: async (request, reply) => {
      const model = readRouteModel(app, request)
      const search = protocol.convertSearch(requirePrincipal(request), model, request.body ?? undefined)
      const page = await searchByRequest(requireContext(app, request), model, search)
      return sendJsonPage(reply, page)
    },
    fetch: async (request, reply) => {
      const model = readRouteModel(app, request)
      const id = readRouteId(model, request)
      const { body } = request
      if (body !== undefined && body !== null && !isObject(body))
        throw new VersoError('bad-request', 'The body must be a JSON object with "fields" or "related"')
      const fields = protocol.convertFields(requirePrincipal(request), model, readFieldSelection(body) ?? {})
      const [text, etag] = buildRecordBody(await bindRecords(request).fetch(model.name, id, fields))
      setHeader(reply, 'etag', etag)
      return sendJson(reply, text)
    },
    read: async (request, reply) => {
      const model = readRouteModel(app, request)
      const id = readRouteId(model, request)
      const { recordAt, current } = await readWithParameters(
        request,
        protocol,
        READ_PARAMETERS,
        async ({ asOf }) =>
          asOf === undefined
            ? { current: await readRecord(requireContext(app, request), model, id) }
            : { recordAt: await bindRecords(request).readAt(model.name, id, asOf) },
      )
      if (!current) return sendJson(reply, stringifyRecord(app, { status: 0, data: [recordAt] }))
      const [body, etag] = wrapRecordJson(current)
      return sendCacheable(reply, JSON_TYPE, body, etag)
    },
    copy: async (request, reply) => {
      const model = readRouteModel(app, request)
      const copy = await bindRecords(request).copy(model.name, readRouteId(model, request))
      return sendJson(reply, stringifyRecord(app, { status: 0, data: [copy] }))
    },
    /** Returns the name field of a record, or the field in the parameter `name`. */
    details: async (request, reply) => {
      const model = readRouteModel(app, request)
      const id = readRouteId(model, request)
      const record = await readWithParameters(
        request,
        protocol,
        DETAILS_PARAMETERS,
        async ({ name = model.nameField }) =>
          bindRecords(request).fetch(model.name, id, { fields: name === undefined ? [] : [name] }),
      )
      return sendJson(reply, buildRecordBody(record)[0])
    },
    /** Lists the permitted actions on a model or on one record. With the parameter `action`, fails with 403 if that one is not permitted. */
    perms: async (request, reply) => {
      const model = readRouteModel(app, request)
      const data = await readWithParameters(request, protocol, PERMS_PARAMETERS, async ({ id, action }) => {
        const actions = await listPermittedActions(
          app,
          requirePrincipal(request),
          model,
          parseOptionalRecordId(model, id),
        )
        const words = actions.map((each) => ACTION_WORDS[each])
        if (action === undefined) return words
        requireAction(words, action)
        return []
      })
      return sendData(reply, data)
    },
    verify: async (request, reply) => {
      const model = readRouteModel(app, request)
      await bindRecords(request).verify(model.name, readDataObject(request.body))
      return sendData(reply, [])
    },
  }
}
