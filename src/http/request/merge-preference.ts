// `Prefer: merge=fields`: an update on top of what others wrote since the version that it names.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isObject } from '../../model/values/value.js'
import type { SaveOptions, WireRecord } from '../../wire.js'
import { prefers, sayApplied } from './preferences.js'

const MERGE = 'merge=fields'

export function mergeOf(request: FastifyRequest): Pick<SaveOptions, 'merge'> {
  return prefers(request, MERGE) ? { merge: 'fields' } : {}
}

export function sayMerged(reply: FastifyReply): void {
  sayApplied(reply, MERGE)
}

/** The version that an update was made from. */
export function versionIn(data: unknown): number | undefined {
  const version = isObject(data) ? data['version'] : undefined
  return typeof version === 'number' ? version : undefined
}

/** Each write makes one version: if there are more, somebody else's came before it. */
export function isMerged(from: number | undefined, record: WireRecord | undefined): boolean {
  return from !== undefined && record !== undefined && record.version > from + 1
}
