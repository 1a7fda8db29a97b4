// npm run bench:admin: measures in Chromium how long the web application takes from the navigation to the rows of a list, for the first,
// the middle and the last page of a million contacts, beside the first page of a thousand. It reports and asserts nothing.
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { createJiti } from 'jiti'
import { readFlags } from './flags.mjs'
import { findMedian, formatShort, formatWhole } from './numbers.mjs'
import { getFolder, runBenchmark, startListening } from './processes.mjs'
import { describeMachine } from './report.mjs'
import { buildIfMissing } from './verso.mjs'

const SERVICE = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const MODEL = 'com.axelor.contact.db.Contact'
const PER_PAGE = 25
const SMALL = 1_000
const LARGE = 1_000_000
const FILL_TIMEOUT_MS = 60 * 60_000
const GOAL = 2
const USAGE = 'npm run bench:admin -- [--rows 1000000] [--rounds 9]'

/** Serves a demo with this many contacts. Creating them takes most of the time. */
async function startDemo(rows) {
  process.stderr.write(`creating ${formatWhole(rows)} contacts\n`)
  const db = `sqlite:${path.join(getFolder(), `demo-${rows}.db`)}`
  const words = [SERVICE, 'demo', '--port', '0', '--db', db, '--sample', String(rows)]
  const { found } = await startListening(process.execPath, words, /^listening on (\S+)/, {
    timeoutMs: FILL_TIMEOUT_MS,
  })
  return found[1]
}

async function openDemo(browser, url) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  await page.goto(url)
  await page.getByRole('button', { name: 'Use the demo account' }).click()
  await page.getByRole('heading', { name: /Welcome/ }).waitFor()
  return page
}

/** From the navigation inside the application to the first frame with rows. Loading it before each leaves nothing in its cache. */
async function measureRows(page, url, number) {
  await page.goto('about:blank')
  await page.goto(url)
  await page.getByRole('heading', { name: /Two people/ }).waitFor()
  const hash = `#/records/${MODEL}?page=${number}&perPage=${PER_PAGE}`
  return page.evaluate(
    `new Promise((resolve) => {
      const start = performance.now()
      location.hash = ${JSON.stringify(hash)}
      const look = () => {
        if (document.querySelector('tbody tr')) resolve(performance.now() - start)
        else requestAnimationFrame(look)
      }
      look()
    })`,
  )
}

async function measure({ rows, rounds }) {
  await buildIfMissing()
  const { launchBrowser } = await createJiti(import.meta.url).import('../test/browser-program.ts')
  const { browser, failures } = await launchBrowser()
  if (!browser) throw new Error(`no browser starts: ${failures.join('; ')}`)
  try {
    const [small, large] = [await startDemo(SMALL), await startDemo(rows)]
    const pages = { small: await openDemo(browser, small), large: await openDemo(browser, large) }
    const last = Math.ceil(rows / PER_PAGE)
    const cases = [
      { name: `${formatWhole(SMALL)}: first page`, page: pages.small, url: small, number: 1 },
      { name: `${formatWhole(rows)}: first page`, page: pages.large, url: large, number: 1 },
      {
        name: `${formatWhole(rows)}: middle page`,
        page: pages.large,
        url: large,
        number: Math.ceil(last / 2),
      },
      { name: `${formatWhole(rows)}: last page`, page: pages.large, url: large, number: last },
    ].map((each) => ({ ...each, times: [] }))
    // The first round fills caches and does not count.
    for (let round = 0; round <= rounds; round++)
      for (const { page, url, number, times } of cases) {
        const time = await measureRows(page, url, number)
        if (round > 0) times.push(time)
      }
    const base = findMedian(cases[0].times)
    console.log(describeMachine())
    for (const { name, times } of cases) {
      const median = findMedian(times)
      console.log(
        `${name.padEnd(28)} ${formatWhole(median)} ms, ${formatShort(median / base)} × (goal ≤ ${GOAL})`,
      )
    }
  } finally {
    await browser.close()
  }
}

await runBenchmark(async () => {
  await measure(readFlags(USAGE, { rows: { number: LARGE }, rounds: { number: 9 } }))
})
