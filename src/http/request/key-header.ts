import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'

/** `API-KEY: …` or `Authorization: Bearer …`; undefined if neither was sent. */
export function sentKeyOf({ headers }: FastifyRequest): string | undefined {
  const named = headers['api-key']
  const plain = Array.isArray(named) ? named.join() : named
  const bearer = /^bearer(?: +(.*))?$/i.exec(headers.authorization ?? '')
  const borne = bearer ? (bearer[1] ?? '').trim() : undefined
  if (plain !== undefined && borne !== undefined && plain !== borne)
    throw new VersoError('bad-request', 'API-KEY and Authorization hold different keys: send one of them')
  return plain ?? borne
}
