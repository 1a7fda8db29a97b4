// Handlers for the history of a record, one of its versions, deleted records, and revert.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { PAGING_PARAMETERS } from '../../model/query/search.js'
import { isVersion } from '../../model/values/value.js'
import { stringifyRecord } from '../../service/context/answer-limits.js'
import { DELETED_PARAMETERS } from '../../service/log/deleted-records.js'
import { recordsForPrincipal } from '../../service/records/records.js'
import { readDataObject, readFieldSelection } from '../request/bodies.js'
import { parseVersionText, type QueryParameters } from '../request/parameters.js'
import { requirePrincipal, readRouteId, readRouteModel } from '../route/guard.js'
import { buildModelPath, buildPageLinks, sendPage, sendRecord } from './record-responses.js'
import { readIfMatch, readIdempotencyKey } from '../request/headers.js'
import { sendJson, setHeader } from '../response/send.js'
import type { RouteContext, RouteHandler } from '../route/resource.js'

export function createHistoryHandlers({
  app,
  protocol,
  settings,
}: RouteContext): Record<'history' | 'version' | 'deleted' | 'revert', RouteHandler> {
  const bindRecords = (request: FastifyRequest) => recordsForPrincipal(app, requirePrincipal(request))
  return {
    history: async (request, reply) => {
      const model = readRouteModel(app, request)
      const id = readRouteId(model, request)
      const query = protocol.filterParameters(request.query as QueryParameters, PAGING_PARAMETERS)
      const page = await bindRecords(request).history(model.name, id, query)
      const { next = page.offset + page.limit, total } = page
      const linkedPage = { ...page, next: next < total ? { offset: next } : undefined }
      const link = buildPageLinks(`${buildModelPath(settings, model)}/${id}/history`, linkedPage, {})
      if (link !== '') setHeader(reply, 'link', link)
      return sendPage(reply, page)
    },
    version: async (request, reply) => {
      const model = readRouteModel(app, request)
      const id = readRouteId(model, request)
      const revision = await bindRecords(request).readAt(model.name, id, readVersionSegment(request))
      return sendJson(reply, stringifyRecord(app, { status: 0, data: [revision] }))
    },
    deleted: async (request, reply) => {
      const model = readRouteModel(app, request)
      const query = protocol.filterParameters(request.query as QueryParameters, DELETED_PARAMETERS)
      const { data, next } = await bindRecords(request).deleted(model.name, query)
      return sendJson(reply, JSON.stringify({ status: 0, data, next }))
    },
    revert: async (request, reply) => {
      const model = readRouteModel(app, request)
      const id = readRouteId(model, request)
      const fields = readFieldSelection(request.body)
      return sendRecord(
        reply,
        await bindRecords(request).revert(model.name, id, readDataObject(request.body), {
          ...readIdempotencyKey(request),
          ...readIfMatch(request),
          ...(fields ? { returning: protocol.convertFields(requirePrincipal(request), model, fields) } : {}),
        }),
      )
    },
  }
}

function readVersionSegment(request: FastifyRequest): number {
  const version = parseVersionText((request.params as { readonly version: string }).version)
  if (isVersion(version)) return version
  throw new VersoError('not-found', 'This version does not exist: versions are whole numbers from 0')
}
