// Checks that hostile texts are shown as texts, and that nothing of them has run.
import { expect } from 'vitest'
import type { WireRecord } from '../../src/wire.js'
import type { Tab } from '../browser.js'
import type { HttpClient } from '../http-client.js'
import { HOSTILE_TEXTS } from './hostile-texts.js'
import { FIRM, PERSON } from './models.js'
import { Person } from './person.js'

export const LABEL = 'crm.Label'

/** Words that tell screen readers what was added, between the words of a text. Computed names have a space for any white space. */
const MARKS = String.raw`/\[(added|removed): |\] /g`

/** Elements that only markup in a text could have made. */
const INTRUDERS = `[
  ...document.querySelectorAll('body :is(script:not([src]), style, iframe, object, embed, base, meta, link, math, b, animate)'),
  ...document.querySelectorAll('body img:not([src^="blob:"], [src*="/assets/"])'),
  ...[...document.querySelectorAll('a[href]')].filter(({ protocol }) => !['http:', 'https:', 'mailto:'].includes(protocol)),
  ...[...document.querySelectorAll('*')].filter((element) => element.getAttributeNames().some((name) => name.startsWith('on'))),
].map((element) => element.outerHTML)`

/** A script of a text that opens a dialog leaves a trace, too. */
const TRACE_DIALOGS = `for (const name of ['alert', 'confirm', 'prompt', 'print']) window[name] = () => { top.hostile = name }`

export async function enterWatched(tab: Tab, url: string): Promise<Person> {
  await tab.context.addInitScript(TRACE_DIALOGS)
  return Person.enter(tab, url)
}

export async function expectHarmless({ page }: Person): Promise<void> {
  expect(await page.evaluate('String(window.hostile) + String(({}).admin)')).toBe('undefinedundefined')
  expect(await page.evaluate(INTRUDERS)).toEqual([])
}

/** Waits until the page shows all texts, in elements or as values of inputs, and checks that nothing of them has run. */
export async function expectShown(person: Person, texts: readonly string[], part = 'main'): Promise<void> {
  const findMissing = () =>
    person.page.evaluate(
      `(() => {
        const clean = (text) => text.replaceAll(${MARKS}, '').replaceAll(/\\s+/g, ' ').trim()
        const parts = [...document.querySelectorAll(${JSON.stringify(part)})]
        const inputs = parts.flatMap((element) => [...element.querySelectorAll('input, textarea')])
        const shown = [...parts.map(({ textContent }) => textContent), ...inputs.map(({ value }) => value)].map(clean)
        return ${JSON.stringify(texts)}.filter((text) => !shown.some((each) => each.includes(clean(text))))
      })()`,
    )
  await expect.poll(findMissing, { timeout: 8_000 }).toEqual([])
  await expectHarmless(person)
}

/** The text with this number. After the last one comes the first. */
export function pickText(index: number): string {
  return HOSTILE_TEXTS[index % HOSTILE_TEXTS.length] ?? ''
}

export interface HostileRecords {
  readonly firms: readonly WireRecord[]
  readonly labels: readonly WireRecord[]
}

/** Stores each text in a firm, its lines, and a label. */
export async function createRelated(program: HttpClient): Promise<HostileRecords> {
  const { data: firms } = await program.save(
    FIRM,
    HOSTILE_TEXTS.map((text, index) => ({
      code: `H${index}`,
      name: text,
      addresses: [{ city: text, street: text }],
    })),
  )
  const { data: labels } = await program.save(
    LABEL,
    HOSTILE_TEXTS.map((name) => ({ name })),
  )
  return { firms, labels }
}

/** Stores each text in every text field of a person. */
export async function createPeople(
  program: HttpClient,
  { firms, labels }: HostileRecords,
): Promise<readonly WireRecord[]> {
  const { data } = await program.save(
    PERSON,
    HOSTILE_TEXTS.map((text, index) => ({
      firstName: text,
      lastName: text,
      email: text,
      notes: `${text}\n${text} https://example.org`,
      // The service rejects the key `__proto__`.
      extra: { text, [`key ${text}`]: [text] },
      firm: { id: firms[index]?.id },
      labels: [{ id: labels[index]?.id }],
    })),
  )
  return data
}
