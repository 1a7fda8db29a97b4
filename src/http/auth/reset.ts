// The page of a one-time reset link, where a user sets a new password.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { resetPassword, findResetLinkUser } from '../../service/auth/new-password.js'
import type { Guards } from '../route/guard.js'
import { sendPasswordSaved, sendPasswordPage } from './password-pages.js'
import type { Resource } from '../route/resource.js'

export function createResetResource(app: App, guards: Guards): Resource {
  const readToken = (request: FastifyRequest) => (request.query as Readonly<Record<string, unknown>>)['token']
  return {
    path: '/reset',
    guards: [],
    writeGuards: [guards.requireSameSite, guards.refuseThrottled],
    handlers: {
      GET: async (request, reply) => {
        await findResetLinkUser(app, readToken(request), request.ip)
        return sendPasswordPage(reply, { title: 'A new password', buttonLabel: 'Set the password' })
      },
      POST: async (request, reply) => {
        const { password } = isObject(request.body) ? request.body : {}
        if (typeof password !== 'string') throw new VersoError('bad-request', 'Send the new password')
        await resetPassword(app, readToken(request), password, request.ip)
        return sendPasswordSaved(request, reply)
      },
    },
  }
}
