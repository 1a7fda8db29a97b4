// The API reference as files: their headers, codings and paths. No browser is needed.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startService, type Service } from '../targets.js'
import { json, send } from '../wire/exchange.js'

let service: Service
let underPrefix: Service
beforeAll(async () => {
  service = await startService('sqlite')
  underPrefix = await startService('sqlite', { http: { basePath: '/verso', compression: false } })
})
afterAll(async () => {
  await service.close()
  await underPrefix.close()
})

/** The paths that the page names, without the base path. */
async function readPaths({ url }: Service): Promise<string[]> {
  const { text } = await send(url, { path: '/docs' })
  const { pathname } = new URL(url)
  return [...text.matchAll(/(?:href|src)="(\/[^"]*)"/g)].map(([, path = '']) =>
    path.slice(pathname === '/' ? 0 : pathname.length),
  )
}

async function fetchBytes(url: string, accept: string) {
  const response = await fetch(url, { headers: { 'accept-encoding': accept } })
  return { response, text: await response.text() }
}

describe('the page', () => {
  test('is for people: it has a language and a title, and is checked for changes at each visit', async () => {
    const { status, headers, text } = await send(service.url, {
      path: '/docs',
      headers: { accept: 'text/html' },
    })
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    expect(headers['cache-control']).toBe('no-cache')
    expect(text).toMatch(/<html lang="en"/)
    expect(text).toContain('<title>API reference · Verso</title>')
    expect((await send(service.url, { path: '/docs/' })).text).toBe(text)
  })

  test('allows no inline script, no inline style and no other origin', async () => {
    const { headers, text } = await send(service.url, { path: '/docs' })
    const policy = String(headers['content-security-policy'])
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/)
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(text).not.toMatch(/<script(?![^>]*src=)|<style|style=|\son\w+=|https?:\/\//)
  })

  test('names its files below the base path', async () => {
    const { text } = await send(underPrefix.url, { path: '/docs' })
    expect(text).toContain('data-base-path="/verso"')
    for (const path of await readPaths(underPrefix))
      expect((await send(underPrefix.url, { path })).status, path).toBe(200)
    expect(await readPaths(underPrefix)).toEqual(await readPaths(service))
  })

  test('rejects other methods with the ones it has', async () => {
    const { status, headers } = await send(service.url, { path: '/docs', method: 'POST' })
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })
})

describe('a file', () => {
  test('may be cached for ever by everybody', async () => {
    const paths = await readPaths(service)
    expect(paths.map((path) => path.replace(/^.*\//, ''))).toEqual(['swagger-ui.css', 'page.css', 'page.mjs'])
    for (const path of paths) {
      const { status, headers } = await send(service.url, { path })
      expect([status, headers['cache-control']], path).toEqual([200, 'public, max-age=31536000, immutable'])
      expect(headers.vary).toBe('Accept-Encoding')
      expect(headers['set-cookie']).toBeUndefined()
    }
  })

  test('has equal content in every coding, and the compressed ones are smaller', async () => {
    const [path = ''] = await readPaths(service)
    const bundle = path.replace('swagger-ui.css', 'swagger-ui-bundle.js')
    const plain = await fetchBytes(service.url + bundle, 'identity')
    expect(plain.response.headers.get('content-encoding')).toBeNull()
    expect(plain.text).not.toContain('sourceMappingURL')
    for (const [coding, most] of [
      ['br', 400_000],
      ['gzip', 500_000],
    ] as const) {
      const { response, text } = await fetchBytes(service.url + bundle, coding)
      expect(response.headers.get('content-encoding')).toBe(coding)
      expect(Number(response.headers.get('content-length'))).toBeLessThan(most)
      expect(text === plain.text).toBe(true)
    }
  })

  test('is sent as it is where compression is off', async () => {
    const [path = ''] = await readPaths(underPrefix)
    const { response } = await fetchBytes(underPrefix.url + path, 'br, gzip')
    expect(response.headers.get('content-encoding')).toBeNull()
  })

  test('has a licence beside it', async () => {
    const [path = ''] = await readPaths(service)
    const licence = path.replace('swagger-ui.css', 'swagger-ui-bundle.js.LICENSE.txt')
    expect((await send(service.url, { path: licence })).text).toMatch(/licen[sc]e/i)
  })

  test.for([
    '/docs/0123456789abcdef/page.mjs',
    '/docs/VERSION/nothing.js',
    '/docs/VERSION/..%2fassets.js',
    '/docs/VERSION/%2e%2e%2f%2e%2e%2f%2e%2e%2fpackage.json',
    '/docs/VERSION/swagger-ui-bundle.js.br',
    '/docs/VERSION/tsconfig.json',
    '/docs/VERSION/__proto__',
    '/docs/VERSION',
    '/docs/page.mjs',
  ])('there is nothing else: GET %s is 404', async (pattern) => {
    const [version = ''] = /[0-9a-f]{16}/.exec((await readPaths(service)).join()) ?? []
    const path = pattern.replace('VERSION', version)
    const answer = await send(service.url, { path })
    expect(answer.status).toBe(404)
    expect(json(answer)).toMatchObject({ status: -1, data: { kind: 'not-found' } })
    expect(answer.headers['cache-control']).not.toContain('immutable')
  })

  test('browsers get the error of a missing file as a page in words', async () => {
    const path = '/docs/0123456789abcdef/page.mjs'
    const { status, headers, text } = await send(service.url, { path, headers: { accept: 'text/html' } })
    expect([status, headers['content-type']]).toEqual([404, 'text/html; charset=utf-8'])
    expect(text).toContain('The API reference has no such file: open /docs instead.')
  })
})
