// The HTML page with a form that sets a password. The form posts to its own URL, which contains the token.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { MIN_PASSWORD_CHARACTERS } from '../../model/catalog/auth-models.js'
import { sendData } from '../route/resource.js'

export interface PasswordPage {
  readonly title: string
  /** More form fields, before the password. */
  readonly extraFieldsHtml?: string
  readonly buttonLabel: string
}

/** The referrer policy hides the URL with its token from other pages. `no-referrer` would also hide the origin of the form, which guards need. */
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

/** Redirects a browser after the form is submitted. Answers programs with JSON. */
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
