// The request header `Prefer` (RFC 7240). Unknown preferences are ignored, as the RFC demands.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { REPLAYED_HEADER, setHeader } from '../response/send.js'
import { isObject } from '../../model/values/value.js'
import type { SaveOptions, WireRecord } from '../../wire.js'

const PREFERENCE_APPLIED_HEADER = 'preference-applied'
/** Merges an update with the changes that were committed after its base version. */
const MERGE_PREFERENCE = 'merge=fields'

// A preference is a name, an optional value (a token or a quoted string) and optional parameters, which are ignored.
const HTTP_TOKEN_PATTERN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const QUOTED_PATTERN = '"(?:[^"\\\\]|\\\\.)*"'
const VALUE_PATTERN = `(?:${QUOTED_PATTERN}|${HTTP_TOKEN_PATTERN})`
const PREFERENCE_PATTERN = new RegExp(
  `^[ \\t]*(${HTTP_TOKEN_PATTERN})(?:[ \\t]*=[ \\t]*(${VALUE_PATTERN}))?[ \\t]*(?:;.*)?$`,
  's',
)

/** Reads preferences that are separated by commas or spread over several headers. The first one of a name wins. */
function parsePreferences(request: Pick<FastifyRequest, 'headers'>): ReadonlyMap<string, string> {
  const { prefer = [] } = request.headers
  const preferences = new Map<string, string>()
  for (const text of [prefer].flat().flatMap(splitAtCommas)) {
    const [, name = '', value = ''] = PREFERENCE_PATTERN.exec(text) ?? []
    const key = name.toLowerCase()
    if (name !== '' && !preferences.has(key)) preferences.set(key, unquote(value))
  }
  return preferences
}

/** True if the request has the preference. Names and values are case-insensitive. */
export function hasPreference(request: Pick<FastifyRequest, 'headers'>, preference: string): boolean {
  const [name = '', value = ''] = preference.split('=')
  return parsePreferences(request).get(name)?.toLowerCase() === value
}

export function setPreferenceApplied(reply: FastifyReply, preference: string): void {
  setHeader(reply, PREFERENCE_APPLIED_HEADER, preference)
}

export function readMergePreference(request: FastifyRequest): Pick<SaveOptions, 'merge'> {
  return hasPreference(request, MERGE_PREFERENCE) ? { merge: 'fields' } : {}
}

export function setMergeApplied(reply: FastifyReply): void {
  setPreferenceApplied(reply, MERGE_PREFERENCE)
}

/** True if the response says that this request, not the one whose response it repeats, has merged an update. */
export function hasMergeApplied({ ownHeaders }: FastifyReply): boolean {
  return ownHeaders !== null && ownHeaders.includes(MERGE_PREFERENCE) && !ownHeaders.includes(REPLAYED_HEADER)
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

/** Ignores commas between quotes. A regular expression would take quadratic time on a header with many quotes. */
function splitAtCommas(header: string): string[] {
  const parts = ['']
  let [isQuoted, isEscaped] = [false, false]
  for (const character of header) {
    if (character === ',' && !isQuoted) parts.push('')
    else parts.push((parts.pop() ?? '') + character)
    if (character === '"' && !isEscaped) isQuoted = !isQuoted
    isEscaped = isQuoted && character === '\\' && !isEscaped
  }
  return parts
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/gs, '$1') : value
}
