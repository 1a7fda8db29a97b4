// Blocks outgoing calls to this machine and to non-public networks, unless the settings allow them.
import { BlockList, isIP } from 'node:net'

interface AddressRange {
  readonly description: string
  readonly networks: readonly string[]
}

/** From https://www.iana.org/assignments/iana-ipv4-special-registry, plus 168.63.129.16, the host services of Azure. */
const NON_PUBLIC_IPV4_RANGES: readonly AddressRange[] = [
  { description: 'a loopback address', networks: ['127.0.0.0/8'] },
  {
    description: 'a private address',
    networks: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'],
  },
  { description: 'a link-local address', networks: ['169.254.0.0/16'] },
  { description: 'an unspecified address', networks: ['0.0.0.0/8'] },
  { description: 'a multicast address', networks: ['224.0.0.0/4'] },
  { description: 'a broadcast address', networks: ['255.255.255.255/32'] },
  {
    description: 'a reserved address',
    networks: ['192.0.0.0/24', '192.88.99.0/24', '198.18.0.0/15', '240.0.0.0/4', '168.63.129.16/32'],
  },
  {
    description: 'an address for documentation',
    networks: ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'],
  },
]

/** Addresses that are not listed here are public only within `PUBLIC_IPV6_NETWORK`. */
const NON_PUBLIC_IPV6_RANGES: readonly AddressRange[] = [
  { description: 'a loopback address', networks: ['::1/128'] },
  { description: 'an unspecified address', networks: ['::/128'] },
  { description: 'a private address', networks: ['fc00::/7', 'fec0::/10'] },
  { description: 'a link-local address', networks: ['fe80::/10'] },
  { description: 'a multicast address', networks: ['ff00::/8'] },
  { description: 'an address for documentation', networks: ['2001:db8::/32', '3fff::/20'] },
  // Teredo (part of the first network) and 6to4 embed IPv4 addresses, which are not checked here.
  { description: 'a reserved address', networks: ['2001::/23', '2002::/16'] },
]
const PUBLIC_IPV6_NETWORK = '2000::/3'

const IPV4_BLOCK_LISTS = NON_PUBLIC_IPV4_RANGES.map(({ description, networks }) => ({
  description,
  list: createBlockList(networks),
}))
const IPV6_BLOCK_LISTS = NON_PUBLIC_IPV6_RANGES.map(({ description, networks }) => ({
  description,
  list: createBlockList(networks),
}))
const PUBLIC_IPV6_LIST = createBlockList([PUBLIC_IPV6_NETWORK])

/** Sockets treat ::ffff:a.b.c.d as the IPv4 address a.b.c.d. */
const IPV4_MAPPED_PREFIX = [0, 0, 0, 0, 0, 0xffff]
/** NAT64: networks with IPv6 only reach public IPv4 addresses through this prefix. */
const NAT64_PREFIX = [0x64, 0xff9b, 0, 0, 0, 0]

export class EgressPolicy {
  readonly #hosts: ReadonlySet<string>
  readonly #networks: BlockList

  /** `allow` lists host names, addresses, and networks such as 10.0.0.0/8. */
  constructor(allow: readonly string[]) {
    const isAddress = (text: string) => isIP(text.split('/')[0] ?? '') > 0
    this.#hosts = new Set(allow.filter((text) => !isAddress(text)).map(normalizeHost))
    this.#networks = createBlockList(allow.filter(isAddress))
  }

  /** An allowed host may have any address. */
  allowsHost(host: string): boolean {
    return this.#hosts.has(normalizeHost(host))
  }

  /** Returns the kind of a blocked address, or undefined if calls to it are permitted. */
  findBlockReason(address: string): string | undefined {
    const normalized = normalizeAddress(address)
    if (normalized === undefined) return 'an invalid address'
    if (this.#networks.check(normalized, isIP(normalized) === 4 ? 'ipv4' : 'ipv6')) return undefined
    return isIP(normalized) === 4 ? describeBlockedIpv4(normalized) : describeBlockedIpv6(normalized)
  }
}

/** Host names ignore case and a trailing dot. */
function normalizeHost(host: string): string {
  return host.toLowerCase().replace(/\.$/, '')
}

function describeBlockedIpv4(address: string): string | undefined {
  return IPV4_BLOCK_LISTS.find(({ list }) => list.check(address, 'ipv4'))?.description
}

function describeBlockedIpv6(address: string): string | undefined {
  const translated = extractIpv4(parseIpv6Groups(address), NAT64_PREFIX)
  if (translated !== undefined) return describeBlockedIpv4(translated)
  const description = IPV6_BLOCK_LISTS.find(({ list }) => list.check(address, 'ipv6'))?.description
  return description ?? (PUBLIC_IPV6_LIST.check(address, 'ipv6') ? undefined : 'a reserved address')
}

/** Returns the canonical spelling of an address; undefined if the text is not an address. */
function normalizeAddress(address: string): string | undefined {
  if (isIP(address) === 4) return address
  const inBrackets = `http://[${address}]`
  if (isIP(address) === 0 || !URL.canParse(inBrackets)) return undefined
  const plain = new URL(inBrackets).hostname.slice(1, -1)
  return extractIpv4(parseIpv6Groups(plain), IPV4_MAPPED_PREFIX) ?? plain
}

/** Parses the eight groups of an IPv6 address in the spelling of a URL. */
function parseIpv6Groups(address: string): readonly number[] {
  const [head = [], tail = []] = address
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':').map((group) => parseInt(group, 16))))
  const isWhole = !address.includes('::')
  return isWhole ? head : [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail]
}

/** Returns the last 32 bits of an IPv6 address with this prefix as an IPv4 address. */
function extractIpv4(groups: readonly number[], prefix: readonly number[]): string | undefined {
  if (!prefix.every((group, index) => groups[index] === group)) return undefined
  const bytes = groups.slice(6).flatMap((group) => [group >> 8, group & 0xff])
  return bytes.join('.')
}

function createBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [written = '', bits] = network.split('/')
    const address = bits === undefined ? (normalizeAddress(written) ?? written) : written
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}
