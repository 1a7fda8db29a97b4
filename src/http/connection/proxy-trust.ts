import { compile } from '@fastify/proxy-addr'

/** Clients choose the addresses in `X-Forwarded-For`, so the cache has a limit. */
const MAX_CACHED_ADDRESSES = 1_000

/** Returns a function that tells whether an address is that of a trusted proxy. It caches the results: parsing an address takes microseconds. */
export function createProxyTrust(proxies: readonly string[]): (address: string, hop: number) => boolean {
  const isTrusted = compile([...proxies])
  const known = new Map<string, boolean>()
  return (address, hop) => {
    const cached = known.get(address)
    if (cached !== undefined) return cached
    if (known.size >= MAX_CACHED_ADDRESSES) known.clear()
    const trusted = isTrusted(address, hop)
    known.set(address, trusted)
    return trusted
  }
}
