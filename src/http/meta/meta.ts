// What can be asked for: the models and their fields.
import { describeModel, type ModelDescription } from '../../model/query/describe.js'
import type { Model } from '../../model/definition/model.js'
import type { App } from '../../service/context/app.js'
import { sightOf, type Caller } from '../../service/context/principal.js'
import { actionsOf, modelsKnownTo } from '../../service/access/permission-checks.js'
import { callerOf, type Guards } from '../route/guard.js'
import { modelOf } from '../route/record-request.js'
import { aboutRecords, sendJson, type Resource } from '../route/resource.js'

/** The protocol calls an update a write. */
function permsOf(by: Caller, model: Model): ModelDescription['perms'] {
  if (!by.rights) return null
  const may = new Set(actionsOf(by, model))
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
          const known = modelsKnownTo(app, callerOf(request))
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
          const data = describeModel(sightOf(app, by), model, permsOf(by, model))
          return sendJson(reply, JSON.stringify({ status: 0, data }))
        },
      },
    },
  ]
}
