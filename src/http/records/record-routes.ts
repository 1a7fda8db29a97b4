// The paths and methods of records. Their handlers are in read-handlers.ts, write-handlers.ts and history-handlers.ts.
import { createHistoryHandlers } from './history-handlers.js'
import { createReadHandlers } from './read-handlers.js'
import { createWriteHandlers } from './write-handlers.js'
import { buildRecordRouteDefaults, documented, type Resource, type RouteContext } from '../route/resource.js'
import * as bulk from './bulk-docs.js'
import * as reads from './read-docs.js'
import * as writes from './write-docs.js'

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
      handlers: {
        GET: documented(reads.FIND_DOCS, readHandlers.find),
        PUT: documented(writes.CREATE_DOCS, writeHandlers.create),
        POST: documented(writes.SAVE_DOCS, writeHandlers.save),
      },
    },
    {
      ...shared,
      path: `${model}/:id`,
      readsQueryFor: ['GET', 'DELETE'],
      handlers: {
        GET: documented(reads.READ_DOCS, readHandlers.read),
        POST: documented(writes.UPDATE_DOCS, writeHandlers.update),
        PATCH: documented(writes.PATCH_DOCS, writeHandlers.patch),
        DELETE: documented(writes.REMOVE_DOCS, writeHandlers.remove),
      },
    },
    {
      ...shared,
      path: `${model}/search`,
      handlers: { POST: documented(reads.SEARCH_DOCS, readHandlers.search) },
    },
    {
      ...shared,
      path: `${model}/perms`,
      readsQueryFor: ['GET'],
      handlers: { GET: documented(reads.PERMS_DOCS, readHandlers.perms) },
    },
    {
      ...shared,
      path: `${model}/deleted`,
      readsQueryFor: ['GET'],
      handlers: { GET: documented(reads.DELETED_DOCS, historyHandlers.deleted) },
    },
    {
      ...shared,
      path: `${model}/verify`,
      handlers: { POST: documented(reads.VERIFY_DOCS, readHandlers.verify) },
    },
    {
      ...shared,
      path: `${model}/updateMass`,
      handlers: { POST: documented(bulk.MASS_UPDATE_DOCS, writeHandlers.updateMass) },
    },
    {
      ...shared,
      path: `${model}/removeAll`,
      handlers: { POST: documented(bulk.REMOVE_ALL_DOCS, writeHandlers.removeAll) },
    },
    {
      ...shared,
      path: `${model}/:id/fetch`,
      handlers: { POST: documented(reads.FETCH_DOCS, readHandlers.fetch) },
    },
    {
      ...shared,
      path: `${model}/:id/copy`,
      handlers: { GET: documented(reads.COPY_DOCS, readHandlers.copy) },
    },
    {
      ...shared,
      path: `${model}/:id/details`,
      readsQueryFor: ['GET'],
      handlers: { GET: documented(reads.DETAILS_DOCS, readHandlers.details) },
    },
    {
      ...shared,
      path: `${model}/:id/history`,
      readsQueryFor: ['GET'],
      handlers: { GET: documented(reads.HISTORY_DOCS, historyHandlers.history) },
    },
    {
      ...shared,
      path: `${model}/:id/history/:version`,
      handlers: { GET: documented(reads.VERSION_DOCS, historyHandlers.version) },
    },
    {
      ...shared,
      path: `${model}/:id/revert`,
      handlers: { POST: documented(writes.REVERT_DOCS, historyHandlers.revert) },
    },
  ]
}
