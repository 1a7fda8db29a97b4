// Checks the URL of a receiver and resolves it to the addresses that a call may use.
import { shortenForMessage } from '../../model/values/did-you-mean.js'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { MAX_WEBHOOK_URL_CHARACTERS } from '../../model/catalog/webhook-models.js'
import type { EgressPolicy } from './egress-policy.js'

export interface HostAddress {
  readonly address: string
  readonly family: number
}

/** Returns all addresses of a host name. */
export type HostResolver = (host: string) => Promise<readonly HostAddress[]>

export const resolveHost: HostResolver = async (host) => lookup(host, { all: true, order: 'verbatim' })

/** The receiver is blocked, or its host has no address. The delivery log shows the message. */
export class UnreachableError extends Error {}

/** Returns why this URL is not permitted as a receiver. Does not look up host names. */
export function findUrlError(text: string, egressPolicy: EgressPolicy): string | undefined {
  if (!/^https?:\/\//i.test(text) || /[\s\p{Cc}]/u.test(text) || !URL.canParse(text))
    return 'must be a complete URL that begins with http:// or https://'
  if (text.length > MAX_WEBHOOK_URL_CHARACTERS)
    return `must be at most ${MAX_WEBHOOK_URL_CHARACTERS} characters long`
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || text.includes('#'))
    return 'must not have a user name, a password or a fragment'
  const host = readHost(url)
  const literal = isIP(host) > 0 ? host : isLocalName(host) ? '127.0.0.1' : undefined
  const blockReason =
    literal === undefined || egressPolicy.allowsHost(host) ? undefined : egressPolicy.findBlockReason(literal)
  return blockReason && `points to ${blockReason}: ${describeAllowOption(host)}`
}

/** Removes the brackets of an IPv6 address and a trailing dot. */
export function readHost({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

function isLocalName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost')
}

/** Looks the host up once and checks every address. The call must use only these addresses: a second lookup could return others. */
export async function resolveAddresses(
  host: string,
  egressPolicy: EgressPolicy,
  resolve: HostResolver,
): Promise<readonly HostAddress[]> {
  const family = isIP(host)
  const addresses = family > 0 ? [{ address: host, family }] : await resolve(host)
  if (addresses.length === 0) throw new UnreachableError('host has no address')
  const isAllowed = egressPolicy.allowsHost(host)
  for (const { address } of addresses) {
    const blockReason = isAllowed ? undefined : egressPolicy.findBlockReason(address)
    if (blockReason !== undefined)
      throw new UnreachableError(
        `blocked: ${formatHost(host, address)} is ${blockReason}: ${describeAllowOption(host)}`,
      )
  }
  return addresses
}

function describeAllowOption(host: string): string {
  return `start the service with --webhook-allow ${shortenForMessage(host)} to allow it`
}

function formatHost(host: string, address: string): string {
  return host === address ? address : `${address} (${shortenForMessage(host)})`
}
