// Webhooks never call addresses that are not public, in any spelling, nor through a name that changes its address after the check.
import { describe, expect, test } from 'vitest'
import {
  resolveAddresses,
  readHost,
  UnreachableError,
  resolveHost,
  findUrlError,
  type HostResolver,
} from '../../src/service/egress/destination.js'
import { EgressPolicy } from '../../src/service/egress/egress-policy.js'

const nowhere = new EgressPolicy([])

/** Hosts as a user may write them in a URL. */
const NOT_PUBLIC = [
  ...['127.0.0.1', '127.1', '127.0.1', '127.255.255.254', '0x7f.1', '0x7f000001', '0X7F.0.0.1', '2130706433'],
  ...[
    '017700000001',
    '0177.0.0.1',
    '127.0.0.1.',
    '１２７.0.0.1',
    '127。0。0。1',
    '%31%32%37.0.0.1',
    '0',
    '0.0.0.0',
  ],
  ...['0x0', '00', '10.0.0.1', '10.255.255.255', '167772161', '0x0a000001', '012.0.0.1', '172.16.0.1'],
  ...['172.31.255.255', '192.168.0.1', '192.168.257', '3232235521', '169.254.169.254', '2852039166'],
  ...[
    '0xa9fea9fe',
    '169.254.43518',
    '100.64.0.1',
    '100.100.100.200',
    '100.127.255.255',
    '192.0.0.1',
    '192.0.2.1',
  ],
  ...[
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.7',
    '203.0.113.9',
    '192.88.99.1',
    '224.0.0.1',
    '239.255.255.250',
  ],
  ...['240.0.0.1', '255.255.255.255', '4294967295', '168.63.129.16', '[::1]', '[0:0:0:0:0:0:0:1]', '[::]'],
  ...[
    '[0000:0000:0000:0000:0000:0000:0000:0001]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::FFFF:127.0.0.1]',
  ],
  ...[
    '[0:0:0:0:0:ffff:127.0.0.1]',
    '[::ffff:0:127.0.0.1]',
    '[::127.0.0.1]',
    '[::7f00:1]',
    '[::ffff:10.0.0.1]',
  ],
  ...['[::ffff:a9fe:a9fe]', '[::ffff:192.168.1.1]', '[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]'],
  ...[
    '[64:ff9b::169.254.169.254]',
    '[64:ff9b:1::1]',
    '[64:ff9b:1::8.8.8.8]',
    '[2002:7f00:1::]',
    '[2002:a00:1::1]',
  ],
  ...[
    '[2002:808:808::]',
    '[2001:0:4136:e378:8000:63bf:80ff:fffe]',
    '[2001::1]',
    '[2001:2::1]',
    '[2001:10::1]',
  ],
  ...['[2001:db8::1]', '[3fff::1]', '[fc00::1]', '[fd00:ec2::254]', '[fe80::1]', '[febf::1]', '[fec0::1]'],
  ...['[ff02::1]', '[ff0e::1]', '[100::1]', '[5f00::1]', '[4000::1]', '[e000::1]'],
]

const PUBLIC = [
  ...['8.8.8.8', '1.1.1.1', '93.184.216.34', '126.255.255.255', '128.0.0.1', '11.0.0.1', '172.15.255.255'],
  ...['172.32.0.1', '192.167.1.1', '100.63.255.255', '100.128.0.1', '169.253.1.1', '223.255.255.255'],
  ...[
    '[2606:2800:220:1:248:1893:25c8:1946]',
    '[2a00:1450:4001:82a::200e]',
    '[::ffff:8.8.8.8]',
    '[64:ff9b::8.8.8.8]',
  ],
  ...['[2001:4860:4860::8888]', '[2001:200::1]', '134744072'],
]

describe.for(['http', 'https'])('%s', (scheme) => {
  test.for(NOT_PUBLIC)('%s is rejected in the URL of a webhook, and is never called', async (spelled) => {
    const url = `${scheme}://${spelled}:8080/hook`
    expect(findUrlError(url, nowhere)).toMatch(
      /^points to an? .*: start the service with --webhook-allow \S+ to allow it$/,
    )
    const never: HostResolver = async () => Promise.reject(new Error('an address was looked up as a name'))
    await expect(resolveAddresses(readHost(new URL(url)), nowhere, never)).rejects.toThrow(UnreachableError)
  })
})

test.for(PUBLIC)('%s is a public address and can be called', async (spelled) => {
  const url = `https://${spelled}/hook`
  expect(findUrlError(url, nowhere)).toBeUndefined()
  const host = readHost(new URL(url))
  expect(await resolveAddresses(host, nowhere, resolveHost)).toEqual([
    { address: host, family: host.includes(':') ? 6 : 4 },
  ])
})

test('the list of blocked hosts has more than 60 spellings and no duplicate', () => {
  expect(NOT_PUBLIC.length).toBeGreaterThan(60)
  expect(new Set(NOT_PUBLIC).size).toBe(NOT_PUBLIC.length)
})

/** A resolver that answers these addresses for every name. */
const resolveTo =
  (...addresses: string[]): HostResolver =>
  async () =>
    Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))

describe('host names', () => {
  const leadingInside = [
    ['127.0.0.1'],
    ['10.1.2.3'],
    ['::1'],
    ['fe80::1%eth0'],
    ['::ffff:169.254.169.254'],
    ['8.8.8.8', '127.0.0.1'],
    ['127.0.0.1', '8.8.8.8'],
    ['2606:2800:220:1:248:1893:25c8:1946', 'fd00::1'],
    ['8.8.8.8', 'not an address'],
    [],
  ]
  test.for(leadingInside)(
    'a name is not called if it has no address or one that is not public (the first is %s)',
    async (addresses) => {
      await expect(resolveAddresses('hooks.example', nowhere, resolveTo(...addresses))).rejects.toThrow(
        UnreachableError,
      )
    },
  )

  test.for(['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'a.b.localhost.'])(
    '%s is rejected in the URL of a webhook as a loopback name',
    (name) => {
      expect(findUrlError(`http://${name}/`, nowhere)).toMatch(/^points to a loopback address/)
    },
  )

  test('localhost is not called, as the system resolver answers it', async () => {
    await expect(resolveAddresses('localhost', nowhere, resolveHost)).rejects.toThrow(UnreachableError)
  })

  test('a call may use every public address of a name', async () => {
    const addresses = ['8.8.8.8', '2606:2800:220:1:248:1893:25c8:1946']
    expect(await resolveAddresses('hooks.example', nowhere, resolveTo(...addresses))).toHaveLength(2)
  })
})

describe('--webhook-allow', () => {
  test('an allowed address is accepted in every spelling, other addresses are rejected', () => {
    const reach = new EgressPolicy(['127.0.0.1', '::1'])
    for (const host of ['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', '[::1]', 'localhost'])
      expect(findUrlError(`http://${host}/`, reach)).toBeUndefined()
    for (const host of ['127.0.0.2', '10.0.0.1', '[64:ff9b::127.0.0.1]', '[::127.0.0.1]', '[::2]'])
      expect(findUrlError(`http://${host}/`, reach), host).toMatch(/^points to/)
  })

  test('an allowed network accepts its addresses, also IPv4-mapped ones, and no others', () => {
    const reach = new EgressPolicy(['10.0.0.0/8', 'fd00:1::/32'])
    expect(['10.1.2.3', '::ffff:10.1.2.3', 'fd00:1:2::3'].map((each) => reach.findBlockReason(each))).toEqual(
      [...[undefined, undefined, undefined]],
    )
    expect(['11.0.0.1', '172.16.0.1', 'fd00:2::1'].map((each) => reach.findBlockReason(each))).toEqual([
      ...[undefined, 'a private address', 'a private address'],
    ])
  })

  test('an allowed host is called wherever it resolves to, other hosts at the same address are not', async () => {
    const reach = new EgressPolicy(['hooks.internal'])
    expect(await resolveAddresses('Hooks.Internal', reach, resolveTo('10.0.0.1'))).toHaveLength(1)
    await expect(resolveAddresses('other.internal', reach, resolveTo('10.0.0.1'))).rejects.toThrow(
      UnreachableError,
    )
    await expect(resolveAddresses('a.hooks.internal', reach, resolveTo('10.0.0.1'))).rejects.toThrow(
      UnreachableError,
    )
  })
})

test.for([
  ...[
    'ftp://hooks.example/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    '//hooks.example',
    'hooks.example',
  ],
  ...[
    'http:hooks.example',
    'http://',
    'http://[',
    'http://a b/',
    ' http://hooks.example',
    'http://hooks.example/\n',
  ],
  ...[
    'http://user@hooks.example/',
    'http://u:p@hooks.example/',
    'http://:p@hooks.example/',
    'http://hooks.example/#a',
  ],
  ...[
    'http://hooks.example/#',
    'http://999.1.1.1/',
    'http://hooks.example:99999/',
    `http://a.example/${'a'.repeat(2_000)}`,
  ],
])('%s is rejected as the URL of a webhook', (url) => {
  expect(findUrlError(url, new EgressPolicy(['0.0.0.0/0', '::/0']))).toMatch(/^must /)
})
