// The pages behind one-time links, where a user sets a password: /reset, and /setup for the first administrator. The forms post to their own
// URL, which contains the token.
import { timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { MIN_PASSWORD_CHARACTERS } from '../../model/catalog/auth-models.js'
import { isObject } from '../../model/values/value.js'
import { ensureFirstAdmin, lacksAdministrator } from '../../service/auth/accounts.js'
import { resetPassword, findResetLinkUser } from '../../service/auth/new-password.js'
import { hashToken } from '../../service/auth/tokens.js'
import { replaceHeader, sendBody, sendData, sendRedirect, type SentReply } from '../response/send.js'
import type { Resource, RouteContext } from '../route/resource.js'

export function createResetResource({ app, guards }: RouteContext): Resource {
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

/** The setup link expires as soon as an administrator exists. */
export function createSetupResource({ app, guards }: RouteContext, token: string): Resource {
  const requireSetupToken = async (request: FastifyRequest) => {
    const { token: sentToken } = request.query as Readonly<Record<string, unknown>>
    const isValid = typeof sentToken === 'string' && isSameToken(sentToken, token)
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

const SETUP_PAGE: PasswordPage = {
  title: 'The first administrator',
  extraFieldsHtml:
    '<label>User name <input name="username" value="admin" autocomplete="username" required></label>\n',
  buttonLabel: 'Make the account',
}

/** Hashes first, because timingSafeEqual needs texts of the same length. */
function isSameToken(token: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(hashToken(token)), Buffer.from(hashToken(expected)))
}

interface PasswordPage {
  readonly title: string
  /** More form fields, before the password. */
  readonly extraFieldsHtml?: string
  readonly buttonLabel: string
}

/** The referrer policy hides the URL with its token from other pages. `no-referrer` would also hide the origin of the form, which guards need. */
function sendPasswordPage(reply: FastifyReply, page: PasswordPage): SentReply {
  replaceHeader(
    reply,
    'content-security-policy',
    `default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'`,
  )
  replaceHeader(reply, 'referrer-policy', 'strict-origin')
  return sendBody(reply, 'text/html; charset=utf-8', renderPasswordPage(page))
}

/** Redirects a browser after the form is submitted. Answers programs with JSON. */
function sendPasswordSaved(request: FastifyRequest, reply: FastifyReply): SentReply {
  const isForm = request.headers.accept?.includes('text/html') ?? false
  return isForm ? sendRedirect(reply, './') : sendData(reply, [])
}

function renderPasswordPage({ title, extraFieldsHtml = '', buttonLabel }: PasswordPage): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Verso: ${title.toLowerCase()}</title>
<style>body{font:16px/1.5 system-ui;max-width:24rem;margin:10vh auto;padding:0 1rem}label{display:block;margin:1rem 0}
input{font:inherit;width:100%;box-sizing:border-box;padding:.4rem}button{font:inherit;padding:.4rem 1rem}</style>
<h1>${title}</h1>
<form method="post">
${extraFieldsHtml}<label>Password, at least ${MIN_PASSWORD_CHARACTERS} characters
<input name="password" type="password" minlength="${MIN_PASSWORD_CHARACTERS}" autocomplete="new-password" required></label>
<button>${buttonLabel}</button>
</form>
</html>
`
}
