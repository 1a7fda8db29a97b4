// Content codings: which one a client accepts (RFC 9110, Accept-Encoding), and how ETags tell them apart.

/** In the order of preference: `br` is smaller for the same CPU time, see docs/decisions/compression.md. */
export const CODINGS = ['br', 'gzip'] as const
export type Coding = (typeof CODINGS)[number]

export interface CodingChoice {
  /** The coding that the client prefers; undefined for none. */
  readonly coding: Coding | undefined
  /** The client accepts a coding, but no body without one. */
  readonly refusesIdentity: boolean
}

/** Clients choose the header, so the cache has a limit. */
const MAX_CACHED_CHOICES = 100
const MAX_CACHED_LENGTH = 200
const choices = new Map<string, CodingChoice>()

/** Nearly all clients send one of a few headers, so the latest choices are cached. */
export function chooseCoding(acceptEncoding: string): CodingChoice {
  const known = choices.get(acceptEncoding)
  if (known) return known
  const choice = parseChoice(acceptEncoding)
  if (choices.size >= MAX_CACHED_CHOICES) choices.clear()
  if (acceptEncoding.length <= MAX_CACHED_LENGTH) choices.set(acceptEncoding, choice)
  return choice
}

function parseChoice(acceptEncoding: string): CodingChoice {
  const weights = parseWeights(acceptEncoding)
  const others = weights.get('*')
  const getWeight = (coding: Coding) => weights.get(coding) ?? others ?? 0
  let best: Coding | undefined
  for (const coding of CODINGS) if (getWeight(coding) > (best ? getWeight(best) : 0)) best = coding
  const identity = weights.get('identity')
  const prefersIdentity = best !== undefined && identity !== undefined && identity > getWeight(best)
  return {
    coding: prefersIdentity ? undefined : best,
    refusesIdentity: best !== undefined && (identity ?? others) === 0,
  }
}

const ENTRY_PATTERN = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*)?$/i

/** The weight of each coding. Malformed entries are ignored. */
function parseWeights(acceptEncoding: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  for (const entry of acceptEncoding.split(',')) {
    const [, name = '', weight = '1'] = ENTRY_PATTERN.exec(entry) ?? []
    if (name !== '') weights.set(name.toLowerCase().replace(/^x-gzip$/, 'gzip'), Number(weight))
  }
  return weights
}

/** The hash in an ETag contains no dot, so the last part of an ETag is a coding exactly if this matches. */
const CODED_ETAG = new RegExp(`\\.(?:${CODINGS.join('|')})"$`)

/** A strong ETag means equal bytes, so each coding of a body has its own. */
export function addCodingToEtag(etag: string, coding: Coding | undefined): string {
  return coding === undefined ? etag : `${etag.slice(0, -1)}.${coding}"`
}

/**
 * Returns the ETag for a 304, or undefined if the client has no current body. It is that of the coding that a 200 would have; if the client has
 * another coding of the same body, it is that one, because the client could not find its copy by any other.
 */
export function findHeldEtag(
  ifNoneMatch: string | undefined,
  etag: string,
  coding: Coding | undefined,
): string | undefined {
  if (ifNoneMatch === undefined) return undefined
  const selected = addCodingToEtag(etag, coding)
  const held = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (held.includes('*') || held.includes(selected)) return selected
  return held.find((tag) => tag.replace(CODED_ETAG, '"') === etag)
}
