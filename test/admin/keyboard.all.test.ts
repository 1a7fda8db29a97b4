// The main way through the application by the keys alone. At each stop the focus is in sight, and looks like it.
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { testInBrowser, type Tab } from '../browser.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, USERNAME } from '../targets.js'
import { PERSON } from './models.js'
import { BOB, useAdminService } from './person.js'

const MAX_STOPS = 90

/** Runs in the page. An input of MUI draws its border on another element, so parents and borders around it count, too. */
const DEFINE_TOOLS = `
  window.describeLook = (element) => {
    const parts = [element, element.parentElement, element.parentElement?.parentElement]
    const border = element.closest('.MuiInputBase-root')?.querySelector('fieldset')
    return [...parts, border].filter(Boolean).map((part) => {
      const { outlineStyle, outlineWidth, outlineColor, boxShadow, borderColor, borderWidth } = getComputedStyle(part)
      const outline = outlineStyle === 'none' ? 'none' : [outlineStyle, outlineWidth, outlineColor].join(' ')
      return [outline, boxShadow, borderColor, borderWidth].join('; ')
    }).join(' | ')
  }
  window.rememberLooks = () => {
    const stops = document.querySelectorAll('a[href], button, input, textarea, [tabindex], [role=combobox]')
    window.looks = new Map([...stops].filter((each) => each !== document.activeElement).map((each) => [each, describeLook(each)]))
  }
  window.describeFocus = () => {
    const element = document.activeElement
    if (!element || element === document.body) return { name: '', id: '', isOnPage: true }
    const { left, top, right, bottom, width, height } = element.getBoundingClientRect()
    const x = (Math.max(0, left) + Math.min(innerWidth, right)) / 2
    const y = (Math.max(0, top) + Math.min(innerHeight, bottom)) / 2
    const isInSight = width > 0 && height > 0 && bottom > 0 && right > 0 && top < innerHeight && left < innerWidth
    const above = document.elementFromPoint(x, y)
    const box = element.closest('.MuiInputBase-root') ?? element
    const isCovered = above !== null && !box.contains(above) && !above.contains(element)
    const before = window.looks?.get(element)
    const outlines = before === undefined && /(solid|auto)/.test(describeLook(element))
    return {
      name: element.getAttribute('aria-label') ?? element.innerText.trim(),
      id: element.id,
      tag: element.tagName.toLowerCase(),
      isInSight: isInSight && !isCovered,
      isMarked: outlines || (before !== undefined && before !== describeLook(element)),
    }
  }`

interface Focus {
  readonly name: string
  readonly id: string
  readonly tag?: string
  readonly isInSight?: boolean
  readonly isMarked?: boolean
  /** Nothing has the focus, as after a page was replaced. */
  readonly isOnPage?: boolean
}

/** A person without a mouse. */
class Typist {
  constructor(readonly page: Page) {}

  static async enter(tab: Tab, url: string): Promise<Typist> {
    await tab.context.addInitScript(DEFINE_TOOLS)
    await tab.open(url)
    return new Typist(tab.page)
  }

  async press(key: string): Promise<void> {
    await this.page.keyboard.press(key)
  }

  async findFocus(): Promise<Focus> {
    return this.page.evaluate<Focus>('describeFocus()')
  }

  /** Presses Tab, and requires that the next stop can be seen. */
  async step(key: string): Promise<Focus> {
    await this.page.evaluate('rememberLooks()')
    await this.press(key)
    const focus = await this.findFocus()
    if (focus.isOnPage) return focus
    const stop = `${focus.tag} “${focus.name}” ${focus.id}`
    // Colours and places may take a moment to change.
    await expect
      .poll(async () => (await this.findFocus()).isMarked, { message: `${stop} looks focused` })
      .toBe(true)
    await expect
      .poll(async () => (await this.findFocus()).isInSight, { message: `${stop} is in sight` })
      .toBe(true)
    return focus
  }

  /** Goes from stop to stop until one has this name, or this id. */
  async goTo(name: string | RegExp, key: 'Tab' | 'Shift+Tab' | 'ArrowDown' = 'Tab'): Promise<void> {
    const seen: string[] = []
    for (let stop = 0; stop < MAX_STOPS; stop++) {
      const focus = await this.step(key)
      const texts = [focus.name, focus.id]
      if (texts.some((text) => (typeof name === 'string' ? text === name : name.test(text)))) return
      seen.push(focus.name || focus.id)
    }
    throw new Error(`No stop of ${key} is ${String(name)}: ${seen.join(', ')}`)
  }

  async type(text: string): Promise<void> {
    await this.press('Control+A')
    await this.page.keyboard.type(text)
  }

  async seeHeading(name: string | RegExp): Promise<void> {
    await this.page.getByRole('heading', { level: 1, name }).waitFor()
  }
}

describe('by the keyboard alone', () => {
  const admin = useAdminService()

  testInBrowser('sign in, open, edit, resolve a conflict, restore a version, and sign out', async (tab) => {
    const { data } = await admin.program.create(PERSON, {
      firstName: 'Grace',
      lastName: 'Harper',
      phone: '0',
    })
    const bob = await HttpClient.login(admin.url, BOB.username, BOB.password)
    const typist = await Typist.enter(tab, `${admin.url}/`)
    await typist.seeHeading('Sign in to Verso')
    await typist.type(USERNAME)
    await typist.step('Tab')
    await typist.type(PASSWORD)
    await typist.press('Enter')
    await typist.seeHeading('Welcome, Ada')

    expect((await typist.step('Tab')).name).toBe('Skip to content')
    await typist.press('Enter')
    expect(await tab.page.evaluate('document.activeElement.tagName')).toBe('MAIN')
    await typist.step('Tab')
    expect(await tab.page.evaluate(`document.activeElement.closest('main') !== null`)).toBe(true)

    await typist.goTo('Person', 'Shift+Tab')
    await typist.press('Enter')
    await typist.seeHeading('Person')
    await tab.page.getByRole('link', { name: 'Grace Harper' }).waitFor()
    await typist.goTo('Grace Harper')
    await typist.press('Enter')
    await typist.seeHeading('Grace Harper')

    await typist.goTo('field-lastName')
    await typist.type('Hopper')
    await bob.update(PERSON, data.id, { version: 0, lastName: 'Murray' })
    await typist.press('Control+s')
    await tab.page.getByRole('dialog').waitFor()
    const isInDialog = `document.activeElement.closest('.MuiDialog-root') !== null`
    await expect.poll(async () => tab.page.evaluate(isInDialog)).toBe(true)
    await typist.goTo(/^Bob/)
    await typist.goTo(/^Yours/, 'Shift+Tab')
    await typist.press('Space')
    await tab.page.getByText('All decided').waitFor()
    await typist.goTo('Save this')
    await typist.press('Enter')
    await tab.page.getByRole('dialog').waitFor({ state: 'detached' })
    await tab.page.getByRole('main').getByText('Saved', { exact: true }).waitFor()
    expect(await admin.program.read(PERSON, data.id)).toMatchObject({ lastName: 'Hopper', version: 2 })
    expect((await tab.takeErrors(/status of 409/)).length).toBe(1)

    await typist.goTo('field-phone')
    await typist.type('555')
    await typist.press('Enter')
    await expect
      .poll(async () => admin.program.read(PERSON, data.id))
      .toMatchObject({ phone: '555', version: 3 })

    await typist.goTo('History', 'Shift+Tab')
    await typist.press('Enter')
    await typist.seeHeading('History of Grace Hopper')
    await tab.page.getByRole('heading', { name: 'Version 0' }).waitFor()
    await typist.goTo('Restore this version: 0')
    await typist.press('Enter')
    await tab.page.getByText('Version 0 was restored.').waitFor()
    expect(await admin.program.read(PERSON, data.id)).toMatchObject({
      lastName: 'Harper',
      phone: '0',
      version: 4,
    })

    await typist.goTo('Ada', 'Shift+Tab')
    await typist.press('Enter')
    await tab.page.getByRole('menu').waitFor()
    await typist.goTo('Sign out', 'ArrowDown')
    await typist.press('Enter')
    await typist.seeHeading('Sign in to Verso')
    expect(await tab.page.evaluate('document.activeElement.name')).toBe('username')
  })

  testInBrowser('a filter is added, a row is selected and a delete is refused by Escape', async (tab) => {
    await admin.program.create(PERSON, { firstName: 'Alan', lastName: 'Turing', score: 77 })
    const typist = await Typist.enter(tab, `${admin.url}/#/records/${PERSON}`)
    await typist.seeHeading('Sign in to Verso')
    await typist.type(USERNAME)
    await typist.step('Tab')
    await typist.type(PASSWORD)
    await typist.press('Enter')
    await tab.page.getByRole('table').waitFor()
    await typist.goTo('Filter')
    await typist.press('Enter')
    await tab.page.getByRole('dialog').waitFor()
    await tab.page.keyboard.type('Score')
    await tab.page.getByRole('option', { name: 'Score', exact: true }).waitFor()
    await typist.press('ArrowDown')
    await typist.press('Enter')
    await typist.goTo('condition-value')
    await tab.page.keyboard.type('77')
    await typist.press('Enter')
    await tab.page.getByRole('dialog').waitFor({ state: 'detached' })
    await tab.page.getByRole('status').getByText('1 record', { exact: true }).waitFor()
    await typist.goTo('Select Alan Turing')
    await typist.press('Space')
    await tab.page.getByText('1 selected').waitFor()
    await typist.goTo('Delete', 'Shift+Tab')
    await typist.press('Enter')
    await tab.page.getByRole('dialog').waitFor()
    expect((await typist.findFocus()).name).toBe('Cancel')
    await typist.press('Escape')
    await tab.page.getByRole('dialog').waitFor({ state: 'detached' })
    expect((await typist.findFocus()).name).toBe('Delete')
  })
})
