// The headers of a request are those that Node itself would read.
import { createServer, IncomingMessage, type IncomingHttpHeaders } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { IndexedRequest } from '../../src/http/request/headers.js'

const RUNS = 300

type RequestClass = typeof IncomingMessage
type RawHeader = readonly [name: string, value: string]

const NAMES = [
  ...[
    'Host',
    'host',
    'HOST',
    'Cookie',
    'cookie',
    'Content-Type',
    'content-type',
    'CONTENT-TYPE',
    'User-Agent',
  ],
  ...['Accept', 'If-Match', 'If-None-Match', 'API-KEY', 'Api-Key', 'Authorization', 'X-Forwarded-For', 'Via'],
  ...[
    'x-forwarded-for',
    'Origin',
    'Referer',
    'sec-ch-ua',
    'Sec-CH-UA',
    'X-Own',
    'x-own',
    'Set-Cookie',
    'Age',
  ],
  ...[
    '7',
    '12',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'X-Request-Id',
    'Prefer',
    'Idempotency-Key',
  ],
]
const headers = fc.array(
  fc.tuple(
    fc.constantFrom(...NAMES),
    fc.constantFrom('', 'a', 'b=1', '"x", y', '203.0.113.7, 10.0.0.1', 'ä'),
  ),
  { maxLength: 12 },
)

const close: (() => void)[] = []
afterAll(() => {
  for (const each of close) each()
})

/** Starts a server that answers with the headers it reads, and returns a function that sends it requests. */
async function startEcho(Request: RequestClass): Promise<(raw: readonly RawHeader[]) => Promise<unknown>> {
  const options = { IncomingMessage: Request, requireHostHeader: false }
  const server = createServer(options, (request, response) => {
    response.end(JSON.stringify([request.headers, request.rawHeaders]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  close.push(() => {
    socket.destroy()
    server.close()
  })
  return async (raw) => {
    const lines = raw.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    socket.write(Buffer.from(`GET / HTTP/1.1\r\n${lines}\r\n`, 'latin1'))
    let text = ''
    for (;;) {
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      text += chunk.toString()
      const [head = '', body] = text.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
      if (body !== undefined && Buffer.byteLength(body) >= length) return JSON.parse(body) as unknown
    }
  }
}

function repeatHeader(count: number, name: string, value: string): RawHeader[] {
  return Array.from({ length: count }, (_, index) => [`${name}-${index}`, value])
}

async function compare(Request: RequestClass): Promise<void> {
  const [node, own] = await Promise.all([startEcho(IncomingMessage), startEcho(Request)])
  const expectEqual = async (raw: readonly RawHeader[]) => {
    // As text, so that the order counts.
    expect(JSON.stringify(await own(raw))).toBe(JSON.stringify(await node(raw)))
  }
  await fc.assert(
    fc.asyncProperty(headers, async (raw) => {
      await expectEqual(raw)
      // The same names again, whose layout is known now, with other values.
      await expectEqual(raw.map(([name, value]) => [name, `${value}2`]))
    }),
    { numRuns: RUNS, endOnFailure: true },
  )
  // More layouts and more headers than are remembered.
  for (let round = 0; round < 3; round++) {
    for (let layout = 0; layout < 12; layout++) await expectEqual(repeatHeader(3, `X-${layout}`, `${round}`))
    await expectEqual(repeatHeader(60, 'X', `${round}`))
  }
}

test('names in any spelling, repeated headers and names of object members are read as Node reads them', async () => {
  await compare(IndexedRequest)
})

/** Builds the headers from those that the client sent and those that Node reads. */
type HeaderReader = (raw: readonly string[], read: IncomingHttpHeaders) => IncomingHttpHeaders

function requestWith(read: HeaderReader): RequestClass {
  class Mutant extends IncomingMessage {}
  Object.defineProperty(Mutant.prototype, 'headers', {
    get(this: IncomingMessage) {
      return read(
        this.rawHeaders,
        Reflect.get<IncomingMessage, 'headers'>(IncomingMessage.prototype, 'headers', this),
      )
    },
  })
  return Mutant
}

const pairsOf = (raw: readonly string[]) =>
  raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1]] as const] : []))

function keepFirstValues(): HeaderReader {
  const known = new Map<string, IncomingHttpHeaders>()
  return (raw, read) => {
    const names = pairsOf(raw)
      .map(([name]) => name)
      .join()
    const found = known.get(names) ?? read
    known.set(names, found)
    return found
  }
}

test.for<[string, HeaderReader]>([
  [
    'keeps the last of repeated headers',
    (raw) => Object.fromEntries(pairsOf(raw).map(([n, v]) => [n.toLowerCase(), v])),
  ],
  ['keeps the spelling of names', (raw) => Object.fromEntries(pairsOf(raw))],
  ['keeps the values of an earlier request', keepFirstValues()],
])('a mutant that %s is caught', async ([, read]) => {
  await expect(compare(requestWith(read))).rejects.toThrow()
})
