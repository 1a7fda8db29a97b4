// The past of records: what became of them, as they were, and back.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { PAGING_PARAMETERS } from '../../model/query/search.js'
import { isVersion } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { stringifyRecord } from '../../service/context/answer-limits.js'
import { recordsForPrincipal } from '../../service/records/records.js'
import { dataOf } from '../request/bodies.js'
import { callerOf } from '../route/guard.js'
import type { Habits } from '../compat/protocol.js'
import { linksOf, sendPage, sendRecord } from './record-answers.js'
import { idOf, ifMatchOf, keyOf, modelOf, wantedIn, type Query } from '../route/record-request.js'
import { sendJson, type Handler } from '../route/resource.js'

export function makePast(
  app: App,
  habits: Habits,
  basePath: string,
): Record<'history' | 'version' | 'revert', Handler> {
  const records = (request: FastifyRequest) => recordsForPrincipal(app, callerOf(request))
  return {
    history: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const query = habits.parameters(request.query as Query, PAGING_PARAMETERS)
      const page = await records(request).history(model.name, id, query)
      const { next = page.offset + page.limit, total } = page
      const place = { ...page, next: next < total ? { offset: next } : undefined }
      const link = linksOf(`${basePath}/ws/rest/${model.name}/${id}/history`, place, {})
      if (link !== '') void reply.header('link', link)
      return sendPage(reply, page)
    },
    version: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const was = await records(request).readAt(model.name, id, versionIn(request))
      return sendJson(reply, stringifyRecord(app, { status: 0, data: [was] }))
    },
    revert: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const wanted = wantedIn(request.body)
      return sendRecord(
        reply,
        await records(request).revert(model.name, id, dataOf(request.body), {
          ...{ ...keyOf(request), ...ifMatchOf(request) },
          ...(wanted ? { wanted: habits.wanted(callerOf(request), model, wanted) } : {}),
        }),
      )
    },
  }
}

function versionIn(request: FastifyRequest): number {
  const { version } = request.params as { readonly version: string }
  if (/^\d{1,16}$/.test(version) && isVersion(Number(version))) return Number(version)
  throw new VersoError('not-found', 'There is no such version: versions are whole numbers from 0')
}
