// The first request of a client: the name of the service, the login path, and the current user if the session is valid.
import { DEFAULT_PAGE_RECORDS } from '../../model/query/search.js'
import { createDemoPasswordCheck } from '../../service/auth/accounts.js'
import { DEMO_PASSWORD, DEMO_USERNAME } from '../../service/auth/user-hooks.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { isLoopback } from '../connection/loopback.js'
import { sendJson } from '../response/send.js'
import { documented, type Resource, type RouteContext } from '../route/resource.js'
import type { HttpSettings } from '../settings.js'
import { APP_INFO_DOCS } from './meta-docs.js'

const BYTES_PER_MIB = 1024 * 1024
const DEMO_INFO = { demo: { username: DEMO_USERNAME, password: DEMO_PASSWORD } }

/** A public route without an envelope. Unauthenticated clients only get the name, the login path, and the account of a demo. */
export function createInfoResource(
  { app, guards, settings }: RouteContext,
  offersDemoAccount: boolean,
): Resource {
  const isOffered = offersDemoAccount && app.settings.isDemo && isForThisComputerOnly(settings)
  const hasDemoPassword = isOffered ? createDemoPasswordCheck(app) : undefined
  return {
    path: '/ws/public/app/info',
    guards: [guards.allowAnonymous],
    handlers: {
      GET: documented(APP_INFO_DOCS, async (request, reply) => {
        const { principal } = request
        const demo = (await hasDemoPassword?.()) ? DEMO_INFO : {}
        const publicInfo = {
          application: { name: 'Verso' },
          authentication: { callbackUrl: `${settings.basePath}/callback`, ...demo },
        }
        const body = principal?.user
          ? { ...publicInfo, ...buildUserInfo(app, principal.user, principal.permissions === undefined) }
          : publicInfo
        return sendJson(reply, JSON.stringify(body))
      }),
    },
  }
}

function isForThisComputerOnly({ host, publicUrl, trustProxy }: HttpSettings): boolean {
  return isLoopback(host) && publicUrl === undefined && trustProxy === false
}

function buildUserInfo({ settings }: App, { id, username, name }: UserIdentity, isAdmin: boolean): object {
  return {
    user: { id, login: username, name: name ?? username, nameField: 'name', lang: 'en', technical: isAdmin },
    api: { pagination: { maxPerPage: settings.maxPageSize, defaultPerPage: DEFAULT_PAGE_RECORDS } },
    data: { upload: { maxSize: settings.uploadLimitBytes / BYTES_PER_MIB } },
  }
}
