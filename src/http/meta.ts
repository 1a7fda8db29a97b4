// What can be asked for: the models and their fields.
import { describeModel, type ModelDescription } from '../model/describe.js'
import type { Model } from '../model/model.js'
import type { App } from '../service/app.js'
import { sightOf, type Caller } from '../service/rights/caller.js'
import { callerOf, type Guards } from './guard.js'
import { modelOf } from './record-requests.js'
import { aboutRecords, sendJson, type Resource } from './resource.js'

/** The protocol calls an update a write. */
function permsOf({ rights }: Caller, model: Model): ModelDescription['perms'] {
  if (!rights) return null
  const may = rights.of(model)
  return {
    ...{ read: may.may('read'), write: may.may('update'), create: may.may('create') },
    ...{ remove: may.may('remove'), export: may.may('export') },
  }
}

export function metaResources(app: App, guards: Guards): readonly Resource[] {
  const shared = aboutRecords(guards)
  return [
    {
      ...{ ...shared, path: '/ws/meta/models' },
      handlers: {
        GET: async (request, reply) => {
          const { rights } = callerOf(request)
          const known = app.catalog.stored.filter((model) => !rights || rights.of(model).isKnown)
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
