import { expect, test } from 'vitest'
import { DocumentCache } from '../../src/http/openapi/document-cache.js'

const textOf = async (cache: DocumentCache, key: string, build: () => Promise<Buffer>) =>
  (await cache.get(key, build)).body.toString()

test('a document is built once, also for concurrent requests', async () => {
  const cache = new DocumentCache()
  let built = 0
  const build = async () => Buffer.from(`document ${++built}`)
  const texts = await Promise.all([1, 2, 3].map(async () => textOf(cache, 'a', build)))
  expect([...texts, await textOf(cache, 'a', build)]).toEqual(Array(4).fill('document 1'))
})

test('documents are built one at a time', async () => {
  const cache = new DocumentCache()
  let running = 0
  let most = 0
  const build = async () => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    running--
    return Buffer.from('x')
  }
  await Promise.all(['a', 'b', 'c'].map(async (key) => cache.get(key, build)))
  expect(most).toBe(1)
})

test('the least recently used documents are dropped above the limit', async () => {
  const cache = new DocumentCache(10)
  const built: string[] = []
  const get = async (key: string, bytes: number) =>
    cache.get(key, async () => {
      built.push(key)
      return Buffer.alloc(bytes)
    })
  for (const key of ['a', 'b', 'a', 'c']) await get(key, 5)
  await get('a', 5)
  await get('b', 5)
  expect(built).toEqual(['a', 'b', 'c', 'b'])
  await get('large', 11)
  await get('large', 11)
  expect(built.slice(4)).toEqual(['large', 'large'])
})

test('a failed build is not cached, and does not stop the next one', async () => {
  const cache = new DocumentCache()
  const fail = async () => Promise.reject(new Error('no'))
  const [failed, other] = await Promise.allSettled([
    cache.get('a', fail),
    cache.get('b', async () => Buffer.from('b')),
  ])
  expect([failed.status, other.status]).toEqual(['rejected', 'fulfilled'])
  expect(await textOf(cache, 'a', async () => Buffer.from('a'))).toBe('a')
})
