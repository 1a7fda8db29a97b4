// Metadata routes: the models and their fields.
import { describeModel, type ModelDescription } from '../../formats/model-description.js'
import type { Model } from '../../model/definition/model.js'
import type { Principal } from '../../service/context/principal.js'
import { getVisibility } from '../../service/context/context.js'
import { listActions, listPermittedModels } from '../../service/access/request-checks.js'
import { requirePrincipal, readRouteModel } from '../route/guard.js'
import { sendData, sendJson } from '../response/send.js'
import { buildRecordRouteDefaults, documented, type Resource, type RouteContext } from '../route/resource.js'
import { DESCRIBE_MODEL_DOCS, LIST_MODELS_DOCS } from './meta-docs.js'

/** Clients expect the permission to update under the name `write`. */
function describePermissions(principal: Principal, model: Model): ModelDescription['perms'] {
  if (!principal.permissions) return null
  const actions = new Set(listActions(principal, model))
  return {
    read: actions.has('read'),
    write: actions.has('update'),
    create: actions.has('create'),
    remove: actions.has('remove'),
    export: actions.has('export'),
  }
}

export function createMetaResources({ app, guards }: RouteContext): readonly Resource[] {
  const shared = buildRecordRouteDefaults(guards)
  return [
    {
      ...shared,
      path: '/ws/meta/models',
      handlers: {
        GET: documented(LIST_MODELS_DOCS, async (request, reply) => {
          const models = listPermittedModels(app, requirePrincipal(request))
          const data = models.map(({ name }) => name).sort()
          return sendJson(reply, JSON.stringify({ status: 0, total: data.length, data }))
        }),
      },
    },
    {
      ...shared,
      path: '/ws/meta/fields/:model',
      handlers: {
        // `data` is an object here, not a list: existing clients read data.fields.
        GET: documented(DESCRIBE_MODEL_DOCS, async (request, reply) => {
          const principal = requirePrincipal(request)
          const model = readRouteModel(app, request)
          const permissions = describePermissions(principal, model)
          return sendData(reply, describeModel(getVisibility(app, principal), model, permissions))
        }),
      },
    },
  ]
}
