// Two people on one record, in two browsers: nobody's work is lost.
import { describe, expect } from 'vitest'
import { testInBrowser, type Tab } from '../browser.js'
import { FIRM, PERSON } from './models.js'
import { BOB, Person, useAdminService, withOther } from './person.js'

const CONFLICT = /status of 409/
const GONE = /status of 404/

describe('two people on one record', () => {
  const admin = useAdminService()
  let number = 0

  async function createPerson(): Promise<number> {
    const { data } = await admin.program.create(PERSON, {
      firstName: 'Grace',
      lastName: `Harper ${++number}`,
      email: 'grace@example.org',
      notes: 'She met us in Kiel in March, and likes long walks.',
    })
    return data.id
  }

  /** Ada and Bob open the same record. */
  async function bothOpen(
    tab: Tab,
    model: string,
    id: number,
    run: (ada: Person, bob: Person) => Promise<void>,
  ): Promise<void> {
    const ada = await Person.enter(tab, admin.url)
    await ada.openRecord(model, id)
    await withOther(ada, BOB, async (bob) => {
      await bob.openRecord(model, id)
      await run(ada, bob)
    })
  }

  /** Bob and then Ada change the last name and save, so that Ada gets the card. */
  async function clash(ada: Person, bob: Person): Promise<void> {
    await ada.field('Last name').fill('Hopper')
    await bob.field('Last name').fill('Murray')
    await bob.save()
    await ada.saveButton.click()
    await ada.dialog.waitFor()
    expect(await ada.tab.takeErrors(CONFLICT)).toHaveLength(1)
  }

  testInBrowser(
    'changes of different fields are merged, said in words, and undone by one click',
    async (tab) => {
      const id = await createPerson()
      await bothOpen(tab, PERSON, id, async (ada, bob) => {
        await ada.field('Phone').fill('111')
        await bob.field('Email').fill('bob@example.org')
        await bob.save()
        await ada.save()
        await ada.see(/merged with what Bob changed meanwhile: Email/)
        await ada.expectNoCard()
        await ada.expectValue('Email', 'bob@example.org')
        expect(await admin.program.read(PERSON, id)).toMatchObject({
          phone: '111',
          email: 'bob@example.org',
          version: 2,
        })
        await ada.page.getByRole('button', { name: 'Undo' }).click()
        await ada.expectValue('Phone', '')
        expect(await admin.program.read(PERSON, id)).toMatchObject({
          phone: null,
          email: 'bob@example.org',
          version: 3,
        })
      })
    },
  )

  testInBrowser(
    'a field that somebody else has changed is marked before the save, with their value',
    async (tab) => {
      const id = await createPerson()
      await bothOpen(tab, PERSON, id, async (ada, bob) => {
        await ada.field('Last name').fill('Hopper')
        await bob.field('Last name').fill('Murray')
        await bob.save()
        await ada.see(/Bob changed this/)
        await ada.page.getByRole('main').getByText('Murray', { exact: true }).waitFor()
        expect(await ada.field('Last name').inputValue()).toBe('Hopper')
        await ada.page.getByRole('button', { name: 'Take it' }).click()
        await ada.expectValue('Last name', 'Murray')
      })
    },
  )

  testInBrowser('the card asks only about fields that both changed, and preselects nothing', async (tab) => {
    const id = await createPerson()
    await bothOpen(tab, PERSON, id, async (ada, bob) => {
      await ada.field('Phone').fill('111')
      await ada.field('Notes').fill('She met us in Kiel in March, and likes short walks.')
      await bob.field('Notes').fill('She met us in Kiel in April, and likes long walks.')
      await bob.field('Email').fill('bob@example.org')
      await clash(ada, bob)
      const groups = ada.dialog.getByRole('group')
      expect(await groups.count()).toBe(2)
      await ada.dialog.getByText('2 of 2 left').waitFor()
      expect(await ada.dialog.getByRole('radio', { checked: true }).count()).toBe(0)
      expect(await ada.dialog.getByRole('button', { name: 'Save this' }).isDisabled()).toBe(true)
      await ada.dialog.getByText('Yours (not saved yet)').first().waitFor()
      await ada.dialog.getByText('Bob, just now').first().waitFor()
      expect(await ada.dialog.locator('ins').allInnerTexts()).toEqual([
        expect.stringContaining('short'),
        expect.stringContaining('April'),
      ])
      const names = groups.filter({ hasText: 'Last name' })
      await names.getByRole('button', { name: 'Show the value before both' }).click()
      await names.getByText(/Harper/).waitFor()
      await names.getByRole('radio', { name: /Yours/ }).click()
      await ada.dialog.getByText('1 of 2 left').waitFor()
      await groups.filter({ hasText: 'Notes' }).getByRole('radio', { name: /Bob/ }).click()
      await ada.dialog.getByText('All decided').waitFor()
      await ada.dialog.getByRole('button', { name: 'Save this' }).click()
      await ada.waitUntilSaved()
      expect(await admin.program.read(PERSON, id)).toMatchObject({
        lastName: 'Hopper',
        phone: '111',
        email: 'bob@example.org',
        notes: 'She met us in Kiel in April, and likes long walks.',
      })
      // The value of Ada that lost was never saved, so the form still has it.
      await ada.see('Your value that was not kept:')
      await ada.page.getByRole('button', { name: 'Use it again' }).click()
      await ada.expectValue('Notes', 'She met us in Kiel in March, and likes short walks.')
      const { data } = await admin.program.history(PERSON, id)
      expect(data.map(({ changes }) => changes['lastName']?.after)).toContain('Murray')
    })
  })

  for (const [outcome, expected] of [
    ['Yours', 'Hopper'],
    ['Bob', 'Murray'],
    ['edited', 'Hopper-Murray'],
  ] as const)
    testInBrowser(`the outcome of a conflict can be: ${outcome}`, async (tab) => {
      const id = await createPerson()
      await bothOpen(tab, PERSON, id, async (ada, bob) => {
        await clash(ada, bob)
        const side = outcome === 'Bob' ? /Bob/ : /Yours/
        await ada.dialog.getByRole('radio', { name: side }).click()
        if (outcome === 'edited') await ada.dialog.getByLabel('Result, can be edited').fill(expected)
        await ada.dialog.getByRole('button', { name: 'Save this' }).click()
        await ada.waitUntilSaved()
        await ada.expectValue('Last name', expected)
        await bob.expectValue('Last name', expected)
        expect(await admin.program.read(PERSON, id)).toMatchObject({ lastName: expected })
      })
    })

  testInBrowser(
    'Escape leads back to the form with everything that was typed, and saving asks again',
    async (tab) => {
      const id = await createPerson()
      await bothOpen(tab, PERSON, id, async (ada, bob) => {
        await clash(ada, bob)
        await ada.page.keyboard.press('Escape')
        await ada.dialog.waitFor({ state: 'detached' })
        expect(await ada.field('Last name').inputValue()).toBe('Hopper')
        await ada.saveButton.click()
        await ada.dialog.waitFor()
        expect(await ada.tab.takeErrors(CONFLICT)).toHaveLength(1)
        // Bob saves once more while Ada decides: she is asked about the newer value.
        await bob.field('Last name').fill('Murray-Smith')
        await bob.save()
        await ada.dialog.getByRole('radio', { name: /Yours/ }).click()
        await ada.dialog.getByRole('button', { name: 'Save this' }).click()
        await ada.dialog.getByText('Murray-Smith').waitFor()
        expect(await ada.tab.takeErrors(CONFLICT)).toHaveLength(1)
        expect(await ada.dialog.getByRole('radio', { checked: true }).count()).toBe(0)
        await ada.dialog.getByRole('radio', { name: /Bob/ }).click()
        await ada.dialog.getByRole('button', { name: 'Save this' }).click()
        await ada.dialog.waitFor({ state: 'detached' })
        await ada.expectValue('Last name', 'Murray-Smith')
      })
    },
  )

  for (const outcome of ['restore', 'copy', 'discard'] as const)
    testInBrowser(`a record that was deleted meanwhile: ${outcome}`, async (tab) => {
      const id = await createPerson()
      await bothOpen(tab, PERSON, id, async (ada, bob) => {
        await ada.field('Phone').fill('111')
        await bob.page.getByRole('button', { name: 'Delete' }).click()
        await bob.dialog.getByRole('button', { name: 'Delete' }).click()
        await bob.see(/is deleted/)
        await ada.dialog.getByText('Bob deleted this record').waitFor()
        await ada.tab.takeErrors(GONE)
        if (outcome === 'restore') {
          await ada.dialog.getByRole('button', { name: 'Restore it with my changes' }).click()
          await ada.waitUntilSaved()
          expect(await admin.program.read(PERSON, id)).toMatchObject({
            phone: '111',
            email: 'grace@example.org',
          })
        } else if (outcome === 'copy') {
          await ada.dialog.getByRole('button', { name: 'Make a copy with my changes' }).click()
          await ada.page.getByRole('button', { name: 'Create' }).click()
          await ada.see(/is created/)
          await ada.expectValue('Phone', '111')
          const { data } = await admin.program.find(PERSON, {
            sortBy: '-id',
            limit: 1,
            fields: 'phone,email',
          })
          expect(data).toMatchObject([{ phone: '111', email: 'grace@example.org' }])
        } else {
          await ada.dialog.getByRole('button', { name: 'Discard my changes' }).click()
          await ada.page.getByRole('table').waitFor()
          await ada.page.getByRole('button', { name: 'Bring back' }).waitFor()
        }
        await ada.tab.takeErrors(GONE)
      })
    })

  testInBrowser(
    'lines of an owned list are merged by identity, and only a line that both changed is asked about',
    async (tab) => {
      const { data: firm } = await admin.program.create(FIRM, {
        code: `F${++number}`,
        name: 'Lines',
        addresses: [
          { city: 'Kiel', street: 'Hafenstrasse 1' },
          { city: 'Rome', street: 'Via Roma 2' },
        ],
      })
      await bothOpen(tab, FIRM, firm.id, async (ada, bob) => {
        const street = (person: Person, line: number) =>
          person.page.locator(`[id="field-addresses[${line}].street"]`)
        const city = (person: Person, line: number) =>
          person.page.locator(`[id="field-addresses[${line}].city"]`)
        // Different lines: merged without a question.
        await street(ada, 0).fill('Hafenstrasse 100')
        await bob.page.getByRole('button', { name: 'Add line' }).click()
        await city(bob, 2).fill('Oslo')
        await bob.save()
        await ada.save()
        expect(await ada.tab.takeErrors(CONFLICT)).toHaveLength(1)
        await ada.expectNoCard()
        await expect.poll(() => city(ada, 2).inputValue()).toBe('Oslo')
        await expect.poll(() => street(bob, 0).inputValue()).toBe('Hafenstrasse 100')
        // The same value of the same line.
        await street(ada, 1).fill('Via Ada')
        await street(bob, 1).fill('Via Bob')
        await bob.save()
        await ada.saveButton.click()
        await ada.dialog.getByText(/Rome/).first().waitFor()
        expect((await ada.tab.takeErrors(CONFLICT)).length).toBeGreaterThan(0)
        expect(await ada.dialog.getByRole('group').count()).toBe(1)
        await ada.dialog.getByRole('radio', { name: /Yours/ }).click()
        await ada.dialog.getByRole('button', { name: 'Save this' }).click()
        await ada.waitUntilSaved()
        const { addresses } = (await admin.program.fetch(FIRM, firm.id, {
          fields: ['addresses'],
          related: { addresses: ['street', 'city'] },
        })) as unknown as { addresses: readonly object[] }
        expect(addresses).toMatchObject([
          { city: 'Kiel', street: 'Hafenstrasse 100' },
          { city: 'Rome', street: 'Via Ada' },
          { city: 'Oslo' },
        ])
      })
    },
  )
})
