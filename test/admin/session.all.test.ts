// Sessions that end, and other people in the same browser: nothing typed is lost, and nobody writes for somebody else.
import { describe, expect } from 'vitest'
import { testInBrowser } from '../browser.js'
import { PASSWORD, USERNAME } from '../targets.js'
import { PERSON } from './models.js'
import { BOB, Person, useAdminService } from './person.js'
import { createPerson } from './scenarios.js'

describe('the session of a person', () => {
  const admin = useAdminService()

  /** Ends all sessions of Bob, as an administrator does. */
  async function endSessions(): Promise<void> {
    const [user] = (await admin.program.find('verso.auth.User', { filter: "username = 'bob'" })).data
    await admin.program.request('DELETE', `/ws/users/${user?.id}/sessions`)
  }

  testInBrowser(
    'a save after the end of the session asks for the password over the form, and goes on',
    async (tab) => {
      const id = await createPerson(admin)
      const bob = await Person.enter(tab, admin.url, BOB)
      // Otherwise the stream of changes would notice the end first.
      await bob.page.route('**/ws/changes**', (route) => route.abort())
      await bob.openRecord(PERSON, id)
      await bob.field('Notes').fill('An hour of work')
      await endSessions()
      await bob.saveButton.click()
      await bob.dialog.getByText('Your session has ended').waitFor()
      expect(await bob.field('Notes').inputValue()).toBe('An hour of work')
      await bob.dialog.getByLabel('Password').fill('wrong')
      await bob.dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
      await bob.dialog.getByText('User name or password is wrong.').waitFor()
      await bob.dialog.getByLabel('Password').fill(BOB.password)
      await bob.dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
      await bob.waitUntilSaved()
      await bob.expectNoCard()
      expect(await admin.program.read(PERSON, id)).toMatchObject({ notes: 'An hour of work' })
      await tab.takeErrors(/status of 401|ERR_FAILED/)
    },
  )

  testInBrowser(
    'a session that ends while somebody types asks at once, and the form stays as it is',
    async (tab) => {
      const id = await createPerson(admin)
      const bob = await Person.enter(tab, admin.url, BOB)
      await bob.openRecord(PERSON, id)
      await bob.field('Notes').fill('An hour of work')
      await endSessions()
      // The stream of changes looks at the session before it sends the next one.
      await createPerson(admin)
      await bob.dialog.getByText('Your session has ended').waitFor()
      expect(await bob.field('Notes').inputValue()).toBe('An hour of work')
      await bob.dialog.getByLabel('Password').fill(BOB.password)
      await bob.dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
      await bob.dialog.waitFor({ state: 'detached' })
      await bob.save()
      expect(await admin.program.read(PERSON, id)).toMatchObject({ notes: 'An hour of work' })
      await tab.takeErrors(/status of 401/)
    },
  )

  testInBrowser('a tab never writes for somebody else who has signed in in another tab', async (tab) => {
    const id = await createPerson(admin)
    const ada = await Person.enter(tab, admin.url)
    await ada.openRecord(PERSON, id)
    await ada.field('Notes').fill('Of Ada')
    // The session of the browser is now that of Bob.
    await Person.enter(tab, admin.url, BOB)
    await ada.saveButton.click()
    await ada.page.getByRole('button', { name: 'Bob' }).waitFor()
    await ada.expectValue('Notes', '')
    expect(await admin.program.read(PERSON, id)).toMatchObject({ notes: null, version: 0 })
    // Her draft waits for her.
    await Person.enter(tab, admin.url)
    await ada.page.reload()
    await ada.expectValue('Notes', 'Of Ada')
  })

  testInBrowser('a save that waits for a session is never sent for somebody else', async (tab) => {
    const id = await createPerson(admin)
    const bob = await Person.enter(tab, admin.url, BOB)
    await bob.page.route('**/ws/changes**', (route) => route.abort())
    await bob.openRecord(PERSON, id)
    await bob.field('Notes').fill('Of Bob')
    await endSessions()
    await bob.saveButton.click()
    await bob.dialog.getByRole('button', { name: 'Sign in as somebody else' }).click()
    await bob.fillSignIn(USERNAME, PASSWORD)
    await bob.page.getByRole('button', { name: 'Ada' }).waitFor()
    await bob.saveButton.waitFor()
    expect(await bob.field('Notes').inputValue()).toBe('')
    expect(await admin.program.read(PERSON, id)).toMatchObject({ notes: null, version: 0 })
    await tab.takeErrors(/status of 401|ERR_FAILED/)
  })

  testInBrowser('after a sign-out in one tab, a sign-in there is enough for the other one', async (tab) => {
    const id = await createPerson(admin)
    const first = await Person.enter(tab, admin.url, BOB)
    await first.openRecord(PERSON, id)
    await first.field('Notes').fill('An hour of work')
    const second = await first.openTab()
    await second.openRecord(PERSON, id)
    await second.page.getByRole('button', { name: 'Bob' }).click()
    await second.page.getByRole('menuitem', { name: 'Sign out' }).click()
    await second.page.getByLabel('User name').waitFor()
    // The stream of changes of the first tab notices the end with the next change.
    await createPerson(admin)
    await first.dialog.getByText('Your session has ended').waitFor()
    await second.fillSignIn(BOB.username, BOB.password)
    await second.saveButton.waitFor()
    await first.dialog.waitFor({ state: 'detached' })
    await createPerson(admin)
    await second.expectNoCard()
    await first.save()
    expect(await admin.program.read(PERSON, id)).toMatchObject({ notes: 'An hour of work' })
    await second.expectValue('Notes', 'An hour of work')
    await tab.takeErrors(/status of 401/)
  })

  testInBrowser(
    'a service that cannot be reached is said in words, and the form goes on when it is back',
    async (tab) => {
      const id = await createPerson(admin)
      const person = await Person.enter(tab, admin.url)
      await person.openRecord(PERSON, id)
      await person.field('Notes').fill('An hour of work')
      await tab.context.setOffline(true)
      await person.saveButton.click()
      await person.page
        .getByRole('status')
        .getByText('The service cannot be reached.', { exact: false })
        .first()
        .waitFor()
      await person.page
        .getByRole('alert')
        .getByText(/cannot be reached/)
        .waitFor({ timeout: 30_000 })
      expect(await person.field('Notes').inputValue()).toBe('An hour of work')
      await tab.context.setOffline(false)
      await expect
        .poll(() => person.page.getByRole('status').getByText('The service cannot be reached.').count())
        .toBe(0)
      await person.save()
      expect(await admin.program.read(PERSON, id)).toMatchObject({ notes: 'An hour of work' })
      await tab.takeErrors(/ERR_INTERNET_DISCONNECTED|ERR_FAILED|ERR_NETWORK/)
    },
  )
})
