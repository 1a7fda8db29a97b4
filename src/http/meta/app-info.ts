// The first request of a client: the name of the service, the login path, and the current user if the session is valid.
import { DEFAULT_PAGE_RECORDS } from '../../model/query/search.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { sendBody, sendJson } from '../response/send.js'
import { documented, type Resource, type RouteContext } from '../route/resource.js'
import { APP_INFO_DOCS, ROOT_DOCS } from './meta-docs.js'

const BYTES_PER_MIB = 1024 * 1024

/** A public route without an envelope. Unauthenticated clients only get the name and the login path. */
export function createInfoResource({ app, guards, settings }: RouteContext): Resource {
  return {
    path: '/ws/public/app/info',
    guards: [guards.allowAnonymous],
    handlers: {
      GET: documented(APP_INFO_DOCS, async (request, reply) => {
        const { principal } = request
        const publicInfo = {
          application: { name: 'Verso' },
          authentication: { callbackUrl: `${settings.basePath}/callback` },
        }
        const body = principal?.user
          ? { ...publicInfo, ...buildUserInfo(app, principal.user, principal.permissions === undefined) }
          : publicInfo
        return sendJson(reply, JSON.stringify(body))
      }),
    },
  }
}

function buildUserInfo({ settings }: App, { id, username, name }: UserIdentity, isAdmin: boolean): object {
  return {
    user: { id, login: username, name: name ?? username, nameField: 'name', lang: 'en', technical: isAdmin },
    api: { pagination: { maxPerPage: settings.maxPageSize, defaultPerPage: DEFAULT_PAGE_RECORDS } },
    data: { upload: { maxSize: settings.uploadLimitBytes / BYTES_PER_MIB } },
  }
}

export function createRootResource(): Resource {
  const text =
    'Verso is running. Log in with POST callback; records are at ws/rest/<model>, and the API reference is at docs.\n'
  return {
    path: '/',
    guards: [],
    handlers: {
      GET: documented(ROOT_DOCS, async (_, reply) => sendBody(reply, 'text/plain; charset=utf-8', text)),
    },
  }
}
