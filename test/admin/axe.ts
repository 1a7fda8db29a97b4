// Checks a page with axe-core, in both themes and on a phone.
import axe, { type AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'

const WIDE = { width: 1280, height: 900 }
export const PHONE_WIDTH = 360

/** Colours fade from one theme to the other: a check in between would find a wrong contrast. */
const WAIT_FOR_TRANSITIONS = `(async () => {
  const isShort = ({ effect }) => effect.getTiming().iterations === 1
  for (let quiet = 0; quiet < 3; quiet++) {
    await new Promise((resolve) => requestAnimationFrame(resolve))
    const running = document.getAnimations().filter(isShort)
    if (running.length > 0) quiet = -1
    await Promise.all(running.map(({ finished }) => finished.catch(() => undefined)))
  }
})()`

/** Returns what is wrong with a page, in words. The backdrop of a dialog darkens the page, so `part` limits the check to the dialog. */
export async function findBarriers(page: Page, part?: string): Promise<readonly string[]> {
  const wrong: string[] = []
  await page.setViewportSize(WIDE)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    wrong.push(...(await runAxe(page, part)).map((line) => `${colorScheme}: ${line}`))
  }
  await page.setViewportSize({ width: PHONE_WIDTH, height: 740 })
  wrong.push(...(await runAxe(page, part)).map((line) => `phone: ${line}`))
  const width = await page.evaluate<number>('document.documentElement.scrollWidth')
  if (width > PHONE_WIDTH) wrong.push(`phone: the page is ${width} wide because of ${await findWidest(page)}`)
  await page.setViewportSize(WIDE)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.evaluate(WAIT_FOR_TRANSITIONS)
  return wrong
}

async function runAxe(page: Page, part: string | undefined): Promise<readonly string[]> {
  await page.evaluate(WAIT_FOR_TRANSITIONS)
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe.source)
  const scope = part === undefined ? 'document' : JSON.stringify({ include: [part] })
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${scope}, { resultTypes: ['violations'] })`)
  return violations.map(({ id, impact, nodes }) => {
    const places = nodes.map(
      ({ html, any }) => `${html.slice(0, 160)} (${any.map(({ message }) => message).join('; ')})`,
    )
    return `${id} (${impact ?? 'unknown'}): ${places.slice(0, 5).join('\n    ')}`
  })
}

async function findWidest(page: Page): Promise<string> {
  return page.evaluate<string>(`[...document.querySelectorAll('main *, [role=dialog] *, header *')]
    .filter((element) => element.getBoundingClientRect().right > ${PHONE_WIDTH + 1})
    .slice(0, 5).map((element) => element.outerHTML.slice(0, 160)).join('\\n    ')`)
}
