// `Prefer: merge=fields`: an update on top of what others wrote since the version that it names.
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

/** The version that an update was made from. */
export function readBaseVersion(data: unknown): number | undefined {
  const version = isObject(data) ? data['version'] : undefined
  return typeof version === 'number' ? version : undefined
}

/** Each write makes one version: if there are more, somebody else's came before it. */
export function isMerged(baseVersion: number | undefined, record: WireRecord | undefined): boolean {
  return baseVersion !== undefined && record !== undefined && record.version > baseVersion + 1
}
