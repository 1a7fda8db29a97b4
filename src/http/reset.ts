// The page of a one-time link, where somebody sets a password.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../errors.js'
import { MIN_PASSWORD_LENGTH } from '../model/auth.js'
import { isObject } from '../model/value.js'
import type { App } from '../service/app.js'
import { resetPassword, userOfLink } from '../service/accounts/new-password.js'
import type { Guards } from './guard.js'
import { answer, type Resource } from './resource.js'

export function resetResource(app: App, guards: Guards): Resource {
  const tokenIn = (request: FastifyRequest) => (request.query as Readonly<Record<string, unknown>>)['token']
  return {
    path: '/reset',
    guards: [],
    writeGuards: [guards.sameSite],
    handlers: {
      GET: async (request, reply) => {
        await userOfLink(app, tokenIn(request), request.ip)
        return sendPage(reply)
      },
      POST: async (request, reply) => {
        const { password } = isObject(request.body) ? request.body : {}
        if (typeof password !== 'string') throw new Refusal('bad-request', 'Send the new password')
        await resetPassword(app, tokenIn(request), password, request.ip)
        const isForm = request.headers.accept?.includes('text/html') ?? false
        return isForm ? reply.redirect('./', 303) : answer(reply, [])
      },
    },
  }
}

/** The address holds the token: no other page is told it. With no referrer at all, browsers would hide the origin of the form, too. */
function sendPage(reply: FastifyReply): FastifyReply {
  return reply
    .header('content-type', 'text/html; charset=utf-8')
    .header(
      'content-security-policy',
      `default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'`,
    )
    .header('referrer-policy', 'strict-origin')
    .send(PAGE)
}

// The form posts to the address it came from, token and all.
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Verso: a new password</title>
<style>body{font:16px/1.5 system-ui;max-width:24rem;margin:10vh auto;padding:0 1rem}label{display:block;margin:1rem 0}
input{font:inherit;width:100%;box-sizing:border-box;padding:.4rem}button{font:inherit;padding:.4rem 1rem}</style>
<h1>A new password</h1>
<form method="post">
<label>Password, at least ${MIN_PASSWORD_LENGTH} characters
<input name="password" type="password" minlength="${MIN_PASSWORD_LENGTH}" autocomplete="new-password" required></label>
<button>Set the password</button>
</form>
</html>
`
