import type { FastifyRequest } from 'fastify'

export interface BasicCredentials {
  readonly username: string
  readonly password: string
}

/** Reads `Authorization: Basic …`. Returns undefined without such a header, and empty credentials if it is malformed. */
export function readBasicCredentials({ headers }: FastifyRequest): BasicCredentials | undefined {
  const encoded = /^basic +(.*)$/i.exec(headers.authorization ?? '')?.[1]
  if (encoded === undefined) return undefined
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const end = text.indexOf(':')
  return end < 0
    ? { username: '', password: '' }
    : { username: text.slice(0, end), password: text.slice(end + 1) }
}
