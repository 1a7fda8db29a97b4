// The page of the one-time setup link, which creates the first administrator. The link expires as soon as an administrator exists.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import { ensureFirstAdmin, lacksAdministrator } from '../../service/auth/accounts.js'
import type { App } from '../../service/context/app.js'
import type { Guards } from '../route/guard.js'
import { sendPasswordSaved, sendPasswordPage, type PasswordPage } from './password-pages.js'
import type { Resource } from '../route/resource.js'

export function createSetupResource(app: App, guards: Guards, token: string): Resource {
  const requireSetupToken = async (request: FastifyRequest) => {
    const { token: given } = request.query as Readonly<Record<string, unknown>>
    const isValid = typeof given === 'string' && timingSafeEqual(hashSha256(given), hashSha256(token))
    if (!isValid || !(await lacksAdministrator(app)))
      throw new VersoError('not-found', 'There is nothing here')
  }
  return {
    path: '/setup',
    guards: [],
    writeGuards: [guards.requireSameSite, guards.refuseThrottled],
    handlers: {
      GET: async (request, reply) => {
        await requireSetupToken(request)
        return sendPasswordPage(reply, SETUP_PAGE)
      },
      POST: async (request, reply) => {
        await requireSetupToken(request)
        const { username, password } = isObject(request.body) ? request.body : {}
        if (typeof username !== 'string' || typeof password !== 'string') {
          throw new VersoError('bad-request', 'Send username and password')
        }
        if (!(await ensureFirstAdmin(app, username, password))) {
          throw new VersoError('not-found', 'There is an administrator already: the link is over')
        }
        return sendPasswordSaved(request, reply)
      },
    },
  }
}

function hashSha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

const SETUP_PAGE: PasswordPage = {
  title: 'The first administrator',
  extraFieldsHtml:
    '<label>User name <input name="username" value="admin" autocomplete="username" required></label>\n',
  buttonLabel: 'Make the account',
}
