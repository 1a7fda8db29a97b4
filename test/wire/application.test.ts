// The web application at the base path, as files: the page for browsers, the line of text for all others, codings and caching.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fastify } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAdminResources } from '../../src/http/admin/admin-routes.js'
import { LOGO_NAME, PAGE_FILES } from '../../src/http/assets/page-files.js'
import { buildCommonHeaders } from '../../src/http/response/headers.js'
import { addResource } from '../../src/http/route/resource.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { startService, type Service } from '../targets.js'
import { expectError, json, send } from './exchange.js'

const ROOT = path.join(import.meta.dirname, '../..')
const HTML = 'text/html; charset=utf-8'
const TEXT = 'text/plain; charset=utf-8'
const LINE =
  'Verso is running. Log in with POST callback; records are at ws/rest/<model>, and the API reference is at docs.\n'
const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
const FOR_EVER = 'public, max-age=31536000, immutable'

let service: Service
let underPrefix: Service
beforeAll(async () => {
  service = await startService('sqlite')
  underPrefix = await startService('sqlite', {
    http: { basePath: '/x', compression: false, compat: 'axelor' },
  })
})
afterAll(async () => {
  await service.close()
  await underPrefix.close()
})

const open = async (url: string, requestPath = '/', headers = {}) =>
  send(url, { path: requestPath, headers: { ...BROWSER, ...headers } })

/** The paths that the page names. */
async function readPaths({ url }: Service): Promise<string[]> {
  return [...(await open(url)).text.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, name = '']) => name)
}

describe('GET /', () => {
  test.for([
    BROWSER.accept,
    'text/html',
    'application/json, text/html;q=0.5',
    'text/html, application/problem+json',
  ])('a client that accepts %s gets the application', async (accept) => {
    const { status, headers, text } = await open(service.url, '/', { accept })
    expect([status, headers['content-type']]).toEqual([200, HTML])
    expect(text).toMatch(/^<!doctype html>\n<html lang="en" data-base-path="">/)
  })

  test.for([undefined, '', '*/*', 'application/json', 'text/plain', 'application/xhtml+xml', 'text/*'])(
    'a client that accepts %s gets the line of text',
    async (accept) => {
      const { status, headers, text } = await send(service.url, {
        path: '/',
        headers: accept === undefined ? {} : { accept },
      })
      expect([status, headers['content-type'], text]).toEqual([200, TEXT, LINE])
      expect(headers.etag).toBeUndefined()
      expect(headers['cache-control']).toBe('private, no-cache')
    },
  )

  test('caches keep the page and the text apart', async () => {
    for (const headers of [{}, BROWSER]) {
      const answer = await send(service.url, { path: '/', headers })
      expect(answer.headers.vary?.split(', ')).toEqual(expect.arrayContaining(['Accept', 'Accept-Encoding']))
    }
  })

  test('the page is checked for changes at each visit', async () => {
    const first = await open(service.url)
    expect(first.headers['cache-control']).toBe('no-cache')
    const { etag = '' } = first.headers
    expect(etag).toMatch(/^"[\w-]{22}"$/)
    const again = await open(service.url, '/', { 'if-none-match': etag })
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', etag])
    expect((await open(service.url, '/', { 'if-none-match': '"other"' })).status).toBe(200)
    expect((await open(underPrefix.url)).headers.etag).not.toBe(etag)
  })

  test('HEAD has the headers of GET and no body', async () => {
    for (const headers of [{}, BROWSER]) {
      const [head, get] = await Promise.all(
        ['HEAD', 'GET'].map((method) => send(service.url, { method, path: '/', headers })),
      )
      expect([head?.status, head?.text]).toEqual([200, ''])
      for (const name of ['content-type', 'content-length', 'etag', 'vary', 'content-security-policy'])
        expect(head?.headers[name], name).toBe(get?.headers[name])
    }
  })

  test('the page allows no inline script, no inline style and no other origin', async () => {
    const { headers, text } = await open(service.url)
    expect(headers['content-security-policy']).toBe(POLICY)
    expect(POLICY).not.toContain('unsafe')
    expect(headers['referrer-policy']).toBe('strict-origin')
    expect(text).not.toMatch(/<script(?![^>]*src=)|<style|style=|\son\w+=|https?:\/\//)
  })

  test('the text keeps the policy of a response that is not a page', async () => {
    const { headers } = await send(service.url, { path: '/' })
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; base-uri 'none'/)
    expect(headers['referrer-policy']).toBe('no-referrer')
  })

  test('other methods are rejected with the ones it has', async () => {
    const answer = await send(service.url, { method: 'POST', path: '/' })
    expectError(answer, 405, 'method')
    expect(answer.headers.allow).toBe('GET, HEAD, OPTIONS')
  })
})

describe('a base path', () => {
  test('the page is at the base path with and without a slash, and its files are below it', async () => {
    const pages = await Promise.all(['', '/'].map((name) => open(underPrefix.url, name)))
    for (const { status, text } of pages) {
      expect(status).toBe(200)
      expect(text).toContain('data-base-path="/x"')
    }
    const paths = await readPaths(underPrefix)
    expect(paths.length).toBeGreaterThan(1)
    expect(paths).toEqual((await readPaths(service)).map((name) => `/x${name}`))
    const { origin } = new URL(underPrefix.url)
    for (const name of paths) expect((await send(origin, { path: name })).status, name).toBe(200)
  })

  test('there is nothing outside of the base path', async () => {
    const { origin } = new URL(underPrefix.url)
    for (const name of ['/', ...(await readPaths(service))])
      expectError(await send(origin, { path: name }), 404, 'not-found')
  })

  test('a client other than a browser gets the line of text at both', async () => {
    for (const name of ['', '/']) expect((await send(underPrefix.url, { path: name })).text).toBe(LINE)
  })
})

describe('a file', () => {
  const fetchCoded = async (url: string, accept: string) => {
    const response = await fetch(url, { headers: { 'accept-encoding': accept } })
    return { headers: response.headers, text: await response.text() }
  }

  test('may be cached for ever by everybody', async () => {
    for (const name of await readPaths(service)) {
      expect(name).toMatch(/^\/assets\/[\w.-]+-[\w-]{8}\.(js|css|svg)$/)
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await send(service.url, { method, path: name })
        expect([status, headers['cache-control'], headers.vary], name).toEqual([
          200,
          FOR_EVER,
          'Accept-Encoding',
        ])
        expect(headers['x-content-type-options']).toBe('nosniff')
        expect(headers['set-cookie']).toBeUndefined()
      }
    }
  })

  test('has equal content in every coding, and only brotli is stored', async () => {
    const stored = readdirSync(path.join(ROOT, 'dist/admin/assets'))
    expect(stored.filter((name) => !name.endsWith('.br'))).toEqual([])
    const [script = ''] = (await readPaths(service)).filter((name) => name.endsWith('.js'))
    expect(stored).toContain(`${path.basename(script)}.br`)
    const plain = await fetchCoded(service.url + script, 'identity')
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(plain.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(plain.text).not.toContain('sourceMappingURL')
    for (const coding of ['br', 'gzip']) {
      const coded = await fetchCoded(service.url + script, coding)
      expect(coded.headers.get('content-encoding')).toBe(coding)
      expect(coded.text === plain.text).toBe(true)
    }
    expect((await fetchCoded(underPrefix.url + script, 'br')).headers.get('content-encoding')).toBeNull()
  })

  test.for([
    '/assets/nothing.js',
    '/assets/index.html',
    '/assets/..%2findex.html',
    '/assets/%2e%2e%2findex.html',
    '/assets/..%2flicences.txt',
    '/assets/..%2f..%2fpackage.json',
    '/assets/..%5cindex.html',
    '/assets/licences.txt',
    '/assets/__proto__',
    '/assets/SCRIPT.br',
    '/assets/SCRIPT.map',
    '/assets/x/SCRIPT',
    '/assets',
    '/index.html',
    '/licences.txt',
  ])('there is nothing else: GET %s is 404', async (pattern) => {
    const [script = ''] = (await readPaths(service)).filter((name) => name.endsWith('.js'))
    const name = pattern.replace('SCRIPT', path.basename(script))
    const answer = await send(service.url, { path: name })
    expect(answer.status).toBe(404)
    expect(json(answer)).toMatchObject({ status: -1, data: { kind: 'not-found' } })
    expect(answer.headers['cache-control']).not.toContain('immutable')
  })

  test('a browser gets the error of a missing file as a page in words, not the application', async () => {
    const { status, headers, text } = await open(service.url, '/assets/nothing.js')
    expect([status, headers['content-type']]).toEqual([404, HTML])
    expect(text).toContain('The web application has no such file: open / instead.')
    expect(text).not.toContain('data-base-path')
  })

  test('the licences of the bundled packages are beside the files', () => {
    const licences = readFileSync(path.join(ROOT, 'dist/admin/licences.txt'), 'utf8')
    const entries = licences.split(/^## /m).slice(1)
    expect(entries.map((entry) => entry.split(' ')[0])).toEqual(
      expect.arrayContaining(['react', 'react-dom']),
    )
    for (const entry of entries)
      expect(entry).toMatch(/^\S+ - \d+\.\d+\.\d+.*\n\n[^]*(copyright|permission)/i)
  })
})

describe('the files of the pages without script', () => {
  test('are served beside those of the application, with the same headers', async () => {
    for (const [name, { type }] of PAGE_FILES) {
      const { status, headers } = await send(service.url, { path: `/assets/${name}` })
      expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, type, FOR_EVER])
    }
  })

  test('the logo is that of the application', async () => {
    const { text } = await send(service.url, { path: `/assets/${LOGO_NAME}` })
    expect(text).toBe(readFileSync(path.join(ROOT, 'admin/logo.svg'), 'utf8'))
  })
})

describe('another build', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'verso-admin-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  /** A server that has the application of a folder, and nothing else. */
  function createServerOf(built: string, basePath = '') {
    const settings = { ...DEFAULT_HTTP_SETTINGS, basePath }
    const server = fastify()
    server.decorateReply('replacedHeaders', null)
    server.decorateReply('ownHeaders', null)
    server.decorate('compressor', null)
    server.decorate('commonHeaders', buildCommonHeaders(settings, new AbortController().signal))
    for (const resource of createAdminResources({ settings }, built)) addResource(server, resource)
    return server
  }

  test('without the application a browser gets the line of text, until it is built', async () => {
    const built = path.join(folder, 'admin')
    const server = createServerOf(built, '/a&b')
    const before = await server.inject({ url: '/', headers: BROWSER })
    expect([before.statusCode, before.headers['content-type'], before.body]).toEqual([200, TEXT, LINE])
    expect(String(before.headers.vary).split(', ')).toContain('Accept')
    expect((await server.inject('/assets/app.js')).body).toContain('The web application is not built')
    mkdirSync(path.join(built, 'assets'), { recursive: true })
    writeFileSync(path.join(built, 'assets/app.js'), 'start()')
    writeFileSync(
      path.join(built, 'index.html'),
      '<html data-base-path=""><script src="./assets/app.js"></script>./assets/',
    )
    const after = await server.inject({ url: '/', headers: BROWSER })
    expect([after.headers['content-type'], after.body]).toEqual([
      HTML,
      '<html data-base-path="/a&amp;b"><script src="/a&amp;b/assets/app.js"></script>./assets/',
    ])
    expect((await server.inject('/assets/app.js')).body).toBe('start()')
    await server.close()
  })
})
