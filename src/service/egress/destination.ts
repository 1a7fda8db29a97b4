// From the url of a receiver to the addresses that a call may go to.
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { MAX_WEBHOOK_URL_CHARACTERS } from '../../model/catalog/webhook-models.js'
import type { Reach } from './egress-policy.js'

export interface Address {
  readonly address: string
  readonly family: number
}

/** All addresses that a name has. */
export type Resolve = (host: string) => Promise<readonly Address[]>

export const systemResolve: Resolve = async (host) => lookup(host, { all: true, order: 'verbatim' })

/** A receiver that no call may go to, or that cannot be found; the message is short and for the delivery log. */
export class NotReachable extends Error {}

/** Why this cannot be the url of a receiver, as far as it can be told without looking its name up. */
export function urlFault(text: string, reach: Reach): string | undefined {
  if (!/^https?:\/\//i.test(text) || /[\s\p{Cc}]/u.test(text) || !URL.canParse(text))
    return 'must begin with http:// or https:// and be a whole address'
  if (text.length > MAX_WEBHOOK_URL_CHARACTERS)
    return `must be at most ${MAX_WEBHOOK_URL_CHARACTERS} characters long`
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || text.includes('#'))
    return 'must have no user name, no password and no fragment'
  const host = hostOf(url)
  const literal = isIP(host) > 0 ? host : isLocalName(host) ? '127.0.0.1' : undefined
  const what = literal === undefined || reach.allowsHost(host) ? undefined : reach.faultOf(literal)
  return what && `leads to ${what}: ${howToAllow(host)}`
}

/** Without brackets, and without the dot at its end. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

function isLocalName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost')
}

/** The name is looked up once: the call goes to one of these and nowhere else, whatever the name leads to a moment later. */
export async function addressesOf(host: string, reach: Reach, resolve: Resolve): Promise<readonly Address[]> {
  const family = isIP(host)
  const addresses = family > 0 ? [{ address: host, family }] : await resolve(host)
  if (addresses.length === 0) throw new NotReachable('the host has no address')
  const isAllowed = reach.allowsHost(host)
  for (const { address } of addresses) {
    const what = isAllowed ? undefined : reach.faultOf(address)
    if (what !== undefined)
      throw new NotReachable(`not called: ${shownHost(host, address)} is ${what}: ${howToAllow(host)}`)
  }
  return addresses
}

function howToAllow(host: string): string {
  return `start the service with --webhook-allow ${host.slice(0, 100)} if that is meant`
}

function shownHost(host: string, address: string): string {
  return host === address ? address : `${address}, which ${host.slice(0, 100)} leads to,`
}
