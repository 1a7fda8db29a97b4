// The menu of 800 models: it opens and filters without a frame that a person would notice.
import { mkdtempSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import type { Page } from 'playwright-core'
import { loadModelsWithReport } from '../../src/cli/models/models.js'
import { testInBrowser } from '../browser.js'
import { cleanUpAfterwards, scratch } from '../cli/program.js'
import { LARGE, writeLargeDomain } from '../large-domain.js'
import { measureSlowness } from '../processor-time.js'
import { Person, useAdminService } from './person.js'

cleanUpAfterwards()

const ENTITIES = 800
const TYPED = 'entity 799'
const MAX_FRAME_MS = 100
/** The best of these counts, because other programs may run beside. Their share of the processor does not count. */
const ATTEMPTS = 3
const IDLE_MS = 1_000
const LOAD_TIMEOUT_MS = 60_000

const folder = mkdtempSync(path.join(scratch, 'menu-'))
writeLargeDomain(folder, { ...LARGE, entities: ENTITIES })
const { sources } = await loadModelsWithReport(folder)
const admin = useAdminService('sqlite', { models: sources })

/** Measures the longest time between two frames while something happens. */
async function measureFrames(page: Page, act: () => Promise<void>): Promise<number> {
  await page.evaluate(`window.measured = { longest: 0, last: performance.now(), isOn: true }
    requestAnimationFrame(function step(now) {
      const state = window.measured
      state.longest = Math.max(state.longest, now - state.last)
      state.last = now
      if (state.isOn) requestAnimationFrame(step)
    })`)
  await act()
  // The frame of the last change belongs to it.
  return page.evaluate<number>(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => {
    window.measured.isOn = false
    resolve(window.measured.longest)
  })))`)
}

testInBrowser(
  `the menu of ${ENTITIES} models opens and filters without a frame over ${MAX_FRAME_MS} ms`,
  async (tab) => {
    tab.context.setDefaultTimeout(LOAD_TIMEOUT_MS)
    const person = await Person.enter(tab, admin.url)
    const { page } = person
    await page.setViewportSize({ width: 800, height: 900 })
    await person.open('/')
    await person.see(/Welcome/)
    const attempts: { idle: number; opening: number; typing: number }[] = []
    const menu = page.getByRole('navigation', { name: 'Models' })
    const input = menu.getByLabel('Find a model')
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const idle = await measureFrames(page, () => page.waitForTimeout(IDLE_MS))
      const opening = await measureFrames(page, async () => {
        await page.getByRole('button', { name: 'Open the menu' }).click()
        await menu.getByRole('link').first().waitFor()
      })
      await menu.getByText(/more: type to find them/).waitFor()
      const typing = await measureFrames(page, async () => {
        await input.focus()
        await page.keyboard.type(TYPED, { delay: 60 })
        await expect.poll(() => menu.getByRole('link').count()).toBe(1)
      })
      const slowness = measureSlowness()
      attempts.push({ idle: idle / slowness, opening: opening / slowness, typing: typing / slowness })
      await page.keyboard.press('Escape')
      await menu.waitFor({ state: 'hidden' })
    }
    const round = ({ idle, opening, typing }: (typeof attempts)[number]) =>
      `idle ${idle.toFixed(0)}, opening ${opening.toFixed(0)}, typing ${typing.toFixed(0)}`
    console.info(`longest frames in ms: ${attempts.map(round).join('; ')}`)
    const findBest = (key: 'opening' | 'typing') =>
      Math.min(...attempts.map((attempt) => attempt[key] - Math.max(0, attempt.idle - MAX_FRAME_MS / 2)))
    expect(findBest('opening')).toBeLessThanOrEqual(MAX_FRAME_MS)
    expect(findBest('typing')).toBeLessThanOrEqual(MAX_FRAME_MS)
  },
)
