// The pages at /setup and /reset in a real browser, as wide as a small phone. A test fails on a violation of the policy.
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { testInBrowser, type Tab } from '../browser.js'
import { countAnew, PASSWORD, startService, type Service } from '../targets.js'
import { credentials, login } from './exchange.js'

const TOKEN = 'a'.repeat(43)
const COLOURS = {
  light: { page: 'rgb(246, 247, 249)', card: 'rgb(255, 255, 255)', accent: 'rgb(59, 91, 219)' },
  dark: { page: 'rgb(17, 20, 24)', card: 'rgb(27, 31, 36)', accent: 'rgb(145, 167, 255)' },
} as const

/** Runs in the page: its colours, the height of an input, and by how much the page is wider than the screen. */
const MEASURE = `(() => {
  const styleOf = (selector) => getComputedStyle(document.querySelector(selector))
  const input = document.querySelector('input')
  input.focus()
  return {
    page: styleOf('html').backgroundColor,
    card: styleOf('main').backgroundColor,
    accent: styleOf('input').outlineColor,
    outline: styleOf('input').outlineWidth,
    radius: styleOf('main').borderRadius,
    height: input.offsetHeight,
    overflow: document.documentElement.scrollWidth - innerWidth,
    logo: document.querySelector('img').naturalWidth > 0,
  }
})()`

let service: Service
beforeAll(async () => {
  service = await startService('sqlite', { setupToken: TOKEN, http: { basePath: '/x' } })
  await service.app.db.transaction((tx) => tx.run('delete from "verso.auth.User"'))
  await countAnew(service, 'verso.auth.User')
})
afterAll(() => service.close())

async function openSetup(tab: Tab): Promise<void> {
  await tab.page.setViewportSize({ width: 360, height: 640 })
  await tab.open(`${service.url}/setup?token=${TOKEN}`)
}

describe('/setup', () => {
  for (const scheme of ['light', 'dark'] as const)
    testInBrowser(`has the look of the application in ${scheme} mode, and fits a phone`, async (tab) => {
      await tab.page.emulateMedia({ colorScheme: scheme })
      await openSetup(tab)
      expect(await tab.page.evaluate(MEASURE)).toEqual({
        ...COLOURS[scheme],
        outline: '2px',
        radius: '10px',
        height: 44,
        overflow: 0,
        logo: true,
      })
    })

  testInBrowser('a rejected form is an alert, and a saved one leads to the application', async (tab) => {
    const { page } = tab
    await openSetup(tab)
    await page.getByLabel('User name').fill('ada')
    await page.getByLabel(/Password/).fill('password1234')
    await page.getByRole('button', { name: 'Create the account' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').innerText()).toContain('Nothing was changed.')
    await tab.takeErrors(/422/)
    await page.getByLabel(/Password/).fill(PASSWORD)
    await page.getByRole('button', { name: 'Create the account' }).click()
    await page.getByRole('heading', { level: 1, name: 'The administrator is ready' }).waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
    expect(await page.getByRole('link', { name: 'Open Verso' }).getAttribute('href')).toBe('/x/')
    expect((await login(service.url, {}, credentials('ada', PASSWORD))).status).toBe(200)
  })
})
