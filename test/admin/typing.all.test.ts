// Nothing typed is ever thrown away: slow networks, double clicks, changes of others, killed tabs.
import { describe, expect } from 'vitest'
import { testInBrowser } from '../browser.js'
import { Person, useAdminService } from './person.js'
import { PERSON } from './models.js'
import { countDialogs, createPerson, delayWrites, kill, readDrafts } from './scenarios.js'

const SAVES = 50
const LATENCY_MS = 500
const WRITES = 150
const CHARACTERS = 200
const WRITES_PER_SECOND = 5

describe('nothing typed is thrown away', () => {
  const admin = useAdminService()

  testInBrowser(
    `${2 * SAVES} saves by two tabs of one person, with double clicks at ${LATENCY_MS} ms latency, show no card`,
    async (tab) => {
      const id = await createPerson(admin)
      const first = await Person.enter(tab, admin.url)
      const second = await first.openTab()
      const typed = async (person: Person, label: string, prefix: string) => {
        await person.openRecord(PERSON, id)
        const findDialogs = await countDialogs(person.page)
        await delayWrites(person.page, LATENCY_MS)
        for (let index = 1; index <= SAVES; index++) {
          await person.field(label).fill(`${prefix}${index}`)
          await person.saveButton.dblclick()
          await person.waitUntilSaved()
          expect(await person.field(label).inputValue()).toBe(`${prefix}${index}`)
        }
        expect(await findDialogs()).toBe(0)
      }
      await Promise.all([typed(first, 'Phone', '1-'), typed(second, 'Email', 'm')])
      expect(await admin.program.read(PERSON, id)).toMatchObject({
        phone: `1-${SAVES}`,
        email: `m${SAVES}`,
        // A double click sends one request, and each save is one version.
        version: 2 * SAVES,
      })
    },
  )

  testInBrowser(
    `${CHARACTERS} characters typed beside ${WRITES} writes, up to ${WRITES_PER_SECOND} a second, are all kept, and nothing moves`,
    async (tab) => {
      const id = await createPerson(admin)
      const person = await Person.enter(tab, admin.url)
      await person.openRecord(PERSON, id)
      const field = person.field('Last name')
      await field.fill('')
      // Marks take the line below a field that is there anyway, so every input stays where it is.
      const findBoxes = async () =>
        person.page
          .evaluate<string>(`JSON.stringify([...document.querySelectorAll('main :is(input, textarea, [role=combobox])[id^="field-"], main [type=submit]')].map((input) => {
          const { x, y, width, height } = input.getBoundingClientRect()
          return [input.id, x, y, width, height]
        }))`)
      const boxes = await findBoxes()
      const scroll = await person.page.evaluate<number>('scrollY')
      let [writes, text] = [0, '']
      const write = async () => {
        let version = 0
        while (writes < WRITES || text.length < CHARACTERS) {
          const data = { version, email: `w${++writes}@example.org`, score: writes % 100, phone: `${writes}` }
          version = (await admin.program.update(PERSON, id, data)).data.version
          await new Promise((resolve) => setTimeout(resolve, 1000 / WRITES_PER_SECOND))
        }
      }
      const type = async () => {
        while (text.length < CHARACTERS) {
          const key = 'abcdefghij'.charAt(text.length % 10)
          await person.page.keyboard.press(key)
          text += key
          expect(await person.page.evaluate(`document.activeElement.id`)).toBe('field-lastName')
          expect(await person.page.evaluate(`document.activeElement.selectionStart`)).toBe(text.length)
          expect(await findBoxes()).toBe(boxes)
          await new Promise((resolve) => setTimeout(resolve, 70))
        }
      }
      await Promise.all([write(), type()])
      expect(await field.inputValue()).toBe(text)
      expect(await person.page.evaluate('scrollY')).toBe(scroll)
      await person.see(`w${writes}@example.org`)
      await person.save()
      await person.expectNoCard()
      expect(await admin.program.read(PERSON, id)).toMatchObject({
        lastName: text,
        email: `w${writes}@example.org`,
      })
    },
  )

  testInBrowser('two tabs keep a draft each, and discarding one offers it back', async (tab) => {
    const id = await createPerson(admin)
    const first = await Person.enter(tab, admin.url)
    await first.openRecord(PERSON, id)
    await first.field('Phone').fill('first')
    const second = await first.openTab()
    await second.openRecord(PERSON, id)
    await second.expectValue('Phone', '0')
    await second.field('Email').fill('second')
    expect(JSON.parse(await readDrafts(first.page))).toHaveLength(2)
    await first.page.getByRole('button', { name: 'Discard' }).click()
    await first.expectValue('Phone', '0')
    expect(JSON.parse(await readDrafts(first.page))).toHaveLength(1)
    await first.page.getByRole('button', { name: 'Bring back' }).click()
    await first.expectValue('Phone', 'first')
    await first.save()
    await second.save()
    expect(await admin.program.read(PERSON, id)).toMatchObject({ phone: 'first', email: 'second' })
  })

  testInBrowser('a draft of a new record comes back after a crash', async (tab) => {
    const before = await Person.enter(tab, admin.url)
    await before.openNew(PERSON)
    await before.field('Last name').fill('Unsent')
    await kill(before.page)
    const after = await before.openTab()
    await after.openNew(PERSON)
    await after.expectValue('Last name', 'Unsent')
    await after.page.getByRole('button', { name: 'Create', exact: true }).click()
    await after.see(/is created/)
    expect(await readDrafts(after.page)).toBe('[]')
  })

  testInBrowser('a draft with other fields than a newer version is merged without a card', async (tab) => {
    const id = await createPerson(admin)
    const before = await Person.enter(tab, admin.url)
    await before.openRecord(PERSON, id)
    await before.field('Notes').fill('An hour of work')
    await before.page.close()
    await admin.program.update(PERSON, id, { version: 0, email: 'other@example.org' })
    const after = await before.openTab()
    await after.openRecord(PERSON, id)
    await after.see(/What you typed before is back/)
    await after.see(/The record has changed since/)
    await after.save()
    await after.expectNoCard()
    expect(await admin.program.read(PERSON, id)).toMatchObject({
      notes: 'An hour of work',
      email: 'other@example.org',
    })
  })

  testInBrowser('text that is typed during a slow create is saved in the same record', async (tab) => {
    const person = await Person.enter(tab, admin.url)
    await person.openNew(PERSON)
    const { total } = await admin.program.find(PERSON, { limit: 0 })
    await person.page.route(`**/ws/rest/${PERSON}`, async (route) => {
      await new Promise((resolve) => setTimeout(resolve, LATENCY_MS))
      await route.continue()
    })
    await person.field('Last name').fill('Slow')
    await person.page.keyboard.press('Control+s')
    await person.field('Phone').fill('typed meanwhile')
    await person.page.keyboard.press('Control+s')
    await person.see(/is created/)
    await person.saveButton.waitFor()
    await person.expectValue('Phone', 'typed meanwhile')
    expect((await admin.program.find(PERSON, { limit: 0 })).total).toBe(total + 1)
    const { data } = await admin.program.find(PERSON, { sortBy: '-id', limit: 1, fields: 'lastName,phone' })
    expect(data).toMatchObject([{ lastName: 'Slow', phone: 'typed meanwhile' }])
  })

  testInBrowser('text that is typed between a save and its conflict is kept', async (tab) => {
    const id = await createPerson(admin)
    const person = await Person.enter(tab, admin.url)
    await person.openRecord(PERSON, id)
    await delayWrites(person.page, LATENCY_MS)
    await person.field('Last name').fill('Hopper')
    await admin.program.update(PERSON, id, { version: 0, lastName: 'Murray' })
    await person.saveButton.click()
    await person.field('Notes').fill('Typed while the service was answering')
    await person.dialog.getByRole('radio', { name: /Yours/ }).click()
    await person.dialog.getByRole('button', { name: 'Save this' }).click()
    await person.waitUntilSaved()
    expect(await admin.program.read(PERSON, id)).toMatchObject({
      lastName: 'Hopper',
      notes: 'Typed while the service was answering',
    })
    await tab.takeErrors(/status of 409/)
  })

  testInBrowser('discarded text comes back after the page was left', async (tab) => {
    const id = await createPerson(admin)
    const person = await Person.enter(tab, admin.url)
    await person.openRecord(PERSON, id)
    await person.field('Notes').fill('An hour of work')
    await person.page.getByRole('button', { name: 'Discard' }).click()
    await person.page.getByRole('link', { name: 'Person' }).first().click()
    await person.page.getByRole('table').waitFor()
    await person.page.getByRole('button', { name: 'Bring back' }).click()
    await person.expectValue('Notes', 'An hour of work')
    await person.save()
    expect(await admin.program.read(PERSON, id)).toMatchObject({ notes: 'An hour of work' })
  })
})
