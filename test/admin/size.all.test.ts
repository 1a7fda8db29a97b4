// What the application costs on the network: bytes of its files as a browser with gzip gets them, and nothing twice.
import { request } from 'node:http'
import type { Response as PageResponse } from 'playwright-core'
import { describe, expect } from 'vitest'
import { testInBrowser } from '../browser.js'
import { PASSWORD, USERNAME } from '../targets.js'
import { PERSON } from './models.js'
import { Person, useAdminService } from './person.js'

const KILOBYTE = 1_000
/** Of all files up to this page, in the order in which a person opens them. */
const MAX_KILOBYTES = { 'sign-in': 280, list: 330, edit: 370 }
const PERMANENT = 'public, max-age=31536000, immutable'

interface WireFile {
  readonly bytes: number
  readonly type: string
  readonly cacheControl: string
  readonly sourceMap: string | undefined
  readonly status: number
}

/** Reads a file with gzip as the only coding, and counts the bytes of its body. */
async function readCompressed(url: string): Promise<WireFile> {
  return new Promise((resolve, reject) => {
    const headers = { 'accept-encoding': 'gzip', accept: 'text/html,*/*' }
    request(url, { headers }, (response) => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => (bytes += chunk.length))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          bytes,
          type: response.headers['content-type'] ?? '',
          cacheControl: response.headers['cache-control'] ?? '',
          sourceMap: response.headers['sourcemap'] as string | undefined,
          status: response.statusCode ?? 0,
        }),
      )
    })
      .on('error', reject)
      .end()
  })
}

/** The page and the files of the application; the rest are calls. */
function isFile(url: string): boolean {
  const { pathname } = new URL(url)
  return pathname === '/' || pathname.startsWith('/assets/')
}

describe('size', () => {
  const admin = useAdminService()

  testInBrowser('sign-in, list and form stay below their limits, without source maps', async (tab) => {
    const { data } = await admin.program.create(PERSON, { lastName: 'Harper' })
    tab.permit(admin.url)
    const person = new Person(tab, tab.page, admin.url)
    const measured: string[] = []
    const measure = async (page: keyof typeof MAX_KILOBYTES) => {
      await person.page.waitForLoadState('networkidle').catch(() => undefined)
      const urls = new Set(tab.requests.map((url) => url.replace(/#.*$/, '')).filter(isFile))
      const files = await Promise.all([...urls].map(readCompressed))
      expect(files.filter(({ status, sourceMap }) => status !== 200 || sourceMap !== undefined)).toEqual([])
      const kilobytes = files.reduce((sum, { bytes }) => sum + bytes, 0) / KILOBYTE
      measured.push(`${page} ${kilobytes.toFixed(0)} kB of ${MAX_KILOBYTES[page]}`)
      expect(kilobytes, measured.join()).toBeLessThanOrEqual(MAX_KILOBYTES[page])
    }
    await person.open('/')
    await person.page.getByRole('heading', { name: 'Sign in to Verso' }).waitFor()
    await measure('sign-in')
    await person.fillSignIn(USERNAME, PASSWORD)
    await person.see('Welcome, Ada')
    await person.openList(PERSON)
    await person.see('Harper')
    await measure('list')
    await person.openRecord(PERSON, data.id)
    await measure('edit')
    console.info(`bytes with gzip: ${measured.join(', ')}`)
    for (const url of tab.requests.filter(isFile)) {
      if (!url.endsWith('.js')) continue
      expect(await (await fetch(url)).text()).not.toContain('sourceMappingURL')
      expect((await fetch(`${url}.map`)).status).toBe(404)
    }
    expect(tab.listForeignRequests()).toEqual([])
  })

  testInBrowser('a second visit loads no file again', async (tab) => {
    const { data } = await admin.program.create(PERSON, { lastName: 'Harper' })
    const person = await Person.enter(tab, admin.url)
    await person.openRecord(PERSON, data.id)
    const again: PageResponse[] = []
    const second = await person.openTab()
    // The network log of the browser tells a 304, which a page never sees.
    const debug = await tab.context.newCDPSession(second.page)
    await debug.send('Network.enable')
    const statuses = new Map<string, number>()
    debug.on('Network.responseReceivedExtraInfo', ({ requestId, statusCode }) =>
      statuses.set(requestId, statusCode),
    )
    const received: { url: string; requestId: string; fromDiskCache: boolean }[] = []
    debug.on('Network.responseReceived', ({ requestId, response }) =>
      received.push({ url: response.url, requestId, fromDiskCache: response.fromDiskCache === true }),
    )
    second.page.on('response', (response) => again.push(response))
    await second.openRecord(PERSON, data.id)
    const files = received.filter(({ url }) => isFile(url))
    expect(files.length).toBeGreaterThan(3)
    for (const { url, requestId, fromDiskCache } of files) {
      const isUnchanged = new URL(url).pathname === '/' && statuses.get(requestId) === 304
      expect(fromDiskCache || isUnchanged, `${url} ${statuses.get(requestId)}`).toBe(true)
    }
    for (const response of again.filter((each) => new URL(each.url()).pathname.startsWith('/assets/')))
      expect(response.headers()['cache-control']).toBe(PERMANENT)
  })
})
