// Where outgoing calls may go: never to this machine or into the network around it, unless the settings say so.
import { BlockList, isIP } from 'node:net'

interface AddressRange {
  readonly description: string
  readonly networks: readonly string[]
}

/** https://www.iana.org/assignments/iana-ipv4-special-registry, and one address where clouds keep what is not for others. */
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

/** Of the rest of IPv6 nothing is public but `PUBLIC_6`. */
const NON_PUBLIC_IPV6_RANGES: readonly AddressRange[] = [
  { description: 'a loopback address', networks: ['::1/128'] },
  { description: 'an unspecified address', networks: ['::/128'] },
  { description: 'a private address', networks: ['fc00::/7', 'fec0::/10'] },
  { description: 'a link-local address', networks: ['fe80::/10'] },
  { description: 'a multicast address', networks: ['ff00::/8'] },
  { description: 'an address for documentation', networks: ['2001:db8::/32', '3fff::/20'] },
  // Teredo is among the first of them. Both lead to IPv4 addresses by ways that nobody looks at here.
  { description: 'a reserved address', networks: ['2001::/23', '2002::/16'] },
]
const PUBLIC_IPV6_NETWORK = '2000::/3'

const IPV4_BLOCK_LISTS = NON_PUBLIC_IPV4_RANGES.map(({ description, networks }) => ({
  what: description,
  list: createBlockList(networks),
}))
const IPV6_BLOCK_LISTS = NON_PUBLIC_IPV6_RANGES.map(({ description, networks }) => ({
  what: description,
  list: createBlockList(networks),
}))
const PUBLIC_IPV6_LIST = createBlockList([PUBLIC_IPV6_NETWORK])

/** The same IPv4 address, for sockets. */
const IPV4_MAPPED_PREFIX = [0, 0, 0, 0, 0, 0xffff]
/** An IPv4 address behind a translator: networks that have IPv6 alone reach the public ones so. */
const NAT64_PREFIX = [0x64, 0xff9b, 0, 0, 0, 0]

export class EgressPolicy {
  readonly #hosts: ReadonlySet<string>
  readonly #networks: BlockList

  /** Hosts by name, addresses, and networks such as 10.0.0.0/8. */
  constructor(allow: readonly string[]) {
    const isAddress = (text: string) => isIP(text.split('/')[0] ?? '') > 0
    this.#hosts = new Set(allow.filter((text) => !isAddress(text)).map(normalizeHost))
    this.#networks = createBlockList(allow.filter(isAddress))
  }

  /** Whichever addresses it has. */
  allowsHost(host: string): boolean {
    return this.#hosts.has(normalizeHost(host))
  }

  /** What an address is, if no call may go there. */
  findBlockReason(address: string): string | undefined {
    const plain = normalizeAddress(address)
    if (plain === undefined) return 'no address'
    if (this.#networks.check(plain, isIP(plain) === 4 ? 'ipv4' : 'ipv6')) return undefined
    return isIP(plain) === 4 ? describeBlockedIpv4(plain) : describeBlockedIpv6(plain)
  }
}

/** As names are compared: a dot at the end changes nothing. */
function normalizeHost(host: string): string {
  return host.toLowerCase().replace(/\.$/, '')
}

function describeBlockedIpv4(address: string): string | undefined {
  return IPV4_BLOCK_LISTS.find(({ list }) => list.check(address, 'ipv4'))?.what
}

function describeBlockedIpv6(address: string): string | undefined {
  const translated = extractIpv4(parseIpv6Groups(address), NAT64_PREFIX)
  if (translated !== undefined) return describeBlockedIpv4(translated)
  const what = IPV6_BLOCK_LISTS.find(({ list }) => list.check(address, 'ipv6'))?.what
  return what ?? (PUBLIC_IPV6_LIST.check(address, 'ipv6') ? undefined : 'a reserved address')
}

/** In one spelling; undefined if it is none. */
function normalizeAddress(address: string): string | undefined {
  if (isIP(address) === 4) return address
  const inBrackets = `http://[${address}]`
  if (isIP(address) === 0 || !URL.canParse(inBrackets)) return undefined
  const plain = new URL(inBrackets).hostname.slice(1, -1)
  return extractIpv4(parseIpv6Groups(plain), IPV4_MAPPED_PREFIX) ?? plain
}

/** The eight numbers of an IPv6 address as a URL spells it. */
function parseIpv6Groups(address: string): readonly number[] {
  const [head = [], tail = []] = address
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':').map((group) => parseInt(group, 16))))
  const isWhole = !address.includes('::')
  return isWhole ? head : [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail]
}

/** The IPv4 address at the end of an IPv6 address that begins so. */
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
