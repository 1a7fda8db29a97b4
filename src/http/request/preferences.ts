// The header `Prefer` (RFC 7240): what a client would like. What is not known here is ignored.
import type { FastifyReply, FastifyRequest } from 'fastify'

const PREFERENCE_APPLIED_HEADER = 'preference-applied'

// A name, a value as a word or between quotes, and parameters, which none of ours has.
const HTTP_TOKEN_PATTERN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const QUOTED_PATTERN = '"(?:[^"\\\\]|\\\\.)*"'
const VALUE_PATTERN = `(?:${QUOTED_PATTERN}|${HTTP_TOKEN_PATTERN})`
const PREFERENCE_PATTERN = new RegExp(
  `^[ \\t]*(${HTTP_TOKEN_PATTERN})(?:[ \\t]*=[ \\t]*(${VALUE_PATTERN}))?[ \\t]*(?:;.*)?$`,
  's',
)

/** Several stand behind each other with commas, or in several headers; of two with one name the first counts. */
export function parsePreferences(request: Pick<FastifyRequest, 'headers'>): ReadonlyMap<string, string> {
  const { prefer = [] } = request.headers
  const preferences = new Map<string, string>()
  for (const text of [prefer].flat().flatMap(splitAtCommas)) {
    const [, name = '', value = ''] = PREFERENCE_PATTERN.exec(text) ?? []
    const key = name.toLowerCase()
    if (name !== '' && !preferences.has(key)) preferences.set(key, unquote(value))
  }
  return preferences
}

/** Whether a preference is asked for. Its name and value are the same in either case. */
export function hasPreference(request: Pick<FastifyRequest, 'headers'>, preference: string): boolean {
  const [name = '', value = ''] = preference.split('=')
  return parsePreferences(request).get(name)?.toLowerCase() === value
}

export function setPreferenceApplied(reply: FastifyReply, preference: string): void {
  void reply.header(PREFERENCE_APPLIED_HEADER, preference)
}

/** Those between quotes stay. By hand: an expression would look through the rest of the header from each quote anew. */
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
