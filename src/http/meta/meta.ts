// What can be asked for: the models and their fields.
import { describeModel, type ModelDescription } from '../../model/query/describe.js'
import type { Model } from '../../model/definition/model.js'
import type { App } from '../../service/context/app.js'
import { getVisibility, type Principal } from '../../service/context/principal.js'
import { listActions, listPermittedModels } from '../../service/access/permission-checks.js'
import { callerOf, type Guards } from '../route/guard.js'
import { modelOf } from '../route/record-request.js'
import { aboutRecords, sendJson, type Resource } from '../route/resource.js'

/** The protocol calls an update a write. */
function permsOf(by: Principal, model: Model): ModelDescription['perms'] {
  if (!by.permissions) return null
  const may = new Set(listActions(by, model))
  return {
    ...{ read: may.has('read'), write: may.has('update'), create: may.has('create') },
    ...{ remove: may.has('remove'), export: may.has('export') },
  }
}

export function metaResources(app: App, guards: Guards): readonly Resource[] {
  const shared = aboutRecords(guards)
  return [
    {
      ...{ ...shared, path: '/ws/meta/models' },
      handlers: {
        GET: async (request, reply) => {
          const known = listPermittedModels(app, callerOf(request))
          const data = known.map(({ name }) => name).sort()
          return sendJson(reply, JSON.stringify({ status: 0, total: data.length, data }))
        },
      },
    },
    {
      ...{ ...shared, path: '/ws/meta/fields/:model' },
      handlers: {
        // An object, where other answers have a list: clients of the protocol look for data.fields.
        GET: async (request, reply) => {
          const by = callerOf(request)
          const model = modelOf(app, request)
          const data = describeModel(getVisibility(app, by), model, permsOf(by, model))
          return sendJson(reply, JSON.stringify({ status: 0, data }))
        },
      },
    },
  ]
}
