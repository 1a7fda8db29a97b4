// A page with a form where somebody sets a password. The form posts to the address it came from, token and all.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { MIN_PASSWORD_CHARACTERS } from '../../model/catalog/auth-models.js'
import { sendData } from '../route/resource.js'

export interface PasswordPage {
  readonly title: string
  /** What is asked for besides, as HTML. */
  readonly extraFieldsHtml?: string
  readonly buttonLabel: string
}

/** The address holds a token: no other page is told it. With no referrer at all, browsers would hide the origin of the form, too. */
export function sendPasswordPage(reply: FastifyReply, page: PasswordPage): FastifyReply {
  return reply
    .header('content-type', 'text/html; charset=utf-8')
    .header(
      'content-security-policy',
      `default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'`,
    )
    .header('referrer-policy', 'strict-origin')
    .send(renderPasswordPage(page))
}

/** What follows a form that was taken, or a request of a program. */
export function sendPasswordSaved(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const isForm = request.headers.accept?.includes('text/html') ?? false
  return isForm ? reply.redirect('./', 303) : sendData(reply, [])
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
