// Promises of the form, as functions that fail if the application breaks one. Mutants of the application must fail.
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { PERSON } from './models.js'
import type { AdminService, Person } from './person.js'

export async function createPerson({ program }: AdminService): Promise<number> {
  const { data } = await program.create(PERSON, { firstName: 'Grace', lastName: 'Harper', phone: '0' })
  return data.id
}

/** Counts dialogs that appear in a page, however short they stay. */
export async function countDialogs(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(`
    window.dialogs = 0
    new MutationObserver(() => {
      if (document.querySelector('[role=dialog]')) window.dialogs++
    }).observe(document.body, { childList: true, subtree: true })`)
  return async () => page.evaluate<number>('window.dialogs')
}

export async function delayWrites(page: Page, latencyMs: number): Promise<void> {
  await page.route('**/ws/rest/**', async (route) => {
    if (route.request().method() === 'POST') await new Promise((resolve) => setTimeout(resolve, latencyMs))
    await route.continue()
  })
}

export async function readDrafts(page: Page): Promise<string> {
  return page.evaluate<string>(
    `JSON.stringify(Object.entries(localStorage).filter(([key]) => key.includes('draft:')))`,
  )
}

/** Ends the process of a page, as a crash does: no event tells the page about it. */
export async function kill(page: Page): Promise<void> {
  const debug = await page.context().newCDPSession(page)
  const crashed = page.waitForEvent('crash')
  void debug.send('Page.crash').catch(() => undefined)
  await crashed
  await page.close()
}

/** A double click on a slow network sends one request, and shows no card. */
export async function requireOneSaveForDoubleClick(admin: AdminService, person: Person): Promise<void> {
  const id = await createPerson(admin)
  await person.openRecord(PERSON, id)
  const findDialogs = await countDialogs(person.page)
  await delayWrites(person.page, 300)
  for (let index = 1; index <= 3; index++) {
    await person.field('Phone').fill(`1-${index}`)
    await person.saveButton.dblclick()
    await person.waitUntilSaved()
  }
  expect(await findDialogs()).toBe(0)
  expect(await admin.program.read(PERSON, id)).toMatchObject({ phone: '1-3', version: 3 })
}

/** A draft survives a crash without its secrets, and does not undo what others have saved since. */
export async function requireDraftMerged(admin: AdminService, before: Person): Promise<void> {
  const id = await createPerson(admin)
  await before.openRecord(PERSON, id)
  await before.field('Notes').fill('An hour of work')
  await before.field('Pin').fill('top-secret-pin')
  const stored = await readDrafts(before.page)
  expect(stored).toContain('An hour of work')
  expect(stored).not.toContain('top-secret-pin')
  await kill(before.page)
  await admin.program.update(PERSON, id, { version: 0, notes: 'Of somebody else' })
  const after = await before.openTab()
  await after.openRecord(PERSON, id)
  await after.expectValue('Notes', 'An hour of work')
  await after.saveButton.click()
  await after.dialog.getByRole('radio', { name: /Yours/ }).click()
  await after.dialog.getByRole('button', { name: 'Save this' }).click()
  await after.waitUntilSaved()
  expect(await admin.program.read(PERSON, id)).toMatchObject({ notes: 'An hour of work', version: 2 })
  expect(await readDrafts(after.page)).toBe('[]')
}

/** A create whose answers are lost makes one record. */
export async function requireOneCreate(admin: AdminService, person: Person): Promise<void> {
  await person.openNew(PERSON)
  await person.field('Last name').fill('Unsent')
  const { total } = await admin.program.find(PERSON, { limit: 0 })
  let isLost = true
  await person.page.route(`**/ws/rest/${PERSON}`, async (route) => {
    if (route.request().method() !== 'PUT' || !isLost) return route.continue()
    await route.fetch()
    return route.abort()
  })
  const create = person.page.getByRole('button', { name: 'Create', exact: true })
  await create.click()
  // The client has given up. The person tries again.
  await person.page.getByRole('alert').waitFor({ timeout: 30_000 })
  isLost = false
  await create.click()
  await person.see(/is created/)
  expect((await admin.program.find(PERSON, { limit: 0 })).total).toBe(total + 1)
}

/** A save without an answer that was stored is no conflict with oneself. */
export async function requireNoConflictWithLostAnswer(admin: AdminService, person: Person): Promise<void> {
  const id = await createPerson(admin)
  await person.openRecord(PERSON, id)
  await person.field('Last name').fill('Hop')
  let isLost = true
  await person.page.route(`**/ws/rest/${PERSON}/${id}`, async (route) => {
    if (route.request().method() !== 'POST' || !isLost) return route.continue()
    await route.fetch()
    return route.abort()
  })
  await person.saveButton.click()
  await person.page.getByRole('alert').waitFor({ timeout: 30_000 })
  isLost = false
  await person.field('Last name').fill('Hopper')
  await person.save()
  await person.expectNoCard()
  expect(await admin.program.read(PERSON, id)).toMatchObject({ lastName: 'Hopper' })
}

/** Undo after a merge takes back one's own change only. */
export async function requireUndoOfOwnChange(admin: AdminService, person: Person): Promise<void> {
  const id = await createPerson(admin)
  await person.openRecord(PERSON, id)
  await person.field('Phone').fill('111')
  await admin.program.update(PERSON, id, { version: 0, email: 'other@example.org' })
  await person.save()
  await person.page.getByRole('button', { name: 'Undo' }).click()
  await person.expectValue('Phone', '0')
  expect(await admin.program.read(PERSON, id)).toMatchObject({ phone: '0', email: 'other@example.org' })
}

/** A change of somebody else neither replaces what was typed nor moves the version that it is based on. */
export async function requireTypedTextKept(admin: AdminService, person: Person): Promise<void> {
  const id = await createPerson(admin)
  await person.openRecord(PERSON, id)
  await person.field('Last name').fill('Hopper')
  await admin.program.update(PERSON, id, { version: 0, lastName: 'Murray', email: 'other@example.org' })
  await person.see(/changed this/)
  expect(await person.field('Last name').inputValue()).toBe('Hopper')
  await person.saveButton.click()
  await person.dialog.getByRole('radio', { name: /Yours/ }).waitFor()
  expect(await admin.program.read(PERSON, id)).toMatchObject({ lastName: 'Murray' })
}
