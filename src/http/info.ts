// What a client asks before anything else: who answers here, and whether its session is still alive.
import { DEFAULT_LIMIT } from '../model/search.js'
import type { Actor } from '../service/actor.js'
import type { App } from '../service/app.js'
import type { Guards } from './guard.js'
import { sendJson, type Resource } from './resource.js'
import type { HttpSettings } from './settings.js'

const MIB = 1024 * 1024

/** Open to all, and without an envelope. Whoever has no session is told nothing but where to log in. */
export function infoResource(app: App, guards: Guards, settings: HttpSettings): Resource {
  return {
    path: '/ws/public/app/info',
    guards: [guards.anybody],
    handlers: {
      GET: async (request, reply) => {
        const { actor } = request
        const open = {
          application: { name: 'Verso' },
          authentication: { callbackUrl: `${settings.basePath}/callback` },
        }
        const body = actor ? { ...open, ...forUser(app, actor) } : open
        return sendJson(reply, JSON.stringify(body))
      },
    },
  }
}

function forUser({ settings }: App, actor: Actor): object {
  const { id, username, name, admin } = actor
  return {
    user: { id, login: username, name: name ?? username, nameField: 'name', lang: 'en', technical: admin },
    api: { pagination: { maxPerPage: settings.maxLimit, defaultPerPage: DEFAULT_LIMIT } },
    data: { upload: { maxSize: settings.uploadLimitBytes / MIB } },
  }
}
