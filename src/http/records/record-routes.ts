// The paths and methods of records. Their handlers are in read-handlers.ts, write-handlers.ts and history-handlers.ts.
import { createHistoryHandlers } from './history-handlers.js'
import { createReadHandlers } from './read-handlers.js'
import { createWriteHandlers } from './write-handlers.js'
import { buildRecordRouteDefaults, type Resource, type RouteContext } from '../route/resource.js'

export function createRecordResources(context: RouteContext): readonly Resource[] {
  const shared = buildRecordRouteDefaults(context.guards)
  const readHandlers = createReadHandlers(context)
  const writeHandlers = createWriteHandlers(context)
  const historyHandlers = createHistoryHandlers(context)
  const model = '/ws/rest/:model'
  return [
    {
      ...shared,
      path: model,
      readsQueryFor: ['GET'],
      handlers: { GET: readHandlers.find, PUT: writeHandlers.create, POST: writeHandlers.save },
    },
    {
      ...shared,
      path: `${model}/:id`,
      readsQueryFor: ['GET', 'DELETE'],
      handlers: {
        GET: readHandlers.read,
        POST: writeHandlers.update,
        PATCH: writeHandlers.patch,
        DELETE: writeHandlers.remove,
      },
    },
    { ...shared, path: `${model}/search`, handlers: { POST: readHandlers.search } },
    { ...shared, path: `${model}/perms`, readsQueryFor: ['GET'], handlers: { GET: readHandlers.perms } },
    { ...shared, path: `${model}/verify`, handlers: { POST: readHandlers.verify } },
    { ...shared, path: `${model}/updateMass`, handlers: { POST: writeHandlers.updateMass } },
    { ...shared, path: `${model}/removeAll`, handlers: { POST: writeHandlers.removeAll } },
    { ...shared, path: `${model}/:id/fetch`, handlers: { POST: readHandlers.fetch } },
    { ...shared, path: `${model}/:id/copy`, handlers: { GET: readHandlers.copy } },
    {
      ...shared,
      path: `${model}/:id/details`,
      readsQueryFor: ['GET'],
      handlers: { GET: readHandlers.details },
    },
    {
      ...shared,
      path: `${model}/:id/history`,
      readsQueryFor: ['GET'],
      handlers: { GET: historyHandlers.history },
    },
    { ...shared, path: `${model}/:id/history/:version`, handlers: { GET: historyHandlers.version } },
    { ...shared, path: `${model}/:id/revert`, handlers: { POST: historyHandlers.revert } },
  ]
}
