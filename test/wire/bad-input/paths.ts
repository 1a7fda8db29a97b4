// Ids, models, paging, versions and tags in every spelling but the right ones.
import * as c from './case.js'
import { BAD, CONTACTS, NO_MODEL, NOT_FOUND, row, show, TARGET, withBody, words, type Case } from './case.js'

const ids: readonly Case[] = [
  ...words`0 -1 +1 01 1.0 1.5 1e3 0x1 abc %20 1%20 %201 1%0a 1%00 %EF%BC%91 %D9%A3 NaN Infinity null undefined true
    9007199254740991 9007199254740992 9007199254740993 9223372036854775808 99999999999999999999 1,2 1;2 1'-- 1%20OR%201=1
    1%2f2 1%252f2 [1] %7B%7D 1n 1_0 .. . %2e%2e ..%2f1 :id * $1 %25 __proto__ constructor`,
  '1'.repeat(300),
  '1'.repeat(9_000),
].map((id) => row(`a read of id ${show(id)}`, c.get(`${CONTACTS}/${id}`), NOT_FOUND))

const otherIds: readonly Case[] = [
  row('an update of id 0', withBody('POST', `${CONTACTS}/0`, '{"data":{"version":0}}'), NOT_FOUND),
  row(
    'an update of an id that is no number',
    withBody('POST', `${CONTACTS}/one`, '{"data":{"version":0}}'),
    NOT_FOUND,
  ),
  row(
    'an update of id 2^53+1',
    withBody('POST', `${CONTACTS}/9007199254740993`, '{"data":{"version":0}}'),
    NOT_FOUND,
  ),
  row('a delete of id -1', c.remove(`${CONTACTS}/-1`), NOT_FOUND),
  row('a delete of id 2^64+1', c.remove(`${CONTACTS}/18446744073709551617`), NOT_FOUND),
  row('a read of an id in percent-encoded digits', c.get(`${CONTACTS}/%31`), c.DONE),
  row('a read of an id with a broken percent-encoding', c.get(`${CONTACTS}/%zz`), BAD),
  row('a read of an id that is no UTF-8', c.get(`${CONTACTS}/%ff`), BAD),
  row('a read of an unknown path below a record', c.get(`${TARGET}/1`), NOT_FOUND),
]

const models: readonly Case[] = [
  ...words`crm.Contact'-- crm.Contact%22 crm.Contact%3BDROP%20TABLE%20x x'%20UNION%20SELECT%201-- __proto__ constructor
    prototype toString hasOwnProperty valueOf crm.contact CRM.CONTACT Contact crm crm. .Contact crm..Contact .. . %2e%2e
    ..%2f..%2fetc%2fpasswd crm.Contact%00 %20crm.Contact crm.Contact%20 crm%2FContact crm.Contact%2F1 crm%5cContact
    verso.auth.Users verso_session verso_log sqlite_master pg_catalog.pg_user information_schema.tables crm.C%D0%BEntact
    %F0%9F%98%80 * :model %3Cscript%3E $%7B7*7%7D %25`,
  'x'.repeat(300),
  'x'.repeat(8_000),
].map((model) => row(`a find in the model ${show(model)}`, c.get(`/ws/rest/${model}`), NO_MODEL))

const otherModels: readonly Case[] = [
  row(
    'a find in a model of 8,000 letters without a session',
    c.get(`/ws/rest/${'x'.repeat(8000)}`, { cookie: '' }),
    c.LOGIN,
  ),
  row('a find without a model', c.get('/ws/rest'), NOT_FOUND),
  row('a find in a model with an empty name', c.get('/ws/rest/'), NOT_FOUND),
  row('a read in a model with an empty name', c.get('/ws/rest//1'), NO_MODEL),
  row('a find in a model with a broken percent-encoding', c.get('/ws/rest/%'), BAD),
  row('a find in a model that is no UTF-8', c.get('/ws/rest/%c0%ae'), BAD),
  row('a create in an unknown model', c.create('crm.Nothing', {}), NO_MODEL),
  row(
    'a create in verso.auth.Users, which is no model',
    c.create('verso.auth.Users', { username: 'eve', roles: ['administrator'] }),
    NO_MODEL,
  ),
  row('an update of a bad id in an unknown model', withBody('POST', '/ws/rest/x/x', '{"data":{}}'), NO_MODEL),
  row('a delete in an unknown model', c.remove('/ws/rest/crm.Nothing/1'), NO_MODEL),
]

const paging: readonly Case[] = ['offset', 'limit'].flatMap((name) =>
  [
    '',
    ...words`-1 +1 %2B1 -0 1.0 1.5 1e3 0x10 abc NaN Infinity null true 1,2 %201 1%20 1%00 9007199254740992 %EF%BC%91 %221%22
      99999999999999999999 1'-- 1;DROP 1%20OR%201=1 [1] %ff`,
    `1&${name}=2`,
    `&${name}=1`,
    '1'.repeat(5_000),
  ].map((value) => row(`a find with ${name}=${show(value)}`, c.get(`${CONTACTS}?${name}=${value}`), BAD)),
)

const rule = 'must be a whole number from 0 to 9007199254740991'
const bothPagings: readonly Case[] = [
  row('a find with a bad offset and a bad limit', c.get(`${CONTACTS}?offset=x&limit=y`), BAD, {
    says: `"offset ${rule}; limit ${rule}"`,
  }),
]

const otherwiseSpelled: readonly Case[] = words`asof as_of AsOf AS-OF`.flatMap((word) =>
  [CONTACTS, TARGET].map((path) =>
    row(`GET ${path} with ${word} instead of asOf`, c.get(`${path}?${word}=2020-01-01`), BAD, {
      says: `unknown parameter \\"${word}\\" (did you mean \\"asOf\\"?)`,
    }),
  ),
)

const asWritten = (version: string) =>
  withBody('POST', TARGET, `{"data":{"version":${version},"firstName":"x"}}`)

const versions: readonly Case[] = [
  row('an update without a version', c.update({ firstName: 'x' }), BAD),
  ...words`null -1 1.5 "1" "" true [] [1] {} 9007199254740992 9007199254740993 -9007199254740992 1e300 1e400 -1e400`.map(
    (version) => row(`an update with the version ${version}`, asWritten(version), BAD),
  ),
  ...words`0 -0 2 2147483648 9007199254740991`.map((version) =>
    row(`an update with the version ${version}`, asWritten(version), c.CONFLICT),
  ),
  ...[2, 0, -1, 1.5, '1', true, [], {}].map((id) =>
    row(`an update with data.id ${JSON.stringify(id)}`, c.update({ id, version: 1 }), BAD),
  ),
  ...['', ...words`-1 1.5 abc 1&version=1 %2B1 9999999999999999 99999999999999999 0x1 1%20`].map((version) =>
    row(`a delete with version=${version}`, c.remove(`${TARGET}?version=${version}`), BAD),
  ),
  row('a delete with a stale version', c.remove(`${TARGET}?version=0`), c.CONFLICT),
  row('a delete with a version from the future', c.remove(`${TARGET}?version=9007199254740991`), c.CONFLICT),
  row('a create with an id', c.create('crm.Contact', { id: 7 }), BAD),
  row('a create with a version', c.create('crm.Contact', { version: 0 }), BAD),
  row('a create with an id that is an object', c.create('crm.Contact', { id: {} }), BAD),
]

const tags: readonly Case[] = [
  ...words`* 1 "x" "" "-1" "+1" "1 1" "1","2" '1' "0x1" W/1 null "9999999999999999" "99999999999999999"`,
  ...['', '"1" x', '"1 "', '"1"\t,', '"\xe9"'],
].map((tag) => row(`an update with If-Match: ${tag}`, c.update({ firstName: 'x' }, { 'if-match': tag }), BAD))

const keyed = (key: string) => c.create('crm.Contact', {}, { 'idempotency-key': key })

const otherTags: readonly Case[] = [
  row(
    'an update with another version in If-Match than in the body',
    c.update({ version: 1 }, { 'if-match': '"0"' }),
    BAD,
  ),
  row(
    'an update with two If-Match headers',
    c.update({ firstName: 'x' }, { 'if-match': ['"1"', '"1"'] }),
    BAD,
  ),
  row('an update with a stale If-Match', c.update({ firstName: 'x' }, { 'if-match': '"0"' }), c.STALE),
  row(
    'an update with an If-Match from the future',
    c.update({}, { 'if-match': '"9007199254740991.x"' }),
    c.STALE,
  ),
  row('a delete with If-Match: *', c.remove(TARGET, { 'if-match': '*' }), BAD),
  row('a create with an Idempotency-Key of 256 letters', keyed('k'.repeat(256)), BAD),
  row('a create with an empty Idempotency-Key', keyed(''), BAD),
  row('a create with an Idempotency-Key beyond ASCII', keyed('k\xe9y'), BAD),
]

export const paths: readonly Case[] = [
  ...[
    ids,
    otherIds,
    models,
    otherModels,
    paging,
    bothPagings,
    otherwiseSpelled,
    versions,
    tags,
    otherTags,
  ].flat(),
]
