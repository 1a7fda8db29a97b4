// The history of a record in a browser: the timeline, any two versions, the record as it was, restore, and deleted records.
import { describe, expect } from 'vitest'
import { testInBrowser } from '../browser.js'
import { FIRM, PERSON } from './models.js'
import { BOB, Person, useAdminService, withOther } from './person.js'

describe('history', () => {
  const admin = useAdminService()

  /** A person with versions 0 to 4. */
  async function createVersions(): Promise<number> {
    const { data } = await admin.program.create(PERSON, {
      firstName: 'Ada',
      lastName: 'Byron',
      notes: 'One two three four',
    })
    const changes = [
      { lastName: 'King' },
      { lastName: 'Lovelace' },
      { notes: 'One two five four' },
      { email: 'a@x.org' },
    ]
    for (const [version, change] of changes.entries())
      await admin.program.update(PERSON, data.id, { version, ...change })
    return data.id
  }

  testInBrowser('a timeline shows who changed which field, and marks the changed words', async (tab) => {
    const id = await createVersions()
    const ada = await Person.enter(tab, admin.url)
    await ada.open(`/records/${PERSON}/${id}/history`)
    await ada.page.getByRole('heading', { level: 1, name: 'History of Ada Lovelace' }).waitFor()
    const entries = ada.page.getByRole('main').getByRole('listitem').filter({ hasText: 'Version' })
    await expect.poll(() => entries.count()).toBe(5)
    expect(await entries.first().innerText()).toMatch(/a@x\.org/)
    expect(await entries.nth(1).locator('del').innerText()).toContain('three')
    expect(await entries.nth(1).locator('ins').innerText()).toContain('five')
    expect(await entries.nth(4).innerText()).toMatch(/Created by you/)
  })

  testInBrowser('any two versions are shown side by side, with only the fields that differ', async (tab) => {
    const id = await createVersions()
    const ada = await Person.enter(tab, admin.url)
    await ada.open(`/records/${PERSON}/${id}/history`)
    await ada.page.getByRole('button', { name: 'Compare with the one before: version 2' }).click()
    const table = ada.page.getByRole('table')
    await table.waitFor()
    const text = await table.innerText()
    expect(text).toContain('King')
    expect(text).toContain('Lovelace')
    expect(text).not.toContain('a@x.org')
    expect(ada.page.url()).toContain('view=compare')
  })

  testInBrowser('a slider shows the record as it was, by keyboard', async (tab) => {
    const id = await createVersions()
    const ada = await Person.enter(tab, admin.url)
    await ada.open(`/records/${PERSON}/${id}/history?view=moment`)
    const slider = ada.page.getByRole('slider')
    await slider.focus()
    await ada.page.keyboard.press('Home')
    await ada.page.getByRole('main').getByText('Ada Byron').first().waitFor()
    expect(await slider.getAttribute('aria-valuetext')).toMatch(/Version 0/)
    await ada.page.keyboard.press('ArrowRight')
    await ada.page.getByRole('main').getByText('Ada King').first().waitFor()
  })

  testInBrowser('one click restores a version, and another one takes it back', async (tab) => {
    const id = await createVersions()
    const ada = await Person.enter(tab, admin.url)
    await ada.open(`/records/${PERSON}/${id}/history`)
    await ada.page.getByRole('button', { name: 'Restore this version: 0' }).click()
    await ada.see('Version 0 was restored.')
    expect(await admin.program.read(PERSON, id)).toMatchObject({ lastName: 'Byron', email: null, version: 5 })
    await ada.page.getByRole('button', { name: 'Undo' }).click()
    await ada.see('Undone.')
    expect(await admin.program.read(PERSON, id)).toMatchObject({
      lastName: 'Lovelace',
      email: 'a@x.org',
      version: 6,
    })
  })

  testInBrowser(
    'a restore after a change of somebody else restores nothing, and shows the change',
    async (tab) => {
      const id = await createVersions()
      const ada = await Person.enter(tab, admin.url)
      await ada.page.route('**/ws/changes**', (route) => route.abort())
      await ada.open(`/records/${PERSON}/${id}/history`)
      const restore = ada.page.getByRole('button', { name: 'Restore this version: 0' })
      await restore.waitFor()
      await admin.program.update(PERSON, id, { version: 4, phone: '555' })
      await restore.click()
      await ada.see(/Somebody has changed the record meanwhile/)
      await ada.page.getByRole('main').getByText('555').first().waitFor()
      expect(await admin.program.read(PERSON, id)).toMatchObject({ lastName: 'Lovelace', version: 5 })
      await tab.takeErrors(/status of 409|ERR_FAILED/)
    },
  )

  testInBrowser('a deleted record is found, looked at and restored with its lines', async (tab) => {
    const { data: firm } = await admin.program.create(FIRM, {
      code: 'GONE',
      name: 'Gone & Sons',
      addresses: [{ city: 'Kiel' }, { city: 'Rome' }],
    })
    const ada = await Person.enter(tab, admin.url)
    await ada.openRecord(FIRM, firm.id)
    await ada.page.getByRole('button', { name: 'Delete', exact: true }).click()
    await ada.dialog.getByRole('button', { name: 'Delete' }).click()
    await ada.see(/is deleted/)
    await ada.open(`/records/${FIRM}/deleted`)
    await ada.page.getByLabel('Find a deleted record').fill('sons')
    await ada.page
      .getByRole('link', { name: /Gone & Sons/ })
      .first()
      .waitFor()
    await withOther(ada, BOB, async (bob) => {
      await bob.open(`/records/${FIRM}/${firm.id}/history`)
      await bob.see(/This record was deleted by/)
    })
    await ada.page.getByRole('button', { name: 'Restore Gone & Sons' }).click()
    await ada.see(/was restored/)
    expect(await admin.program.read(FIRM, firm.id)).toMatchObject({
      name: 'Gone & Sons',
      addresses: [{ city: 'Kiel' }, { city: 'Rome' }],
    })
  })
})
