// Cookies, credentials, and bytes that are not quite HTTP.
import * as c from './case.js'
import { BAD, CONTACTS, LOGIN, request, row, show, type Case } from './case.js'
import { credentials, rawRequest } from '../exchange.js'

const cookies: readonly Case[] = [
  ...[
    '',
    '=',
    ';',
    'JSESSIONID',
    'JSESSIONID=',
    'JSESSIONID=;',
    'JSESSIONID=null',
    '\x80\xff=\xfe',
    'jsessionid=x',
  ],
  ...[`JSESSIONID=' OR '1'='1`, `JSESSIONID=1; DROP TABLE verso_session;--`, 'JSESSIONID=%00', '__proto__=x'],
  ...['JSESSIONID=../../etc/passwd', `JSESSIONID=${'A'.repeat(43)}`, `JSESSIONID=${'A'.repeat(42)}=`],
  ...[`JSESSIONID=${'A'.repeat(8_000)}`, `$Version=1; JSESSIONID=${'B'.repeat(43)}`],
  Array.from({ length: 500 }, (_, index) => `c${index}=${index}`).join('; '),
].map((cookie) => row(`a find with Cookie: ${show(cookie)}`, c.get(CONTACTS, { cookie }), LOGIN))

const accounts: readonly (readonly [username: unknown, password: unknown])[] = [
  [{}, {}],
  [['ada'], ['x']],
  [true, 1],
  ['ada', null],
  [{ $gt: '' }, { $gt: '' }],
  [`ada' --`, 'x'],
  [`' OR '1'='1`, `' OR '1'='1`],
  ['ada', `' OR '1'='1`],
  ['ada\0', 'x'],
  ['ada', 'x\0y'],
  ['\ud800', '\ud800'],
  ['ada', '\udfff'],
  ['x'.repeat(16_000), 'x'],
  ['ada', 'x'.repeat(16_000)],
  ['ada', 'é'.repeat(1_025)],
  ['__proto__', 'x'],
  ['constructor', 'x'],
  [' ada', 'x'],
  ['../ada', 'x'],
]

const logins: readonly Case[] = [
  ...accounts.map(([username, password], index) => {
    const body = JSON.stringify({ username, password })
    return row(`login ${index} with ${show(body)}`, c.login(body), LOGIN)
  }),
  row('a login inside of data', c.login('{"data":{"username":"ada","password":"x"}}'), LOGIN),
  row('a login form with lists', c.login('username[]=ada&password[]=x'), LOGIN),
  row('a login form that pollutes', c.login('__proto__[polluted]=1&__proto__.polluted=1&__proto__=x'), LOGIN),
  row('a login that is no UTF-8', c.login(Buffer.from('{"username":"\xff"}', 'latin1')), BAD),
  row('a login that pollutes', c.login('{"__proto__":{"polluted":1}}'), BAD),
  row('a login of more than 16 KiB', c.login(`{"password":"${'x'.repeat(16_384)}"}`), c.TOO_LARGE),
  row(
    'a login with broken JSON and a broken content type',
    c.login('{"username":"ada"', { 'content-type': 'json' }),
    BAD,
  ),
  row('a login with an empty content type', c.login(credentials('ada', 'x'), { 'content-type': '' }), LOGIN),
]

const raw = (name: string, bytes: string | Buffer, outcome: readonly [number, string], isCut = false) =>
  row(name, { raw: bytes, isCut }, outcome)
const line = (text: string, headers = {}) => rawRequest(`${text} HTTP/1.1`, headers)

const lines: readonly Case[] = [
  raw('a request of random bytes', Buffer.from([0, 1, 2, 3, 255, 254, 13, 10, 13, 10]), BAD),
  raw('a TLS handshake', Buffer.from('16030100b5010000b10303', 'hex'), BAD, true),
  raw('an SMTP greeting', 'EHLO localhost\r\n\r\n', BAD),
  raw('an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', BAD),
  raw('a request in HTTP/0.9 without a session', `GET ${CONTACTS}\r\n\r\n`, LOGIN),
  raw('a request in HTTP/1.0 without a Host or a session', `GET ${CONTACTS} HTTP/1.0\r\n\r\n`, LOGIN),
  raw('a request in HTTP/9.9', rawRequest('GET / HTTP/9.9'), BAD),
  raw('a request with its method in lower case', line('get /healthz'), BAD),
  raw('a request with an unknown method', line('FETCH /healthz'), BAD),
  raw('a request with a space in its path', line('GET /ws/rest/a b'), BAD),
  raw('a request with a control character in its path', line('GET /ws/rest/a\x01b'), BAD),
  raw('a request with a path without a slash', line('GET ws/rest'), BAD),
  raw('a request for an absolute URL without a session', line(`GET http://localhost${CONTACTS}`), LOGIN),
  raw(
    'a request for an absolute URL of an unknown model',
    request('GET', 'http://localhost/ws/rest/x'),
    c.NO_MODEL,
  ),
  raw('OPTIONS *', line('OPTIONS *'), c.bare(204)),
  raw('a request with an unknown Expect header', line('GET /', { expect: 'a miracle' }), c.bare(417)),
  raw(
    'a request for an upgrade',
    request('GET', '/ws/rest/x', { connection: 'upgrade, close', upgrade: 'websocket' }),
    c.NO_MODEL,
  ),
]

const put = (headers: Readonly<Record<string, string>>, body = '') => request('PUT', CONTACTS, headers, body)
const chunked = { 'transfer-encoding': 'chunked' }

const lengths: readonly Case[] = [
  raw('a create with a Content-Length that is no number', put({ 'content-length': 'abc' }), BAD),
  raw('a create with a negative Content-Length', put({ 'content-length': '-1' }), BAD),
  raw('a create with a sign in its Content-Length', put({ 'content-length': '+2' }, '{}'), BAD),
  raw('a create with a list as its Content-Length', put({ 'content-length': '2, 2' }, '{}'), BAD),
  raw(
    'a create with two Content-Length headers',
    put({ 'content-length': '2', 'Content-Length': '3' }, '{}'),
    BAD,
  ),
  raw('a create with a Content-Length past 2^64', put({ 'content-length': '99999999999999999999' }), BAD),
  raw('a create with a body that ends too early', put({ 'content-length': '100' }, '{"data":{}}'), BAD, true),
  raw(
    'a create with a Content-Length that cuts the body',
    put({ 'content-length': '5' }, '{"data":{}}'),
    BAD,
  ),
  raw(
    'a create with Content-Length and Transfer-Encoding',
    put({ 'content-length': '2', ...chunked }, '{}'),
    BAD,
  ),
  raw('a create with an unknown Transfer-Encoding', put({ 'transfer-encoding': 'gzip' }, '{}'), BAD),
  raw(
    'a create with Transfer-Encoding: chunked, identity',
    put({ 'transfer-encoding': 'chunked, identity' }, '{}'),
    BAD,
  ),
  raw('a create with a chunk without a size', put(chunked, 'x\r\n{}\r\n0\r\n\r\n'), BAD),
  raw('a create with a chunk longer than its size', put(chunked, '1\r\n{}\r\n0\r\n\r\n'), BAD),
  raw('a create with chunks that end too early', put(chunked, '2\r\n{}\r\n'), BAD, true),
]

const manyHeaders = Object.fromEntries(
  Array.from({ length: 2_000 }, (_, index) => [`x-${index}`, String(index)]),
)

const headers: readonly Case[] = [
  raw('a request without a Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', BAD),
  raw(
    'a request with two Host headers, the second one foreign',
    line('GET /ws', { Host: 'evil.example' }),
    LOGIN,
  ),
  raw(
    'a request with two Host headers, the first one foreign',
    line('GET /ws', { host: 'evil.example', Host: 'localhost' }),
    c.MISDIRECTED,
  ),
  raw(
    'a request with a header of 20 kB',
    request('GET', CONTACTS, { 'x-long': 'x'.repeat(20_000) }),
    c.HUGE_HEADERS,
  ),
  raw(
    'a request with a cookie of 100 kB',
    request('GET', CONTACTS, { cookie: `JSESSIONID=${'A'.repeat(100_000)}` }),
    c.HUGE_HEADERS,
  ),
  raw('a request with a path of 20 kB', request('GET', `/${'x'.repeat(20_000)}`), c.HUGE_HEADERS),
  raw('a request with 2,000 headers', request('GET', CONTACTS, manyHeaders), c.HUGE_HEADERS),
  raw('a request with a space before the colon of a header', line('GET /', { 'x-space ': 'x' }), BAD),
  raw('a request with a header without a name', line('GET /', { '': 'x' }), BAD),
  raw(
    'a request with a header without a colon',
    'GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n',
    BAD,
  ),
  raw('a request with a folded header', 'GET / HTTP/1.1\r\n Host: localhost\r\n\r\n', BAD),
  raw('a request with NUL in a header', line('GET /', { 'x-nul': 'a\0b' }), BAD),
  raw('a request with a bare carriage return in a header', line('GET /', { 'x-cr': 'a\rb' }), BAD),
  raw('a request that ends in its headers', 'GET /healthz HTTP/1.1\r\nHost: local', BAD, true),
  raw(
    'a create with two content types',
    put({ 'content-length': '11', 'Content-Type': 'text/plain' }, '{"data":[]}'),
    BAD,
  ),
]

export const protocol: readonly Case[] = [...[cookies, logins, lines, lengths, headers].flat()]
