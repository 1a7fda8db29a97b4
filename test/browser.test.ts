import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser } from './browser-program.js'
import { describeBrowserTests } from './browser-report.js'
import { testInBrowser } from './browser.js'

describe('a browser test notices', () => {
  const servers: Server[] = []
  let own: string
  let foreign: string

  beforeAll(async () => {
    own = await serve()
    foreign = await serve()
  })

  afterAll(() => {
    for (const server of servers) server.close().closeAllConnections()
  })

  async function serve(): Promise<string> {
    const server = createServer((request, response) => {
      if (request.url === '/missing') response.statusCode = 404
      response.setHeader('content-type', 'text/html')
      response.setHeader('content-security-policy', `default-src 'self'; connect-src *; base-uri 'none'`)
      response.setHeader('access-control-allow-origin', '*')
      response.end('<!doctype html><title>page</title>')
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  testInBrowser('console errors, uncaught exceptions and failed requests', async (tab) => {
    await tab.open(own)
    await tab.page.evaluate(`fetch('/missing')`)
    await tab.page.evaluate(`console.error('wrong'); setTimeout(() => { throw new Error('thrown') })`)
    await tab.page.evaluate(`new Promise((resolve) => setTimeout(resolve, 50))`)
    await expect(tab.expectNothingWrong()).rejects.toThrow(
      /^console error: .*404.*\nconsole error: wrong\nconsole error: Error: thrown$/,
    )
    expect(await tab.takeErrors(/status of 404|wrong|thrown/)).toHaveLength(3)
  })

  testInBrowser('violations of a Content-Security-Policy', async (tab) => {
    await tab.open(own)
    await tab.page.evaluate(
      `document.head.append(Object.assign(document.createElement('script'), { text: '1' }))`,
    )
    await expect(tab.expectNothingWrong()).rejects.toThrow(/script-src-elem blocks inline/)
    expect(await tab.takeViolations()).toEqual(['script-src-elem blocks inline'])
    await tab.takeErrors(/violates/)
  })

  testInBrowser('requests to an origin that it did not permit', async (tab) => {
    await tab.open(own)
    await tab.page.evaluate(`fetch(${JSON.stringify(`${foreign}/data`)})`)
    expect(tab.listForeignRequests()).toEqual([`${foreign}/data`])
    await expect(tab.expectNothingWrong()).rejects.toThrow(/foreign origin: .*data$/)
    tab.permit(foreign)
  })
})

describe('a machine without a browser', () => {
  test('TEST_BROWSER=none and a path that does not exist find no browser', async () => {
    expect(await launchBrowser('none')).toEqual({ failures: [] })
    const { browser, failures } = await launchBrowser('/does/not/exist')
    expect(browser).toBeUndefined()
    expect(failures).toEqual([expect.stringMatching(/^TEST_BROWSER=\/does\/not\/exist: .*exist/)])
  })

  test('gets lines that say so and how to get one, and fails only if a browser is required', () => {
    const notes = [{ missing: ['chrome: is not found'] }, { missing: ['chrome: is not found'] }]
    const { lines, isFailure } = describeBrowserTests(notes, false)
    expect(isFailure).toBe(false)
    expect(lines.slice(0, 2)).toEqual([
      'Browser tests did not run: no browser starts.',
      'chrome: is not found',
    ])
    expect(lines.join(' ')).toMatch(/apt-get install chromium.*TEST_BROWSER/)
    expect(describeBrowserTests(notes, true).isFailure).toBe(true)
    const some = [...notes, { ran: 'one', browser: 'Chromium 1.2' }]
    expect(describeBrowserTests(some, true).isFailure).toBe(true)
  })

  test('a run without browser tests gets no lines, and fails if a browser is required', () => {
    expect(describeBrowserTests([], false)).toEqual({ lines: [], isFailure: false })
    expect(describeBrowserTests([], true).isFailure).toBe(true)
  })

  test('a run with browser tests gets their number and the version of the browser', () => {
    const notes = ['one', 'two'].map((ran) => ({ ran, browser: 'Chromium 1.2' }))
    expect(describeBrowserTests(notes, true)).toEqual({
      lines: ['2 tests ran in Chromium 1.2.'],
      isFailure: false,
    })
  })
})
