// Bodies that are not JSON, not UTF-8, not an object, too large, too deep, or of another content type.
import { gzipSync } from 'node:zlib'
import {
  BAD,
  create,
  createBy,
  DONE,
  INVALID,
  login,
  MEDIA,
  MIB,
  request,
  row,
  show,
  TOO_LARGE,
  words,
  type Case,
} from './case.js'

const CONTACTS = '/ws/rest/crm.Contact'

const shapes: readonly Case[] = [
  ...words`null true 1 "x" [] {} [{"data":{}}] {"data":null} {"data":[]} {"data":[{}]} {"data":"x"} {"data":1} {"Data":{}}
    {"data":{} {"data":{}}x {"data":{}}{"data":{}} {"data":{},} {'data':{}} {data:{}} {"data":{},"data":[]} data=%7B%7D
    {"data":{"firstName":NaN}} {"data":{"firstName":Infinity}} {"data":{"firstName":01}} {"data":{"firstName":+1}}
    {"data":{"firstName":"\x41"}} {"data":{"firstName":"\u12"}} <data/>`,
  ...['', ' ', '{"data ":{}}', '{"data":{"firstName":"\t"}}', '{"data":{}}\0', '// note\n{"data":{}}'],
  ...['['.repeat(100_000), '{"data":'.repeat(50_000), nested('[', 100_000, ']')],
].map((body) => row(`a create with the body ${show(body)}`, createBy(body), BAD))

const polluting: readonly Case[] = [
  ...words`{"__proto__":{"polluted":1},"data":{}} {"data":{"__proto__":{"polluted":1}}} {"data":{"__proto__":null}}
    {"data":{"phones":{"__proto__":{"polluted":1}}}} {"data":{"phones":[[{"a":{"__proto__":[]}}]]}}
    {"data":{"\u005f_proto__":{"polluted":1}}} {"data":{"__pr\u006fto__":1}} {"constructor":{"prototype":{}},"data":{}}
    {"data":{"constructor":{"prototype":{"polluted":1}}}} {"data":{"phones":{"constructor":{"prototype":{"polluted":1}}}}}
    {"data":{"phones":[{"constructor":{"prototype":1}}]}}`,
  '{"data":{"__proto__" :1}}',
].map((body) => row(`a create with the body ${show(body)}`, createBy(body), BAD))

const latin1 = (text: string) => createBy(Buffer.from(text, 'latin1'))

const bytes: readonly Case[] = [
  row('a create with a body that is no UTF-8', latin1('{"data":{"firstName":"\xff"}}'), BAD),
  row('a create with a body in Latin-1', latin1('{"data":{"firstName":"\xe9"}}'), BAD),
  row('a create with an overlong encoding in UTF-8', latin1('{"data":{"firstName":"\xc0\xaf"}}'), BAD),
  row(
    'a create with half of a surrogate pair in UTF-8',
    latin1('{"data":{"firstName":"\xed\xa0\x80"}}'),
    BAD,
  ),
  row('a create with a truncated UTF-8 character', latin1('{"data":{}}\xe2\x82'), BAD),
  row('a create with a body in UTF-16', createBy(Buffer.from('\ufeff{"data":{}}', 'utf16le')), BAD),
  row('a create with a byte order mark before the body', createBy('\ufeff{"data":{}}'), DONE),
  row('a create with a body of 1,000 zero bytes', createBy(Buffer.alloc(1_000)), BAD),
]

const types: readonly Case[] = [
  '',
  ...words`text/plain text/json text/html application/x-www-form-urlencoded application/xml application/octet-stream
    application/jsonx application/json-patch+json application/ld+json application/merge-patch+json application/problem+json
    */* json application/ application application/json,text/plain application/json;charset=latin1
    application/json;charset=utf-16 application/json;charset=utf-7 application/json;charset="" multipart/form-data;boundary=x`,
  ...['application/json; charset=ISO-8859-1', 'text/plain; application/json'],
].map((type) =>
  row(`a create with Content-Type: ${type}`, createBy('{"data":{}}', { 'content-type': type }), MEDIA),
)

const encodings: readonly Case[] = ['gzip', 'deflate', 'br', 'GZIP', 'gzip, identity', 'x'].map((encoding) =>
  row(
    `a create with Content-Encoding: ${encoding}`,
    createBy(gzipSync('{"data":{}}'), { 'content-encoding': encoding }),
    MEDIA,
  ),
)

const otherTypes: readonly Case[] = [
  row('a create without a content type', { method: 'PUT', path: CONTACTS, body: '{"data":{}}' }, MEDIA),
  row('a create without a content type and without a body', { method: 'PUT', path: CONTACTS }, BAD),
  row('a create with a compressed body without Content-Encoding', createBy(gzipSync('{"data":{}}')), BAD),
]

const chunked = (body: string) =>
  request(
    'PUT',
    CONTACTS,
    { 'transfer-encoding': 'chunked' },
    `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  )
const manyFields = Array.from({ length: 50_000 }, (_, index) => `"f${index}":1`).join()
const deep = (field: string) => createBy(`{"data":{"${field}":${nested('[', 100_000, ']')}}}`)

const sizes: readonly Case[] = [
  row(
    'a create with a body of more than 2 MiB',
    create('crm.Contact', { notes: 'x'.repeat(2 * MIB - 20) }),
    TOO_LARGE,
  ),
  row(
    'a create with a Content-Length of a terabyte',
    { raw: request('PUT', CONTACTS, { 'content-length': '1099511627776' }) },
    TOO_LARGE,
  ),
  row('a create with a chunked body of 3 MiB', { raw: chunked('x'.repeat(3 * MIB)) }, TOO_LARGE),
  row(
    'a create with a text of 1 MiB and a byte',
    create('crm.Contact', { notes: 'x'.repeat(MIB + 1) }),
    INVALID,
    {
      faults: ['notes'],
    },
  ),
  row(
    'a create with a JSON value of more than 1 MiB',
    create('crm.Contact', { phones: 'x'.repeat(MIB) }),
    INVALID,
    {
      faults: ['phones'],
    },
  ),
  row('a create with a string of 256 letters', create('crm.Contact', { email: 'x'.repeat(256) }), INVALID, {
    faults: ['email'],
  }),
  row('a create with a string of 256 emoji', create('crm.Contact', { email: '😀'.repeat(256) }), INVALID, {
    faults: ['email'],
  }),
  row(
    'a create with a JSON value 66 levels deep',
    createBy(`{"data":{"phones":${nested('[', 66, ']')}}}`),
    INVALID,
    {
      faults: ['phones'],
    },
  ),
  row(
    'a create with a JSON value of objects 66 levels deep',
    createBy(`{"data":{"phones":${nested('{"a":', 66, '}', '1')}}}`),
    INVALID,
  ),
  row('a create with a JSON value 100,000 levels deep', deep('phones'), BAD),
  row('a create with 100,000 levels in an ignored field', deep('fullName'), BAD),
  row(
    'a create with 100,000 levels beside the data',
    createBy(`{"data":{},"more":${nested('[', 100_000, ']')}}`),
    BAD,
  ),
  row(
    'a create with an Idempotency-Key and 100,000 levels',
    { ...deep('createdBy'), headers: { 'content-type': 'application/json', 'idempotency-key': 'deep' } },
    BAD,
  ),
  row('a login with 5,000 levels', login(`{"username":${nested('[', 5_000, ']')}}`), BAD),
  row('a login with 100,000 levels', login(`{"username":${nested('[', 100_000, ']')}}`), TOO_LARGE),
  row('a create with 50,000 unknown fields', createBy(`{"data":{${manyFields}}}`), BAD),
  row(
    'a create with an unknown field of a million letters',
    create('crm.Contact', { ['x'.repeat(1_000_000)]: 1 }),
    INVALID,
  ),
]

function nested(open: string, levels: number, close: string, core = ''): string {
  return open.repeat(levels) + core + close.repeat(levels)
}

export const bodies: readonly Case[] = [
  ...[shapes, polluting, bytes, types, encodings, otherTypes, sizes].flat(),
]
