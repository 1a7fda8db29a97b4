// `Prefer: merge=fields`: merges an update with the changes that were committed after its base version.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isObject } from '../../model/values/value.js'
import type { SaveOptions, WireRecord } from '../../wire.js'
import { hasPreference, setPreferenceApplied } from './preferences.js'

const MERGE_PREFERENCE = 'merge=fields'

export function readMergePreference(request: FastifyRequest): Pick<SaveOptions, 'merge'> {
  return hasPreference(request, MERGE_PREFERENCE) ? { merge: 'fields' } : {}
}

export function setMergeApplied(reply: FastifyReply): void {
  setPreferenceApplied(reply, MERGE_PREFERENCE)
}

/** Returns the version on which an update is based. */
export function readBaseVersion(data: unknown): number | undefined {
  const version = isObject(data) ? data['version'] : undefined
  return typeof version === 'number' ? version : undefined
}

/** True if the update was merged with other writes. Each write increments the version by one, so a larger step means a write in between. */
export function isMerged(baseVersion: number | undefined, record: WireRecord | undefined): boolean {
  return baseVersion !== undefined && record !== undefined && record.version > baseVersion + 1
}
