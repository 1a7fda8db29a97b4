import type { FastifyReply, FastifyRequest } from 'fastify'

const SESSION_COOKIE = 'JSESSIONID'
const CSRF_COOKIE = 'CSRF-TOKEN'
const SESSION_COOKIE_PATTERN = /(?:^|;) *JSESSIONID=([^;]*)/

export function readSessionId({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return SESSION_COOKIE_PATTERN.exec(headers.cookie ?? '')?.[1]
}

/**
 * Sends the session cookie first, because some clients read only the first Set-Cookie. Sends `Secure` over https only, because browsers
 * drop secure cookies of plain http.
 */
export function setSessionCookies(
  request: FastifyRequest,
  reply: FastifyReply,
  path: string,
  values: { readonly sessionId: string; readonly csrfToken: string },
): void {
  const attributes = `; SameSite=Lax; Path=${path}${request.protocol === 'https' ? '; Secure' : ''}`
  void reply.header('set-cookie', [
    `${SESSION_COOKIE}=${values.sessionId}; HttpOnly${attributes}`,
    `${CSRF_COOKIE}=${values.csrfToken}${attributes}`,
  ])
  void reply.header('x-csrf-token', values.csrfToken)
}

export function clearSessionCookies(reply: FastifyReply, path: string): void {
  const attributes = `; Max-Age=0; SameSite=Lax; Path=${path}`
  void reply.header('set-cookie', [
    `${SESSION_COOKIE}=; HttpOnly${attributes}`,
    `${CSRF_COOKIE}=${attributes}`,
  ])
}
