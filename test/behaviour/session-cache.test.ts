import { expect, test } from 'vitest'
import { SessionCache, usePrincipal, type CachedSession } from '../../src/service/context/session-cache.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { KindlessSessionCache } from '../mutants/accounts.js'

const somebody = (): CachedSession => ({
  kind: 'session',
  principal: SERVICE_PRINCIPAL,
  lastMs: Infinity,
  maxIdleMs: Infinity,
  usedMs: 0,
  useIntervalMs: Infinity,
  recordUse: () => undefined,
})

function callers() {
  let ms = 0
  const known = new SessionCache(() => ms)
  return { known, pass: (by: number) => (ms += by) }
}

test('the session cache returns a recent principal without a lookup, and expires it within a second', async () => {
  const { known, pass } = callers()
  const first = somebody()
  expect(await known.find('a', async () => first)).toBe(first)
  expect(await known.find('a', async () => somebody())).toBe(first)
  expect(known.get('b')).toBeUndefined()
  pass(999)
  expect(known.get('a')).toBeUndefined()
})

test('an entry of the session cache ages from the start of its lookup', async () => {
  const { known, pass } = callers()
  await known.find('a', async () => {
    pass(950)
    return somebody()
  })
  expect(known.get('a')).toBeUndefined()
})

test('the session cache drops a lookup that started before a change of rights', async () => {
  const { known } = callers()
  await known.find('a', async () => {
    known.clear()
    return somebody()
  })
  expect(known.get('a')).toBeUndefined()
})

test('the session cache does not store a failed lookup', async () => {
  const { known } = callers()
  expect(await known.find('a', async () => undefined)).toBeUndefined()
  const later = somebody()
  expect(await known.find('a', async () => later)).toBe(later)
})

test('the session cache evicts the oldest entry after 10,000', async () => {
  const { known } = callers()
  for (let index = 0; index <= 10_000; index++) await known.find(String(index), async () => somebody())
  expect([known.get('0'), known.get('10000')]).toEqual([undefined, expect.anything()])
})

/** True if each secret is accepted as what it is, and as nothing else. */
async function tellsKindsApart(known: SessionCache): Promise<boolean> {
  await known.find('a', async () => somebody())
  await known.find('b', async () => ({ ...somebody(), kind: 'key' as const }))
  const [session, key] = [known.use('session', 'a', 1), known.use('key', 'b', 1)]
  const others = [known.use('key', 'a', 1), known.use('session', 'b', 1), known.use('session', undefined, 1)]
  return session !== undefined && key !== undefined && others.every((other) => other === undefined)
}

test('the session cache accepts no session id as a key, and no key as a session id', async () => {
  expect(await tellsKindsApart(callers().known)).toBe(true)
  expect(await tellsKindsApart(new KindlessSessionCache(() => 0))).toBe(false)
})

test('a cached session ends after its last millisecond, and after the idle time since its last use', () => {
  const session = { ...somebody(), lastMs: 1_000, maxIdleMs: 300, usedMs: 600 }
  expect([900, 901].map((now) => usePrincipal(session, now) !== undefined)).toEqual([true, false])
  session.usedMs = 900
  expect([1_000, 1_001].map((now) => usePrincipal(session, now) !== undefined)).toEqual([true, false])
})

test('a use is recorded once an interval, and not for a request that only waits', () => {
  const recorded: number[] = []
  const recordUse = (now: number) => recorded.push(now)
  const session = { ...somebody(), usedMs: 100, useIntervalMs: 50, recordUse }
  usePrincipal(session, 150, false)
  for (const now of [149, 150, 199, 200]) usePrincipal(session, now)
  expect(recorded).toEqual([150, 200])
})
