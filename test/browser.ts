// Tests in a real Chromium. A worker launches one browser; each test gets a context of its own, with its own cookies.
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { inject, test } from 'vitest'
import { launchBrowser, type BrowserSearch } from './browser-program.js'
import { writeBrowserNote } from './browser-report.js'

const TIMEOUT_MS = 8_000
const FAVICON = /\/favicon\.ico$/
const VIOLATION = 'securitypolicyviolation: '

let search: Promise<BrowserSearch> | undefined

/** The browser of this worker, or undefined where none starts. */
async function findBrowser(): Promise<Browser | undefined> {
  search ??= launchBrowser()
  const { browser, failures } = await search
  if (!browser) writeBrowserNote(inject('browserJournal'), { missing: failures })
  return browser
}

/** Pages of one test, and what went wrong in them. */
export class Tab {
  readonly context: BrowserContext
  /** The first page. Open others with `context.newPage()`. */
  readonly page: Page
  /** Lines of console.error, and uncaught exceptions. */
  #errors: string[] = []
  /** Violations of a Content-Security-Policy. */
  #violations: string[] = []
  readonly #requests: string[] = []
  readonly #origins = new Set<string>()

  constructor(context: BrowserContext, page: Page) {
    this.context = context
    this.page = page
    context.on('request', (request) => this.#requests.push(request.url()))
    context.on('weberror', (error) => this.#errors.push(String(error.error())))
    context.on('console', (message) => {
      const text = message.text()
      // Only some builds of Chromium ask for the icon that no page here has.
      if (FAVICON.test(message.location().url) || FAVICON.test(text)) return
      if (text.startsWith(VIOLATION)) this.#violations.push(text.slice(VIOLATION.length))
      else if (message.type() === 'error') this.#errors.push(text)
    })
  }

  /** Opens a page and permits requests to its origin. */
  async open(url: string): Promise<void> {
    this.permit(url)
    await this.page.goto(url)
  }

  /** Permits requests to the origin of a URL. Any other request fails the test. */
  permit(url: string): void {
    this.#origins.add(new URL(url).origin)
  }

  /** All URLs that the pages have requested. */
  get requests(): readonly string[] {
    return this.#requests
  }

  /** Returns the requests to origins that the test did not permit. */
  listForeignRequests(): readonly string[] {
    return this.#requests.filter((url) => {
      const { origin, protocol } = new URL(url)
      return /^(https?|wss?):$/.test(protocol) && !this.#origins.has(origin)
    })
  }

  /** Removes and returns the console errors that match, which the test then expects. */
  async takeErrors(pattern: RegExp): Promise<readonly string[]> {
    await this.#settle()
    const taken = this.#errors.filter((text) => pattern.test(text))
    this.#errors = this.#errors.filter((text) => !pattern.test(text))
    return taken
  }

  /** Removes and returns all violations of a Content-Security-Policy. */
  async takeViolations(): Promise<readonly string[]> {
    await this.#settle()
    const taken = this.#violations
    this.#violations = []
    return taken
  }

  /** Fails on a console error, a violation or a foreign request that the test did not take or permit. */
  async expectNothingWrong(): Promise<void> {
    await this.#settle()
    const wrong = [
      ...this.#errors.map((text) => `console error: ${text}`),
      ...this.#violations.map((text) => `violation of the Content-Security-Policy: ${text}`),
      ...this.listForeignRequests().map((url) => `request to a foreign origin: ${url}`),
    ]
    if (wrong.length > 0) throw new Error(wrong.join('\n'))
  }

  /** Messages of a page arrive in order, so they have arrived before the result of an evaluation. */
  async #settle(): Promise<void> {
    for (const page of this.context.pages()) await page.evaluate('0')
  }
}

/** Opens a context with a page for `use`, and closes it afterwards. */
export async function withTab<Result>(browser: Browser, use: (tab: Tab) => Promise<Result>): Promise<Result> {
  const context = await browser.newContext()
  try {
    context.setDefaultTimeout(TIMEOUT_MS)
    await context.addInitScript(`addEventListener('securitypolicyviolation', (event) => console.debug(
      ${JSON.stringify(VIOLATION)} + event.effectiveDirective + ' blocks ' + event.blockedURI))`)
    return await use(new Tab(context, await context.newPage()))
  } finally {
    await context.close()
  }
}

// Vitest needs to know while it collects tests which ones it skips.
const browser = await findBrowser()

/**
 * A test with a page of its own. It fails on console errors, violations of a Content-Security-Policy and requests to
 * foreign origins. Without a browser it is skipped; the last lines of the run say so, and with REQUIRE_BROWSER=1 the run
 * fails.
 */
export function testInBrowser(name: string, run: (tab: Tab) => Promise<void>): void {
  test.skipIf(!browser)(name, async () => {
    if (!browser) throw new Error('there is no browser')
    await withTab(browser, async (tab) => {
      await run(tab)
      await tab.expectNothingWrong()
    })
    writeBrowserNote(inject('browserJournal'), { ran: name, browser: `Chromium ${browser.version()}` })
  })
}
