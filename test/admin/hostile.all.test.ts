// Texts of records are shown as texts, whatever is in them: nothing of them runs, and nothing breaks.
import { beforeAll, describe, expect } from 'vitest'
import { testInBrowser } from '../browser.js'
import {
  createPeople,
  createRelated,
  enterWatched,
  expectHarmless,
  expectShown,
  LABEL,
  pickText,
  type HostileRecords,
} from './hostile.js'
import { HOSTILE_TEXTS } from './hostile-texts.js'
import { FIRM, PERSON } from './models.js'
import { BOB, useAdminService, withOther } from './person.js'

const ALL_COLUMNS = 'fullName,firstName,lastName,email,extra,notes,firm,labels'

describe('hostile texts', () => {
  const admin = useAdminService()
  let related: HostileRecords
  beforeAll(async () => {
    related = await createRelated(admin.program)
  })

  testInBrowser('are shown as texts in lists, search, filters and pickers', async (tab) => {
    await createPeople(admin.program, related)
    const ada = await enterWatched(tab, admin.url)
    await ada.open(`/records/${PERSON}?perPage=50&columns=${ALL_COLUMNS}`)
    await expectShown(ada, HOSTILE_TEXTS)
    await ada.page.setViewportSize({ width: 360, height: 740 })
    await expectShown(ada, HOSTILE_TEXTS)
    expect(await ada.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    await ada.page.setViewportSize({ width: 1280, height: 900 })
    await ada.open(`/records/${FIRM}?perPage=50&columns=name,addresses`)
    await expectShown(ada, HOSTILE_TEXTS)
    const filters = HOSTILE_TEXTS.map((text) => ({
      lastName: { like: `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%` },
    }))
    for (const [index, filter] of filters.entries()) {
      await ada.open(`/records/${PERSON}?filter=${encodeURIComponent(JSON.stringify({ and: [filter] }))}`)
      await expectShown(ada, [pickText(index)], '[aria-label=Filters]')
      await expectShown(ada, [pickText(index)], 'tbody')
    }
    await ada.openList(PERSON)
    for (const text of HOSTILE_TEXTS) {
      await ada.page.getByLabel('Search in Person').fill(text)
      await ada.page.keyboard.press('Enter')
    }
    await expectHarmless(ada)
    await ada.openNew(PERSON)
    await ada.page.getByRole('combobox', { name: 'Firm' }).fill('<script>')
    await ada.page.getByRole('option', { name: pickText(0), exact: true }).waitFor()
    await expectShown(ada, [pickText(0), pickText(1)], '[role=listbox]')
    await tab.takeErrors(/status of 400/)
  })

  testInBrowser('are shown as texts in forms, and stay as they are when they are saved', async (tab) => {
    const people = await createPeople(admin.program, related)
    const ada = await enterWatched(tab, admin.url)
    for (const [index, { id }] of people.entries()) {
      await ada.openRecord(PERSON, id)
      await ada.expectValue('Last name', pickText(index))
      await expectShown(ada, [pickText(index)])
    }
    for (const [index, { id }] of related.firms.entries()) {
      if (index % 4 !== 0) continue
      await ada.openRecord(FIRM, id)
      await expectShown(ada, [pickText(index)], 'section, fieldset, main')
    }
    await ada.openNew(LABEL)
    const typed = HOSTILE_TEXTS.filter((_, index) => index % 4 === 0)
    for (const [index, text] of typed.entries()) {
      if (index > 0) await ada.openNew(LABEL)
      await ada.page.getByRole('textbox', { name: 'Name' }).fill(`${text} ${index}`)
      await ada.page.getByRole('button', { name: 'Create', exact: true }).click()
      // The form of the stored record has taken the place of the new one.
      await ada.page.getByRole('main').getByText('No unsaved changes').waitFor()
    }
    const { data } = await admin.program.find(LABEL, {
      sortBy: '-id',
      limit: typed.length,
      fields: 'name',
    })
    expect(data.map(({ name }) => name).reverse()).toEqual(typed.map((text, index) => `${text} ${index}`))
    await expectHarmless(ada)
  })

  testInBrowser('are shown as texts in the history and among deleted records', async (tab) => {
    const people = await createPeople(admin.program, related)
    const ada = await enterWatched(tab, admin.url)
    for (const [index, { id }] of people.entries()) {
      const [lastName, email, notes] = [
        pickText(index + 1),
        pickText(index + 2),
        `${pickText(index)} ${pickText(index + 3)}`,
      ]
      await admin.program.update(PERSON, id, { version: 0, lastName, email, notes })
      // Each page shows the texts of two records.
      if (index % 2 !== 0) continue
      await ada.open(`/records/${PERSON}/${id}/history`)
      await expectShown(ada, [pickText(index), lastName])
      if (index % 4 !== 0) continue
      await ada.page.getByRole('tab', { name: 'Compare' }).click()
      await expectShown(ada, [pickText(index), lastName, email])
      await ada.page.getByRole('tab', { name: 'As it was' }).click()
      await expectShown(ada, [lastName, email])
      await ada.page.getByRole('slider').focus()
      await ada.page.keyboard.press('ArrowLeft')
      await ada.see('Version 0')
      await expectShown(ada, [pickText(index)])
    }
    await admin.program.removeAll(
      PERSON,
      people.map(({ id }) => ({ id, version: 1 })),
    )
    await ada.open(`/records/${PERSON}/deleted`)
    await ada.page.getByRole('button', { name: 'Show more' }).click()
    await expectShown(ada, HOSTILE_TEXTS)
    await ada.open(`/records/${PERSON}/${people[0]?.id}/history`)
    await ada.see(/This record was deleted/)
    await expectShown(ada, [pickText(0)])
    await tab.takeErrors(/status of 404/)
  })

  testInBrowser('are shown as texts on both sides of a conflict', async (tab) => {
    const people = await createPeople(admin.program, related)
    const ada = await enterWatched(tab, admin.url)
    await withOther(ada, BOB, async (bob) => {
      const labelled = ['First name', 'Last name', 'Email', 'Notes']
      for (let index = 0; index < HOSTILE_TEXTS.length; index += 2 * labelled.length) {
        const id = people[index]?.id ?? 0
        await Promise.all([ada.openRecord(PERSON, id), bob.openRecord(PERSON, id)])
        for (const [field, label] of labelled.entries()) {
          await ada.field(label).fill(`mine ${pickText(index + field)}`)
          await bob.field(label).fill(`theirs ${pickText(index + labelled.length + field)}`)
        }
        await bob.save()
        await ada.saveButton.click()
        await ada.dialog.getByText('4 of 4 left').waitFor()
        const texts = HOSTILE_TEXTS.slice(index, index + 2 * labelled.length)
        await expectShown(ada, texts, '[role=dialog]')
        for (const radio of await ada.dialog.getByRole('radio', { name: /Bob/ }).all()) await radio.click()
        await expectHarmless(ada)
        await ada.dialog.getByRole('button', { name: 'Save this' }).click()
        await ada.waitUntilSaved()
        await expectHarmless(ada)
      }
      await tab.takeErrors(/status of 409/)
    })
  })
})
