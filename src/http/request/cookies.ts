import type { FastifyReply, FastifyRequest } from 'fastify'

const SESSION = 'JSESSIONID'
const CSRF = 'CSRF-TOKEN'
const SESSION_PAIR = /(?:^|;) *JSESSIONID=([^;]*)/

export function sessionIdOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return SESSION_PAIR.exec(headers.cookie ?? '')?.[1]
}

/** The session first: some clients take it from the first Set-Cookie. `Secure` only over https, or plain http loses the session. */
export function setSessionCookies(
  request: FastifyRequest,
  reply: FastifyReply,
  path: string,
  values: { readonly sessionId: string; readonly csrfToken: string },
): void {
  const tail = `; SameSite=Lax; Path=${path}${request.protocol === 'https' ? '; Secure' : ''}`
  void reply.header('set-cookie', [
    `${SESSION}=${values.sessionId}; HttpOnly${tail}`,
    `${CSRF}=${values.csrfToken}${tail}`,
  ])
  void reply.header('x-csrf-token', values.csrfToken)
}

export function clearSessionCookies(reply: FastifyReply, path: string): void {
  const tail = `; Max-Age=0; SameSite=Lax; Path=${path}`
  void reply.header('set-cookie', [`${SESSION}=; HttpOnly${tail}`, `${CSRF}=${tail}`])
}
