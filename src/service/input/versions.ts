import { VersoError } from '../../errors.js'
import { didYouMean, shortenForMessage } from '../../model/values/did-you-mean.js'
import { isObject, isVersion } from '../../model/values/value.js'
import type { UpdateOptions } from '../../wire.js'

/** The version that a write was made from. Its source decides the status of the error. */
export interface ExpectedVersion {
  readonly version: number
  readonly source: 'version' | 'if-match'
}

const REVERT_KEYS: readonly string[] = ['id', 'version', 'to']

/** An update must name its version, in the body or by `If-Match`. */
export function parseUpdateVersion(
  data: unknown,
  id: number,
  { ifMatch, patch = false }: UpdateOptions,
): ExpectedVersion {
  if (!isObject(data))
    throw new VersoError('bad-request', '"data" must be an object with the version and the fields to change')
  if (data['id'] !== undefined && data['id'] !== null && data['id'] !== id) {
    throw new VersoError('bad-request', `${patch ? 'id' : 'data.id'} is not the id of the path, ${id}`)
  }
  const expected = resolveExpectedVersion(data['version'] ?? undefined, ifMatch)
  if (expected) return expected
  throw new VersoError(
    'bad-request',
    patch
      ? 'A PATCH names the version it was made from: send If-Match: "3", or version among the fields'
      : 'An update names the version it was made from: send data.version (?version= where there is no body), or If-Match',
  )
}

/** Parses the version to revert to. Unknown keys and values are refused, because the client would believe that they were used. */
export function parseRevertTarget(data: unknown, { version, source }: ExpectedVersion): number {
  const { to = null, ...others } = isObject(data) ? data : {}
  const errors = Object.keys(others)
    .filter((name) => !REVERT_KEYS.includes(name))
    .map((name) => `data has no "${shortenForMessage(name)}" in a revert${didYouMean(name, REVERT_KEYS)}`)
  if (isVersion(to) && to < version && errors.length === 0) return to
  if (to === null) errors.push('data.to is needed: the version to go back to')
  else if (!isVersion(to) || to >= version) {
    const naming = source === 'if-match' ? 'If-Match' : 'data.version'
    errors.push(`data.to must be a version before ${version}, which ${naming} names`)
  }
  throw new VersoError('bad-request', errors.join('; '))
}

/** Parses the version of one record in a list; undefined if there is none. */
export function parseVersion(record: Readonly<Record<string, unknown>>, path: string): number | undefined {
  const version = record['version'] ?? undefined
  if (version === undefined || isVersion(version)) return version
  throw new VersoError('bad-request', `${path}.version must be a whole number from 0`)
}

/** A delete may name its version. */
export function parseRemoveVersion({
  version,
  ifMatch,
}: {
  version?: unknown
  ifMatch?: number | undefined
}): ExpectedVersion | undefined {
  return resolveExpectedVersion(version, ifMatch)
}

function resolveExpectedVersion(version: unknown, ifMatch: number | undefined): ExpectedVersion | undefined {
  if (version !== undefined && !isVersion(version)) {
    throw new VersoError('bad-request', 'The version must be a whole number from 0')
  }
  if (ifMatch !== undefined && !isVersion(ifMatch)) {
    throw new VersoError('bad-request', 'If-Match must name a version such as "3"')
  }
  if (version !== undefined && ifMatch !== undefined && version !== ifMatch) {
    throw new VersoError(
      'bad-request',
      `If-Match names version ${ifMatch}, and the request version ${version}`,
    )
  }
  if (ifMatch !== undefined) return { version: ifMatch, source: 'if-match' }
  return version === undefined ? undefined : { version, source: 'version' }
}
