// The one-time link by which the first administrator is made. It is over as soon as there is one.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../errors.js'
import { MIN_PASSWORD_LENGTH } from '../model/auth.js'
import { isObject } from '../model/value.js'
import { ensureFirstAdmin, isWithoutAdministrator } from '../service/accounts/accounts.js'
import type { App } from '../service/app.js'
import type { Guards } from './guard.js'
import { sendJson, type Resource } from './resource.js'

export function setupResource(app: App, guards: Guards, token: string): Resource {
  const check = async (request: FastifyRequest) => {
    const { token: given } = request.query as Readonly<Record<string, unknown>>
    const isRight = typeof given === 'string' && timingSafeEqual(digest(given), digest(token))
    if (!isRight || !(await isWithoutAdministrator(app)))
      throw new Refusal('not-found', 'There is nothing here')
  }
  return {
    path: '/setup',
    guards: [],
    writeGuards: [guards.sameSite],
    handlers: {
      GET: async (request, reply) => {
        await check(request)
        return sendPage(reply)
      },
      POST: async (request, reply) => {
        await check(request)
        const { username, password } = isObject(request.body) ? request.body : {}
        if (typeof username !== 'string' || typeof password !== 'string') {
          throw new Refusal('bad-request', 'Send username and password')
        }
        if (!(await ensureFirstAdmin(app, username, password))) {
          throw new Refusal('not-found', 'There is an administrator already: the link is over')
        }
        const isForm = request.headers.accept?.includes('text/html') ?? false
        return isForm ? reply.redirect('./', 303) : sendJson(reply, JSON.stringify({ status: 0, data: [] }))
      },
    },
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function sendPage(reply: FastifyReply): FastifyReply {
  return reply
    .header('content-type', 'text/html; charset=utf-8')
    .header(
      'content-security-policy',
      `default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'`,
    )
    .header('referrer-policy', 'same-origin')
    .send(PAGE)
}

// The form posts to the address it came from, token and all.
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Verso: the first administrator</title>
<style>body{font:16px/1.5 system-ui;max-width:24rem;margin:10vh auto;padding:0 1rem}label{display:block;margin:1rem 0}
input{font:inherit;width:100%;box-sizing:border-box;padding:.4rem}button{font:inherit;padding:.4rem 1rem}</style>
<h1>The first administrator</h1>
<form method="post">
<label>User name <input name="username" value="admin" autocomplete="username" required></label>
<label>Password, at least ${MIN_PASSWORD_LENGTH} characters
<input name="password" type="password" minlength="${MIN_PASSWORD_LENGTH}" autocomplete="new-password" required></label>
<button>Make the account</button>
</form>
</html>
`
