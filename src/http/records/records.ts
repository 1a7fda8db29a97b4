// Records: which path takes which method. What is done is in `record-reading.ts`, `record-writing.ts` and `history.ts`.
import type { App } from '../../service/context/app.js'
import type { Guards } from '../route/guard.js'
import type { Habits } from '../compat/protocol.js'
import { makePast } from './history.js'
import { makeReading } from './read-routes.js'
import { makeWriting } from './write-routes.js'
import { aboutRecords, type Resource } from '../route/resource.js'

export function recordResources(
  app: App,
  guards: Guards,
  habits: Habits,
  basePath: string,
): readonly Resource[] {
  const shared = aboutRecords(guards)
  const reading = makeReading(app, habits, basePath)
  const writing = makeWriting(app, habits)
  const past = makePast(app, habits, basePath)
  const model = '/ws/rest/:model'
  return [
    {
      ...{ ...shared, path: model },
      withParameters: ['GET'],
      handlers: { GET: reading.find, PUT: writing.create, POST: writing.save },
    },
    {
      ...{ ...shared, path: `${model}/:id` },
      withParameters: ['GET', 'DELETE'],
      handlers: { GET: reading.read, POST: writing.update, PATCH: writing.patch, DELETE: writing.remove },
    },
    { ...shared, path: `${model}/search`, handlers: { POST: reading.search } },
    { ...shared, path: `${model}/perms`, withParameters: ['GET'], handlers: { GET: reading.perms } },
    { ...shared, path: `${model}/verify`, handlers: { POST: reading.verify } },
    { ...shared, path: `${model}/updateMass`, handlers: { POST: writing.updateMass } },
    { ...shared, path: `${model}/removeAll`, handlers: { POST: writing.removeAll } },
    { ...shared, path: `${model}/:id/fetch`, handlers: { POST: reading.fetch } },
    { ...shared, path: `${model}/:id/copy`, handlers: { GET: reading.copy } },
    { ...shared, path: `${model}/:id/details`, withParameters: ['GET'], handlers: { GET: reading.details } },
    { ...shared, path: `${model}/:id/history`, withParameters: ['GET'], handlers: { GET: past.history } },
    { ...shared, path: `${model}/:id/history/:version`, handlers: { GET: past.version } },
    { ...shared, path: `${model}/:id/revert`, handlers: { POST: past.revert } },
  ]
}
