// A list of 300 records: pages, order, columns, the way back, and the changes of others.
import { beforeAll, describe, expect } from 'vitest'
import { testInBrowser } from '../browser.js'
import { PERSON } from './models.js'
import { Person, useAdminService } from './person.js'
import { createPeople, listRange, nameAll, pad, Reader, RECORDS } from './reader.js'

describe('a list of 300 records', () => {
  const admin = useAdminService()
  let ids: readonly number[] = []

  beforeAll(async () => {
    ids = await createPeople(admin.program)
  })

  testInBrowser('has an exact total and leads to any page, also by its address', async (tab) => {
    const reader = await Reader.enterList(tab, admin.url)
    await reader.expectTotal(RECORDS)
    await reader.expectNames(nameAll(listRange(0, 25)))
    await reader.page.getByRole('button', { name: 'Next page' }).click()
    await reader.expectNames(nameAll(listRange(25, 25)))
    await reader.page.getByRole('button', { name: 'Last page' }).click()
    await reader.expectNames(nameAll(listRange(275, 25)))
    await reader.goTo(7)
    await reader.expectNames(nameAll(listRange(150, 25)))
    await reader.page.getByText('of 12', { exact: true }).waitFor()
    await reader.page.getByLabel('Rows per page').click()
    await reader.page.getByRole('option', { name: '100' }).click()
    await reader.expectNames(nameAll(listRange(0, 100)))
    await reader.page.getByRole('button', { name: 'Next page' }).click()
    await reader.expectNames(nameAll(listRange(100, 100)))
    const beside = new Reader(tab, await tab.context.newPage(), admin.url)
    await beside.page.goto(reader.page.url())
    await beside.expectNames(nameAll(listRange(100, 100)))
    await reader.page.goBack()
    await reader.expectNames(nameAll(listRange(0, 100)))
  })

  testInBrowser('is sorted both ways, and searched by words', async (tab) => {
    const reader = await Reader.enterList(tab, admin.url)
    const header = reader.page.getByRole('button', { name: 'Birthday' })
    await header.click()
    await expect
      .poll(() => reader.page.getByRole('columnheader', { name: 'Birthday' }).getAttribute('aria-sort'))
      .toBe('ascending')
    await reader.expectNames(nameAll(listRange(0, 25)))
    await header.click()
    await reader.expectNames(nameAll(listRange(299, 25, -1)))
    await reader.page.getByLabel('Search in Person').fill('12')
    const found = listRange(0, RECORDS)
      .filter((index) => pad(index).includes('12'))
      .reverse()
    await reader.expectTotal(found.length)
    await reader.expectNames(nameAll(found.slice(0, 25)))
    const beside = new Reader(tab, await tab.context.newPage(), admin.url)
    await beside.page.goto(reader.page.url())
    await beside.expectNames(nameAll(found.slice(0, 25)))
    expect(await beside.page.getByLabel('Search in Person').inputValue()).toBe('12')
    await beside.page.getByLabel('Search in Person').fill('nothing has this')
    await beside.see('No record matches the search and the filters.')
    await beside.page.getByRole('button', { name: 'Clear search and filters' }).click()
    await beside.expectTotal(RECORDS)
  })

  testInBrowser('its columns can be chosen, and the address keeps them', async (tab) => {
    const reader = await Reader.enterList(tab, admin.url)
    const headers = reader.page.getByRole('columnheader')
    await expect.poll(() => headers.allInnerTexts()).toEqual(['', 'Full name', 'Email', 'Birthday', 'Firm'])
    await reader.page.getByRole('button', { name: 'Columns' }).click()
    await reader.page.getByRole('menuitemcheckbox', { name: 'Email' }).click()
    await reader.page.getByRole('menuitemcheckbox', { name: 'Balance' }).click()
    await reader.page.keyboard.press('Escape')
    const expected = ['', 'Full name', 'Birthday', 'Balance', 'Firm']
    await expect.poll(() => headers.allInnerTexts()).toEqual(expected)
    await expect.poll(() => reader.rows.first().innerText()).toContain('0.30')
    const beside = new Reader(tab, await tab.context.newPage(), admin.url)
    await beside.page.goto(reader.page.url())
    await expect.poll(() => beside.page.getByRole('columnheader').allInnerTexts()).toEqual(expected)
  })

  testInBrowser(
    'the way back leads to the same page, filter and place, with the record marked',
    async (tab) => {
      const filter = encodeURIComponent(JSON.stringify({ and: [{ score: { '>=': '10' } }] }))
      const reader = await Reader.enterList(tab, admin.url, `?perPage=50&page=3&filter=${filter}`)
      const row = reader.rows.nth(40)
      const name = await row.locator('th').innerText()
      await row.scrollIntoViewIfNeeded()
      const place = async () => reader.page.evaluate<number>('Math.round(scrollY)')
      const before = await place()
      expect(before).toBeGreaterThan(500)
      const address = reader.page.url()
      await row.getByRole('link').first().click()
      await reader.saveButton.waitFor()
      await reader.page.goBack()
      await reader.page.getByRole('link', { name, exact: true }).waitFor()
      await expect.poll(place).toBe(before)
      expect(reader.page.url()).toBe(address)
      expect(await reader.page.locator('[aria-current=true]').allInnerTexts()).toEqual([name])
      // The link of the form leads to the same place.
      await row.getByRole('link').first().click()
      await reader.saveButton.waitFor()
      await reader.page
        .getByRole('main')
        .getByRole('link', { name: /Person/ })
        .first()
        .click()
      await reader.page.getByRole('link', { name, exact: true }).waitFor()
      await expect.poll(place).toBe(before)
      expect(reader.page.url()).toBe(address)
    },
  )

  testInBrowser('takes the same number of requests for 10 and for 100 rows with relations', async (tab) => {
    const person = await Person.enter(tab, admin.url)
    const count = async (rows: number): Promise<number> => {
      const page = await tab.context.newPage()
      const requests: string[] = []
      page.on('request', (request) => {
        if (request.url().includes('/ws/')) requests.push(request.url())
      })
      const reader = new Reader(tab, page, person.url)
      await reader.openList(`${PERSON}?perPage=${rows}&columns=fullName,firm,labels,createdBy`)
      await expect.poll(() => reader.rows.count()).toBe(rows)
      expect(await reader.rows.first().innerText()).toMatch(/Firm 000.*1 record.*Ada/s)
      // The stream of changes begins last.
      await expect.poll(() => requests.some((url) => url.includes('/ws/changes'))).toBe(true)
      await page.close()
      return requests.filter((url) => !url.includes('/ws/changes')).length
    }
    const few = await count(10)
    expect(await count(100)).toBe(few)
  })

  testInBrowser(
    'a change of others appears in place, and a new record waits until it is wanted',
    async (tab) => {
      const reader = await Reader.enterList(tab, admin.url, '?sort=lastName&order=ASC')
      await reader.expectNames(nameAll(listRange(0, 25)))
      const places = async () =>
        reader.page.evaluate<string>(
          `JSON.stringify([...document.querySelectorAll('tbody tr')].map((row) => row.getBoundingClientRect().top))`,
        )
      const before = await places()
      const id = ids[2] ?? 0
      const { version } = await admin.program.read(PERSON, id)
      await admin.program.update(PERSON, id, { version, email: 'live@example.org' })
      await reader.rows.nth(2).getByText('live@example.org').waitFor()
      const { data: added } = await admin.program.create(PERSON, { firstName: 'P', lastName: '000a' })
      const show = reader.page.getByRole('button', { name: 'Show the new list' })
      await show.waitFor()
      await reader.expectNames(nameAll(listRange(0, 25)))
      expect(await places()).toBe(before)
      await show.click()
      await reader.expectNames(['P 000', 'P 000a', ...nameAll(listRange(1, 23))])
      expect(await show.count()).toBe(0)
      await admin.program.remove(PERSON, added.id, { version: 0 })
    },
  )
})
