// Every page of the application is usable with a screen reader, in both themes, on a wide screen and on a phone.
import { describe, expect } from 'vitest'
import { testInBrowser, type Tab } from '../browser.js'
import { findBarriers } from './axe.js'
import { FIRM, PERSON } from './models.js'
import { BOB, Person, useAdminService, withOther } from './person.js'

const USER = 'verso.auth.User'
const ROLE = 'verso.auth.Role'
const DIALOG = '[role=dialog]'
const MENU = '[role=menu]'

describe('accessibility', () => {
  const admin = useAdminService()

  async function createPerson(): Promise<number> {
    const { data: firm } = await admin.program.create(FIRM, {
      code: Math.random().toString(36).slice(2, 9),
      name: 'Harbour & Sons',
      addresses: [
        { city: 'Kiel', street: 'Hafenstrasse 1' },
        { city: 'Rome', street: 'Via Roma 2' },
      ],
    })
    const { data } = await admin.program.create(PERSON, {
      firstName: 'Grace',
      lastName: 'Harper',
      email: 'grace@example.org',
      birthday: '1906-12-09',
      metOn: '2024-03-31T10:00:00.000Z',
      balance: '1234.50',
      vip: true,
      stage: 'known',
      extra: { likes: ['walks', 'boats'] },
      notes: 'She met us in Kiel in March, and likes long walks.\nhttps://example.org',
      firm: { id: firm.id },
    })
    return data.id
  }

  /** Checks what a page shows now, and names the page if something is wrong. */
  async function check(person: Person, name: string, part?: string): Promise<void> {
    expect(await findBarriers(person.page, part), name).toEqual([])
  }

  testInBrowser('the sign-in page and the dialog after the end of a session', async (tab) => {
    tab.permit(admin.url)
    const person = new Person(tab, tab.page, admin.url)
    await person.open('/')
    await person.page.getByRole('heading', { name: 'Sign in to Verso' }).waitFor()
    await check(person, 'sign-in')
    await person.fillSignIn('nobody', 'wrong')
    await person.see('User name or password is wrong.')
    await check(person, 'sign-in with a failure')
    await person.fillSignIn(BOB.username, BOB.password)
    await person.see('Welcome, Bob')
    const { data } = await admin.program.find(USER, { filter: "username = 'bob'" })
    await admin.program.request('DELETE', `/ws/users/${data[0]?.id}/sessions`)
    // The stream of changes may notice the end only after its next heartbeat.
    await person.open(`/records/${PERSON}`)
    await person.dialog.getByText('Your session has ended').waitFor()
    await check(person, 'session dialog', DIALOG)
    await tab.takeErrors(/status of 401/)
  })

  testInBrowser('home, lists, their dialogs and menus', async (tab) => {
    await createPerson()
    await createPerson()
    const ada = await Person.enter(tab, admin.url)
    await ada.open('/')
    await ada.see('Two people, one record, nothing lost')
    await check(ada, 'home')
    await ada.page.getByRole('button', { name: 'Ada' }).click()
    await ada.page.getByRole('menu').waitFor()
    await check(ada, 'user menu', MENU)
    await ada.page.keyboard.press('Escape')
    const filter = encodeURIComponent(
      JSON.stringify({
        and: [{ lastName: { like: '%Har%' } }, { birthday: { '>': '1900-01-01' } }, { 'no.such': 1 }],
      }),
    )
    await ada.open(`/records/${PERSON}?filter=${filter}`)
    await ada.page.getByRole('list', { name: 'Filters' }).waitFor()
    await tab.takeErrors(/status of 400/)
    await check(ada, 'list with filters')
    const found = encodeURIComponent(JSON.stringify({ and: [{ lastName: { like: '%Har%' } }] }))
    await ada.open(`/records/${PERSON}?filter=${found}&columns=fullName,email,birthday,metOn,firm,vip,notes`)
    await ada.page.getByRole('row').nth(1).waitFor()
    await ada.page.getByRole('checkbox').nth(1).check()
    await check(ada, 'list with a selection')
    await ada.page.getByRole('button', { name: 'Filter', exact: true }).click()
    await ada.dialog.getByLabel('Field').fill('Birthday')
    await ada.page.getByRole('option', { name: 'Birthday' }).click()
    await check(ada, 'filter dialog', DIALOG)
    await ada.dialog.getByRole('button', { name: 'Cancel' }).click()
    await ada.dialog.waitFor({ state: 'detached' })
    await ada.page.getByRole('button', { name: 'Columns' }).click()
    await ada.page.getByRole('menu').waitFor()
    await check(ada, 'columns menu', MENU)
    await ada.page.keyboard.press('Escape')
    await ada.open('/records/crm.Label')
    await ada.see('There are no records yet.')
    await check(ada, 'empty list')
    const { data: removed } = await admin.program.create(PERSON, { lastName: 'Gone' })
    await admin.program.remove(PERSON, removed.id, { version: 0 })
    await ada.open(`/records/${PERSON}/deleted`)
    await ada.page.getByRole('button', { name: /^Restore/ }).waitFor()
    await check(ada, 'deleted records')
    await ada.open('/nothing/here')
    await ada.see('There is no such page.')
    await check(ada, 'no page')
  })

  testInBrowser('forms with values, with faults, with marks of others, and with lines', async (tab) => {
    const id = await createPerson()
    const ada = await Person.enter(tab, admin.url)
    await ada.openRecord(PERSON, id)
    await ada.field('Last name').fill('Hopper')
    await admin.program.update(PERSON, id, { version: 0, lastName: 'Murray', email: 'm@example.org' })
    await ada.see(/changed this/)
    await ada.field('Score').fill('many')
    await ada.field('Notes').focus()
    await check(ada, 'form with marks')
    await ada.openNew(FIRM)
    await ada.page.getByRole('button', { name: 'Add line' }).click()
    await ada.page.getByRole('textbox', { name: 'Code' }).fill('x')
    await ada.page.getByRole('button', { name: 'Create', exact: true }).click()
    await ada.see(/fields? needs? another value/)
    await tab.takeErrors(/status of (400|422)/)
    await check(ada, 'new record with faults')
    const { data: firms } = await admin.program.find(FIRM, { limit: 1 })
    await ada.openRecord(FIRM, firms[0]?.id ?? 0)
    await check(ada, 'owned list')
  })

  /** Bob, who edits the same record. */
  async function openBoth(tab: Tab, run: (ada: Person, bob: Person) => Promise<void>): Promise<void> {
    const id = await createPerson()
    const ada = await Person.enter(tab, admin.url)
    await ada.openRecord(PERSON, id)
    await withOther(ada, BOB, async (bob) => {
      await bob.openRecord(PERSON, id)
      await run(ada, bob)
    })
  }

  testInBrowser('the cards about a conflict and about a deleted record', async (tab) => {
    await openBoth(tab, async (ada, bob) => {
      await ada.field('Last name').fill('Hopper')
      await ada.field('Notes').fill('She met us in Kiel in May.')
      await bob.field('Last name').fill('Murray')
      await bob.field('Notes').fill('She met us in Oslo in March, and likes long walks.')
      await bob.save()
      await ada.saveButton.click()
      await ada.dialog.waitFor()
      await check(ada, 'conflict card', DIALOG)
      await ada.dialog.getByRole('radio', { name: /Yours/ }).first().click()
      await ada.dialog.getByRole('button', { name: 'Show the value before both' }).first().click()
      await check(ada, 'conflict card with a choice', DIALOG)
      await ada.page.keyboard.press('Escape')
      await bob.page.getByRole('button', { name: 'Delete' }).click()
      await check(bob, 'question before a deletion', DIALOG)
      await bob.dialog.getByRole('button', { name: 'Delete' }).click()
      await ada.dialog.getByText('Bob deleted this record').waitFor()
      await check(ada, 'deleted card', DIALOG)
      await tab.takeErrors(/status of (404|409)/)
    })
  })

  testInBrowser('the history of a record', async (tab) => {
    const id = await createPerson()
    await admin.program.update(PERSON, id, {
      version: 0,
      notes: 'She met us in Oslo in March, and likes walks.',
    })
    await admin.program.update(PERSON, id, { version: 1, lastName: 'Hopper', vip: false, balance: '5.00' })
    const ada = await Person.enter(tab, admin.url)
    await ada.open(`/records/${PERSON}/${id}/history`)
    await ada.page.getByRole('button', { name: 'Restore this version: 0' }).waitFor()
    await check(ada, 'timeline')
    await ada.page.getByRole('tab', { name: 'Compare' }).click()
    await ada.page.getByText('Hopper').first().waitFor()
    await check(ada, 'compare')
    await ada.page.getByRole('tab', { name: 'As it was' }).click()
    await ada.page.getByRole('slider').waitFor()
    await ada.page.getByRole('term').filter({ hasText: 'Balance' }).waitFor()
    await check(ada, 'as it was')
    await admin.program.remove(PERSON, id, { version: 2 })
    await ada.open(`/records/${PERSON}/${id}/history`)
    await ada.see(/This record was deleted by/)
    await check(ada, 'history of a deleted record')
    await tab.takeErrors(/status of 404/)
  })

  testInBrowser('account, users and roles', async (tab) => {
    const ada = await Person.enter(tab, admin.url)
    await ada.open('/account')
    await ada.page.getByRole('button', { name: 'Create a key' }).click()
    await check(ada, 'account with the form of a key')
    await ada.page.getByLabel('Purpose of the key').fill('A program')
    await ada.page.getByRole('button', { name: 'Create a key' }).click()
    await ada.see('Copy the key now.')
    await check(ada, 'account with a new key')
    const { data: role } = await admin.program.create(ROLE, {
      name: 'clerk',
      permissions: [
        {
          model: PERSON,
          canRead: true,
          canUpdate: true,
          condition: 'createdBy = :user',
          readable: ['email'],
        },
        { model: 'crm.*', canRead: true },
      ],
    })
    await ada.openRecord(ROLE, role.id)
    await ada.page.getByRole('button', { name: 'Add a permission' }).click()
    await check(ada, 'role')
    const { data: users } = await admin.program.find(USER, { filter: "username = 'bob'" })
    await ada.openRecord(USER, users[0]?.id ?? 0)
    await ada.see('Access of this user')
    await check(ada, 'user')
  })

  testInBrowser('in French, with a stored theme', async (tab) => {
    const id = await createPerson()
    const ada = await Person.enter(tab, admin.url)
    await tab.context.addInitScript(
      `localStorage.setItem('verso:locale', '"fr"'); localStorage.setItem('verso:theme', '"dark"')`,
    )
    await ada.open(`/records/${PERSON}/${id}`)
    await ada.page.getByRole('button', { name: 'Enregistrer', exact: true }).waitFor()
    expect(await ada.page.evaluate('document.documentElement.lang')).toBe('fr')
    expect(await ada.page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(17, 20, 24)')
    await check(ada, 'form in French')
    await ada.openList(PERSON)
    await check(ada, 'list in French')
  })
})
