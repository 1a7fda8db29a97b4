import { expect, test } from 'vitest'
import { SessionCache, type CachedSession } from '../../src/service/context/session-cache.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'

const somebody = (): CachedSession => ({
  principal: SERVICE_PRINCIPAL,
  isAlive: () => true,
  markUsed: () => undefined,
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
