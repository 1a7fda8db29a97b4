// The hand-written parts of webhooks against libraries: the list of non-public addresses against ipaddr.js, the signatures against standardwebhooks.
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { EgressPolicy } from '../../src/service/egress/egress-policy.js'
import { buildSignatureHeaders, createSecret } from '../../src/service/webhooks/signature.js'

const policy = new EgressPolicy([])

/** Special ranges that the registries of IANA mark as globally reachable: AS112 (DNS sinks), AMT (multicast relays), NAT64. */
const REACHABLE_RANGES = ['unicast', 'as112', 'amt']

/** True if ipaddr.js knows the address as one of the internet. Mapped and translated addresses count as the IPv4 address inside. */
function isPublicByLibrary(text: string): boolean {
  const address = ipaddr.process(text)
  if (address.range() !== 'rfc6052') return REACHABLE_RANGES.includes(address.range())
  return isPublicByLibrary(address.toByteArray().slice(12).join('.'))
}

const byte = fc.integer({ min: 0, max: 255 })
const group = fc.integer({ min: 0, max: 0xffff })
const ipv4 = fc.tuple(byte, byte, byte, byte).map((bytes) => bytes.join('.'))
/** First groups near the edges of special ranges, where a random address would hardly ever fall. */
const EDGE_GROUPS = [
  0, 0x64, 0x100, 0x2001, 0x2002, 0x2620, 0x3fff, 0x5f00, 0xfbff, 0xfc00, 0xfdff, 0xfe80, 0xfec0, 0xff02,
]
const EDGE_SECOND_GROUPS = [0, 1, 2, 3, 4, 0x10, 0x20, 0x30, 0x1ff, 0x200, 0xdb8, 0xff9b, 0xffff]
const ipv6 = fc
  .tuple(
    fc.oneof(group, fc.constantFrom(...EDGE_GROUPS)),
    fc.oneof(group, fc.constantFrom(...EDGE_SECOND_GROUPS)),
    fc.array(fc.oneof(fc.constant(0), fc.constant(0xffff), group), { minLength: 6, maxLength: 6 }),
  )
  .map(([first, second, rest]) => [first, second, ...rest].map((value) => value.toString(16)).join(':'))

/** First bytes whose networks differ by the second byte, and pairs whose networks differ by the third. */
const SPLIT_FIRSTS = [100, 168, 169, 172, 192, 198, 203]
const SPLIT_PAIRS = ['168.63', '192.0', '192.31', '192.52', '192.88', '192.175', '198.51', '203.0']
const BYTES = Array.from({ length: 256 }, (_, value) => value)

function listIpv4Samples(): string[] {
  const pairs = BYTES.flatMap((first) =>
    (SPLIT_FIRSTS.includes(first) ? BYTES : [0, 128, 255]).map((second) => `${first}.${second}`),
  )
  return pairs.flatMap((pair) =>
    (SPLIT_PAIRS.includes(pair) ? BYTES : [0, 255]).map((third) => `${pair}.${third}.1`),
  )
}

describe('addresses that webhooks may call', () => {
  test('no address that ipaddr.js counts as special can be called', () => {
    fc.assert(
      fc.property(fc.oneof(ipv4, ipv6), (address) => {
        if (policy.findBlockReason(address) === undefined)
          expect(isPublicByLibrary(address), address).toBe(true)
      }),
      { numRuns: 20_000 },
    )
  })

  test('every IPv4 network is judged as ipaddr.js judges it', () => {
    const differing = listIpv4Samples().filter(
      (address) => (policy.findBlockReason(address) === undefined) !== isPublicByLibrary(address),
    )
    expect(differing).toEqual([])
  })

  test('a policy without the private networks is caught', () => {
    const mutant = new EgressPolicy(['10.0.0.0/8', '192.168.0.0/16'])
    const called = ['10.1.2.3', '192.168.1.1'].filter(
      (address) => mutant.findBlockReason(address) === undefined,
    )
    expect(called.map(isPublicByLibrary)).toEqual([false, false])
  })
})

describe('signatures', () => {
  const timestampS = Math.floor(Date.now() / 1_000)

  test('standardwebhooks verifies every signature, and signs the same', () => {
    fc.assert(
      fc.property(fc.json(), fc.uuid(), (body, id) => {
        const secret = createSecret()
        const headers = buildSignatureHeaders(secret, { id, timestampS, body })
        const library = new Webhook(secret)
        expect(library.verify(body, headers)).toEqual(JSON.parse(body))
        expect(headers['webhook-signature']).toBe(library.sign(id, new Date(timestampS * 1_000), body))
      }),
    )
  })

  test('standardwebhooks rejects a signature of another body, id, time or secret', () => {
    const secret = createSecret()
    const content = { id: 'msg_1', timestampS, body: '{"data":[]}' }
    const headers = buildSignatureHeaders(secret, content)
    const library = new Webhook(secret)
    expect(() => library.verify('{"data":[1]}', headers)).toThrow()
    expect(() => library.verify(content.body, { ...headers, 'webhook-id': 'msg_2' })).toThrow()
    expect(() =>
      library.verify(content.body, { ...headers, 'webhook-timestamp': String(timestampS - 1) }),
    ).toThrow()
    expect(() => new Webhook(createSecret()).verify(content.body, headers)).toThrow()
  })
})
