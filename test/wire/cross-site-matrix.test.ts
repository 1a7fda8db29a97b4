// Every combination of the cross-site rule and the content types, compared with a table derived from the contract alone.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { onEngineOfTier, startService, type Service } from '../targets.js'
import { openSession, send, type Sent } from './exchange.js'

const FOREIGN = 'https://evil.example'
const ALLOWED = 'https://partner.example'
const CONTACTS = '/ws/rest/crm.Contact'
const MISSING = `${CONTACTS}/999999999`

/** A read, or a request that can be repeated a thousand times without harm; `passed` is its status if it is accepted. */
interface Kind {
  readonly sent: Sent
  readonly passed: number
  /** True for a login, a logout and a write. */
  readonly isGuarded: boolean
  readonly needsSession: boolean
  /** The bodies that it reads. */
  readonly reads: 'nothing' | 'json' | 'anything'
}

const KINDS: readonly Kind[] = [
  {
    sent: { method: 'GET', path: CONTACTS },
    passed: 200,
    isGuarded: false,
    needsSession: true,
    reads: 'nothing',
  },
  ...[
    { sent: { method: 'POST', path: MISSING, body: '{"data":{"version":0}}' }, passed: 404 },
    { sent: { method: 'PUT', path: CONTACTS, body: '{"data":[]}' }, passed: 400 },
    { sent: { method: 'DELETE', path: MISSING }, passed: 404 },
  ].map((write) => ({ ...write, isGuarded: true, needsSession: true, reads: 'json' as const })),
  {
    // Rejected before the body is read.
    sent: { method: 'PATCH', path: CONTACTS, body: '{}' },
    passed: 405,
    isGuarded: true,
    needsSession: true,
    reads: 'nothing',
  },
  ...[
    // Half a JSON body, which is read as JSON whatever the content type says.
    { sent: { method: 'POST', path: '/callback', body: '{' }, passed: 400 },
    { sent: { method: 'POST', path: '/login.jsp', body: '{' }, passed: 400 },
    { sent: { method: 'GET', path: '/logout' }, passed: 200 },
    { sent: { method: 'POST', path: '/logout' }, passed: 200 },
  ].map((open) => ({ ...open, isGuarded: true, needsSession: false, reads: 'anything' as const })),
]
const SITES = [undefined, 'same-origin', 'none', 'same-site', 'cross-site'] as const
const ORIGINS = [undefined, 'own', FOREIGN, 'null', ALLOWED] as const
/** JSON as the contract defines it; undefined is no header, which is valid without a body. */
const TYPES: readonly (readonly [type: string | undefined, isJson: boolean])[] = [
  ['application/json', true],
  ['application/json; charset=utf-8', true],
  ['application/json; charset=iso-8859-1', false],
  ['text/plain', false],
  ['application/x-www-form-urlencoded', false],
  ['multipart/form-data; boundary=x', false],
  [undefined, false],
]
const CELLS = KINDS.length * SITES.length * ORIGINS.length * TYPES.length

interface Cell {
  readonly kind: Kind
  readonly site: (typeof SITES)[number]
  readonly origin: (typeof ORIGINS)[number]
  readonly type: string | undefined
  readonly isJson: boolean
}

type Rule = (cell: Cell) => number

/** In order: the cross-site rule, the cookie that other origins do not have, the content type, the request itself. */
const contract: Rule = (cell) => {
  const { kind, origin } = cell
  if (kind.isGuarded && !isOurs(cell)) return 403
  if (kind.needsSession && origin === ALLOWED) return 401
  return isReadable(cell) ? kind.passed : 415
}

function isOurs({ site, origin }: Cell): boolean {
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  return origin === undefined || origin === 'own'
}

function isReadable({ kind, type, isJson }: Cell): boolean {
  if (kind.reads !== 'json') return true
  return isJson || (type === undefined && kind.sent.body === undefined)
}

/** Tables with one rule of the contract removed: each must differ from the responses. */
const MUTANTS: Readonly<Record<string, Rule>> = {
  'cross-site requests are accepted': (cell) =>
    contract({ ...cell, kind: { ...cell.kind, isGuarded: false } }),
  'same-site counts as same-origin': (cell) =>
    contract(cell.site === 'same-site' ? { ...cell, site: 'same-origin' } : cell),
  'Origin wins over Sec-Fetch-Site': (cell) =>
    contract(cell.origin === undefined ? cell : { ...cell, site: undefined }),
  'Origin: null counts as no Origin': (cell) =>
    contract(cell.origin === 'null' ? { ...cell, origin: undefined } : cell),
  'requests from other origins carry the session cookie': (cell) =>
    contract({ ...cell, kind: { ...cell.kind, needsSession: false } }),
  'every content type is accepted': (cell) => contract({ ...cell, isJson: true }),
  'logins accept only JSON': (cell) =>
    contract(cell.kind.reads === 'anything' ? { ...cell, kind: { ...cell.kind, reads: 'json' } } : cell),
}

onEngineOfTier((engine) => {
  let service: Service
  const answered: (readonly [cell: Cell, status: number])[] = []

  beforeAll(async () => {
    service = await startService(engine, { http: { allowOrigins: [ALLOWED] } })
    const cookie = await openSession(service.url)
    for (const kind of KINDS)
      for (const site of SITES)
        for (const origin of ORIGINS)
          for (const [type, isJson] of TYPES) {
            const cell = { kind, site, origin, type, isJson }
            answered.push([cell, (await ask(cell, cookie)).status])
          }
  })
  afterAll(() => service.close())

  const ask = ({ kind, site, origin, type }: Cell, cookie: string) =>
    send(service.url, {
      ...kind.sent,
      headers: {
        // The logout is sent without a session, because the other requests need theirs.
        ...(kind.sent.path === '/logout' ? {} : { cookie }),
        ...(site === undefined ? {} : { 'sec-fetch-site': site }),
        ...(origin === undefined ? {} : { origin: origin === 'own' ? service.url : origin }),
        ...(type === undefined ? {} : { 'content-type': type }),
      },
    })
  const differing = (rule: Rule) =>
    answered.flatMap(([cell, status]) => {
      const { kind, site, origin, type } = cell
      const { method, path } = kind.sent
      const expected = rule(cell)
      return status === expected ? [] : [{ method, path, site, origin, type, status, expected }]
    })

  test(`each of ${CELLS} combinations is answered as the contract says`, () => {
    expect(answered).toHaveLength(1_575)
    expect(CELLS).toBe(1_575)
    expect(differing(contract)).toEqual([])
  })

  test('the combinations cover every status', () => {
    const statuses = new Set(answered.map(([, status]) => status))
    expect([...statuses].sort()).toEqual([200, 400, 401, 403, 404, 405, 415])
  })

  test.for(Object.keys(MUTANTS))('a mutant of the cross-site rules is caught: %s', (name) => {
    expect(differing(MUTANTS[name] ?? contract).length).toBeGreaterThan(0)
  })
})
