import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'

/** Reads `API-KEY: …` or `Authorization: Bearer …`. Returns undefined without either header. */
export function readApiKey({ headers }: FastifyRequest): string | undefined {
  const header = headers['api-key']
  const headerKey = Array.isArray(header) ? header.join() : header
  const bearer = /^bearer(?: +(.*))?$/i.exec(headers.authorization ?? '')
  const bearerKey = bearer ? (bearer[1] ?? '').trim() : undefined
  if (headerKey !== undefined && bearerKey !== undefined && headerKey !== bearerKey)
    throw new VersoError('bad-request', 'API-KEY and Authorization hold different keys: send one of them')
  return headerKey ?? bearerKey
}
