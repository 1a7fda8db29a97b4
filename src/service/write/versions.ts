import { VersoError } from '../../errors.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import { isObject, isVersion } from '../../model/values/value.js'
import type { UpdateOptions } from '../../wire.js'

/** The version that a write was made from, and how it was named: that decides the status of a refusal. */
export interface Expected {
  readonly version: number
  readonly by: 'version' | 'if-match'
}

const WORDS_OF_A_REVERT: readonly string[] = ['id', 'version', 'to']

/** An update must name its version, in the body or by `If-Match`. */
export function versionToUpdate(
  data: unknown,
  id: number,
  { ifMatch, patch = false }: UpdateOptions,
): Expected {
  if (!isObject(data))
    throw new VersoError('bad-request', '"data" must be an object with the version and the fields to change')
  if (data['id'] !== undefined && data['id'] !== null && data['id'] !== id) {
    throw new VersoError('bad-request', `${patch ? 'id' : 'data.id'} is not the id of the path, ${id}`)
  }
  const expected = expect(data['version'] ?? undefined, ifMatch)
  if (expected) return expected
  throw new VersoError(
    'bad-request',
    patch
      ? 'A PATCH names the version it was made from: send If-Match: "3", or version among the fields'
      : 'An update names the version it was made from: send data.version (?version= where there is no body), or If-Match',
  )
}

/** The version to go back to. Whoever misspelled a word, or sends values along, must not believe that they were taken. */
export function versionToRevert(data: unknown, { version, by }: Expected): number {
  const { to = null, ...others } = isObject(data) ? data : {}
  const faults = Object.keys(others)
    .filter((name) => !WORDS_OF_A_REVERT.includes(name))
    .map((name) => `data has no "${name.slice(0, 100)}" in a revert${didYouMean(name, WORDS_OF_A_REVERT)}`)
  if (isVersion(to) && to < version && faults.length === 0) return to
  if (to === null) faults.push('data.to is needed: the version to go back to')
  else if (!isVersion(to) || to >= version) {
    const naming = by === 'if-match' ? 'If-Match' : 'data.version'
    faults.push(`data.to must be a version before ${version}, which ${naming} names`)
  }
  throw new VersoError('bad-request', faults.join('; '))
}

/** The version that one of several records names for itself; undefined if it names none. */
export function versionIn(record: Readonly<Record<string, unknown>>, place: string): number | undefined {
  const version = record['version'] ?? undefined
  if (version === undefined || isVersion(version)) return version
  throw new VersoError('bad-request', `${place}.version must be a whole number from 0`)
}

/** A delete may name its version. */
export function versionToRemove({
  version,
  ifMatch,
}: {
  version?: unknown
  ifMatch?: number | undefined
}): Expected | undefined {
  return expect(version, ifMatch)
}

function expect(version: unknown, ifMatch: number | undefined): Expected | undefined {
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
  if (ifMatch !== undefined) return { version: ifMatch, by: 'if-match' }
  return version === undefined ? undefined : { version, by: 'version' }
}
