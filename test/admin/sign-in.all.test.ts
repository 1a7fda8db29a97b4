// The way in and out: the sign-in page, the pages behind one-time links, and what is left for the next person.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { testInBrowser, type Tab } from '../browser.js'
import { cleanUpAfterwards, start } from '../cli/program.js'
import { HttpClient } from '../http-client.js'
import { countAnew, PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { ADMIN_MODELS, PERSON } from './models.js'
import { BOB, Person, useAdminService } from './person.js'

const UNAUTHENTICATED = /status of 401/
const THROTTLED = /status of 429/
const FAILED_ATTEMPTS = 31
const CARL = { username: 'carl', password: 'a lamp beside the canal' }
const NEW_PASSWORD = 'seven herons over Kiel'
const TOKEN = 'b'.repeat(43)

async function openSignIn(tab: Tab, url: string): Promise<Person> {
  await tab.open(`${url}/`)
  await tab.page.getByRole('heading', { level: 1, name: 'Sign in to Verso' }).waitFor()
  return new Person(tab, tab.page, url)
}

async function seeStart(page: Page, name: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name: `Welcome, ${name}` }).waitFor()
}

async function signOut(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { level: 1, name: 'Sign in to Verso' }).waitFor()
}

describe('the sign-in page', () => {
  const admin = useAdminService()

  testInBrowser('refuses a wrong password in words, and then lets the person in', async (tab) => {
    const person = await openSignIn(tab, admin.url)
    expect(await tab.page.evaluate('document.activeElement.name')).toBe('username')
    await person.fillSignIn(BOB.username, 'not his password')
    await tab.page.getByRole('alert').getByText('User name or password is wrong.').waitFor()
    expect(await tab.page.getByLabel('User name').inputValue()).toBe(BOB.username)
    expect(await tab.page.getByLabel('Password').inputValue()).toBe('')
    expect(await tab.takeErrors(UNAUTHENTICATED)).toHaveLength(1)
    await person.fillSignIn(BOB.username, BOB.password)
    await seeStart(tab.page, BOB.name)
    await tab.page.reload()
    await seeStart(tab.page, BOB.name)
  })

  testInBrowser('says after too many failed attempts how long to wait', async (tab) => {
    await addUser(admin.service.app, { ...CARL, roles: [] })
    const attempts = Array.from({ length: FAILED_ATTEMPTS }, () =>
      HttpClient.login(admin.url, CARL.username, 'wrong password').catch(() => undefined),
    )
    await Promise.all(attempts)
    const person = await openSignIn(tab, admin.url)
    await person.fillSignIn(CARL.username, CARL.password)
    const alert = tab.page.getByRole('alert')
    await alert.waitFor()
    expect(await alert.innerText()).toMatch(
      /^Too many failed attempts\. Wait \d+ seconds?, then try again\.$/,
    )
    expect(await tab.takeErrors(THROTTLED)).toHaveLength(1)
    // Others are not kept out.
    await person.fillSignIn(BOB.username, BOB.password)
    await seeStart(tab.page, BOB.name)
  })

  testInBrowser('leads to the page of the address, and shows no demo account', async (tab) => {
    const { data } = await admin.program.create(PERSON, { firstName: 'Linked' })
    await tab.open(`${admin.url}/#/records/${PERSON}/${data.id}`)
    const person = new Person(tab, tab.page, admin.url)
    await tab.page.getByRole('heading', { level: 1, name: 'Sign in to Verso' }).waitFor()
    expect(await tab.page.getByRole('button', { name: 'Use the demo account' }).count()).toBe(0)
    await person.fillSignIn(BOB.username, BOB.password)
    await person.expectValue('First name', 'Linked')
  })

  testInBrowser('a reset link leads through its pages to the application', async (tab) => {
    const dora = { username: 'dora', name: 'Dora', password: 'old words of hers' }
    const id = await addUser(admin.service.app, { ...dora, roles: ['reader'] })
    const answer = await admin.program.request('POST', `/ws/users/${id}/reset`)
    const { data } = (await answer.json()) as { data: readonly { link: string }[] }
    await tab.open(data[0]?.link ?? '')
    await tab.page.getByRole('heading', { level: 1, name: 'Set a new password' }).waitFor()
    await tab.page.getByLabel(/^Password/).fill(NEW_PASSWORD)
    await tab.page.getByRole('button', { name: 'Set the password' }).click()
    await tab.page.getByRole('heading', { level: 1, name: 'The password is set' }).waitFor()
    await tab.page.getByRole('link', { name: 'Open Verso' }).click()
    const person = new Person(tab, tab.page, admin.url)
    await person.fillSignIn(dora.username, NEW_PASSWORD)
    await seeStart(tab.page, dora.name)
  })

  testInBrowser(
    'after a sign-out nothing of the person is shown, not to the next one either',
    async (tab) => {
      const { data } = await admin.program.create(PERSON, { firstName: 'Grace', notes: 'seen by Ada' })
      const person = await Person.enter(tab, admin.url)
      await person.openList(PERSON)
      await person.openRecord(PERSON, data.id)
      await person.field('Phone').fill('555')
      await person.save()
      await person.field('Notes').fill('a draft of Ada')
      await person.see('Not saved yet. A draft is kept in this browser.')
      await signOut(tab.page, 'Ada')
      const expectNoData = async () => {
        await tab.page.getByLabel('User name').waitFor()
        const text = await tab.page.locator('body').innerText()
        expect(text).not.toMatch(/Grace|seen by Ada|a draft of Ada/)
      }
      await expectNoData()
      await tab.page.goBack()
      await expectNoData()
      await tab.page.reload()
      await expectNoData()
      await tab.page.goForward()
      await person.fillSignIn(BOB.username, BOB.password)
      await person.expectValue('Notes', 'seen by Ada')
      await tab.page.getByRole('button', { name: 'Bob', exact: true }).waitFor()
      expect(await tab.page.getByText('What you typed before is back').count()).toBe(0)
      // Without a page load in between, either: not the draft, not the message that offers to undo the save.
      await signOut(tab.page, 'Bob')
      await person.fillSignIn(USERNAME, PASSWORD)
      await person.expectValue('Notes', 'a draft of Ada')
      await person.see('What you typed before is back')
      await person.save()
      await tab.page.getByText('is saved.').waitFor()
      await signOut(tab.page, 'Ada')
      await person.fillSignIn(BOB.username, BOB.password)
      await person.expectValue('Notes', 'a draft of Ada')
      expect(await tab.page.getByText('is saved.').count()).toBe(0)
      expect(await tab.page.getByText('What you typed before is back').count()).toBe(0)
    },
  )
})

describe('verso demo', () => {
  cleanUpAfterwards()

  testInBrowser('offers its account, which one click uses', async (tab) => {
    const { url } = await start(['demo', '--port', '0', '--db', 'sqlite::memory:'])
    await openSignIn(tab, url)
    await tab.page.getByText('Its account is admin with the password admin.').waitFor()
    await tab.page.getByRole('button', { name: 'Use the demo account' }).click()
    await tab.page.getByRole('heading', { level: 1, name: /^Welcome/ }).waitFor()
    await tab.page.getByRole('heading', { name: 'Two people, one record, nothing lost' }).waitFor()
  })
})

describe('a new service', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService('sqlite', { models: ADMIN_MODELS, setupToken: TOKEN })
    await service.app.db.transaction((tx) => tx.run('delete from "verso.auth.User"'))
    await countAnew(service, 'verso.auth.User')
  })
  afterAll(() => service.close())

  testInBrowser('a set-up link leads through its pages to the application', async (tab) => {
    await tab.open(`${service.url}/setup?token=${TOKEN}`)
    await tab.page.getByRole('heading', { level: 1, name: 'Create the first administrator' }).waitFor()
    await tab.page.getByLabel('User name').fill('first')
    await tab.page.getByLabel(/^Password/).fill(NEW_PASSWORD)
    await tab.page.getByRole('button', { name: 'Create the account' }).click()
    await tab.page.getByRole('heading', { level: 1, name: 'The administrator is ready' }).waitFor()
    await tab.page.getByRole('link', { name: 'Open Verso' }).click()
    await new Person(tab, tab.page, service.url).fillSignIn('first', NEW_PASSWORD)
    await seeStart(tab.page, 'first')
    await tab.page.getByRole('link', { name: 'Person', exact: true }).first().waitFor()
  })
})

for (const { title, http } of [
  { title: 'below a base path', http: { basePath: '/x' } },
  { title: 'with the protocol of Axelor', http: { compat: 'axelor' as const, basicAuth: true } },
])
  describe(title, () => {
    const admin = useAdminService('sqlite', { http })

    testInBrowser('sign-in, list, edit, conflict and sign-out work', async (tab) => {
      const { data } = await admin.program.create(PERSON, { firstName: 'Grace', lastName: 'Harper' })
      const person = await openSignIn(tab, admin.url)
      await person.fillSignIn(USERNAME, 'wrong password')
      await tab.page.getByRole('alert').getByText('User name or password is wrong.').waitFor()
      await person.fillSignIn(USERNAME, PASSWORD)
      await seeStart(tab.page, 'Ada')
      await tab.page
        .getByRole('navigation', { name: 'Models' })
        .getByRole('link', { name: 'Person', exact: true })
        .click()
      await tab.page.getByRole('link', { name: 'Grace Harper' }).click()
      await person.field('Phone').fill('111')
      await person.save()
      await person.field('Last name').fill('Hopper')
      const bob = await HttpClient.login(admin.url, BOB.username, BOB.password)
      await bob.update(PERSON, data.id, { version: 1, lastName: 'Murray' })
      await person.saveButton.click()
      await person.dialog.getByText('Murray').waitFor()
      await person.dialog.getByRole('radio', { name: /Yours/ }).click()
      await person.dialog.getByRole('button', { name: 'Save this' }).click()
      await person.waitUntilSaved()
      expect(await admin.program.read(PERSON, data.id)).toMatchObject({ phone: '111', lastName: 'Hopper' })
      await signOut(tab.page, 'Ada')
      await tab.takeErrors(/status of (401|409)/)
    })
  })
