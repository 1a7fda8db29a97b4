// Filters of a list by fields of each type, and what is done with the records that they find.
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect } from 'vitest'
import { testInBrowser } from '../browser.js'
import { FIRM, PERSON } from './models.js'
import { useAdminService } from './person.js'
import { createPeople, FIRMS, listRange, nameAll, pad, Reader, RECORDS, type Condition } from './reader.js'

const REFUSED = /status of 4\d\d/

describe('a filtered list', () => {
  const admin = useAdminService()
  let ids: readonly number[] = []

  beforeAll(async () => {
    ids = await createPeople(admin.program)
  })

  const divisible = (index: number) => index % 3 === 0
  const conditions: readonly (Condition & {
    readonly matches: (index: number) => boolean
    readonly shown: string
  })[] = [
    {
      field: 'Last name',
      value: '29',
      matches: (index) => pad(index).includes('29'),
      shown: 'Last name contains “29”',
    },
    {
      field: 'Last name',
      operator: 'is',
      value: '042',
      matches: (index) => index === 42,
      shown: 'Last name is 042',
    },
    {
      field: 'Last name',
      operator: 'begins with',
      value: '2',
      matches: (index) => index >= 200,
      shown: 'Last name begins with “2”',
    },
    { field: 'Email', operator: 'is empty', matches: divisible, shown: 'Email is empty' },
    {
      field: 'Score',
      operator: '≥',
      value: '95',
      matches: (index) => index % 101 >= 95,
      shown: 'Score ≥ 95',
    },
    {
      field: 'Balance',
      operator: 'is',
      value: '12.3',
      matches: (index) => index === 12,
      shown: 'Balance is 12.3',
    },
    {
      field: 'Birthday',
      operator: 'between',
      value: '2000-01-10',
      to: '2000-01-12',
      matches: (index) => index >= 9 && index <= 11,
      shown: 'Birthday between ',
    },
    { field: 'Vip', operator: 'is yes', matches: divisible, shown: 'Vip is yes' },
    { field: 'Vip', operator: 'is empty', matches: (index) => index % 3 === 2, shown: 'Vip is empty' },
    { field: 'Stage', choice: 'known', matches: (index) => index % 3 === 1, shown: 'Stage is one of known' },
    {
      field: 'Firm',
      related: 'Firm 007',
      matches: (index) => index % FIRMS === 7,
      shown: 'Firm is Firm 007',
    },
    {
      field: 'Labels',
      related: 'Sailing',
      matches: (index) => index % 10 === 0,
      shown: 'Labels includes Sailing',
    },
    // Midnight in UTC is 20:00 or 19:00 of the day before in New York, in summer and in winter.
    {
      field: 'Met on',
      operator: '≥',
      value: '2024-10-20T20:00',
      matches: (index) => index >= 294,
      shown: 'Met on ≥ ',
    },
    {
      field: 'Met on',
      operator: 'is',
      value: '2024-01-10T19:00',
      matches: (index) => index === 10,
      shown: 'Met on is ',
    },
  ]

  testInBrowser('is filtered by fields of each type, and the address says how', async (tab) => {
    const reader = await Reader.enterList(tab, admin.url)
    const debug = await tab.context.newCDPSession(tab.page)
    await debug.send('Emulation.setTimezoneOverride', { timezoneId: 'America/New_York' })
    for (const { matches, shown, ...condition } of conditions) {
      await reader.openList(PERSON)
      await reader.expectTotal(RECORDS)
      await reader.addFilter(condition)
      const found = listRange(0, RECORDS).filter(matches)
      await reader.expectTotal(found.length)
      await reader.expectNames(nameAll(found.slice(0, 25)))
      const chip = reader.page.getByRole('list', { name: 'Filters' }).getByRole('listitem')
      expect(await chip.innerText(), shown).toContain(shown)
      const address = reader.page.url()
      await reader.open('/')
      await reader.page.getByRole('heading', { level: 1, name: 'Welcome, Ada' }).waitFor()
      await reader.page.goto(address)
      await reader.expectNames(nameAll(found.slice(0, 25)))
      expect(await chip.innerText(), shown).toContain(shown)
    }
  })

  testInBrowser('conditions are combined, changed, removed, and refused in words', async (tab) => {
    const reader = await Reader.enterList(tab, admin.url)
    await reader.addFilter({ field: 'Email', operator: 'is empty' })
    await reader.addFilter({ field: 'Last name', operator: 'begins with', value: '00' })
    await reader.expectNames(nameAll([0, 3, 6, 9]))
    await reader.page.getByRole('button', { name: 'Change the filter: Last name begins with “00”' }).click()
    await reader.dialog.locator('#condition-value').fill('01')
    await reader.dialog.getByRole('button', { name: 'Apply' }).click()
    await reader.expectNames(nameAll([12, 15, 18]))
    await reader.page.getByRole('button', { name: 'Remove the filter: Email is empty' }).click()
    await reader.expectNames(nameAll(listRange(10, 10)))
    await reader.page.getByRole('button', { name: 'Filter', exact: true }).click()
    await reader.dialog.getByLabel('Field', { exact: true }).fill('Score')
    await reader.page.getByRole('option', { name: 'Score', exact: true }).click()
    await reader.dialog.locator('#condition-value').fill('many')
    await reader.dialog.getByRole('button', { name: 'Apply' }).click()
    await reader.dialog.getByText('This is not a whole number.').waitFor()
    await reader.dialog.getByRole('button', { name: 'Cancel' }).click()
    const wrong = encodeURIComponent(JSON.stringify({ nowhere: 1 }))
    await reader.open(`/records/${PERSON}?filter=${wrong}`)
    await reader.page
      .getByRole('alert')
      .getByText(/nowhere/)
      .waitFor()
    await reader.page.getByRole('button', { name: 'Clear search and filters' }).click()
    await reader.expectTotal(RECORDS)
    expect((await tab.takeErrors(REFUSED)).length).toBeGreaterThan(0)
  })

  testInBrowser('a picker of related records reads at most 20 names, and nothing else', async (tab) => {
    const reader = await Reader.enterList(tab, admin.url)
    const answers: Promise<unknown>[] = []
    reader.page.on('response', (response) => {
      if (response.url().includes(`/ws/rest/${FIRM}`)) answers.push(response.json())
    })
    await reader.page.getByRole('button', { name: 'Filter', exact: true }).click()
    await reader.dialog.getByLabel('Field', { exact: true }).fill('Firm')
    await reader.page.getByRole('option', { name: 'Firm', exact: true }).click()
    await reader.dialog.locator('#condition-value').click()
    await expect.poll(() => reader.page.getByRole('option').count()).toBe(20)
    await reader.dialog.locator('#condition-value').fill('024')
    await expect.poll(() => reader.page.getByRole('option').allInnerTexts()).toEqual(['Firm 024'])
    const bodies = (await Promise.all(answers)) as { data: readonly object[] }[]
    expect(bodies.map(({ data }) => data.length)).toEqual([20, 1])
    for (const record of bodies.flatMap(({ data }) => data))
      expect(Object.keys(record).sort()).toEqual(['id', 'name', 'version'])
  })

  testInBrowser('all records of a filter are exported as CSV, with the columns of the list', async (tab) => {
    const filter = encodeURIComponent(JSON.stringify({ q: '00', and: [{ score: { '>=': '2' } }] }))
    const reader = await Reader.enterList(
      tab,
      admin.url,
      `?perPage=5&filter=${filter}&columns=lastName,balance`,
    )
    const indexes = listRange(0, RECORDS).filter((index) => pad(index).includes('00') && index % 101 >= 2)
    const download = reader.page.waitForEvent('download')
    await reader.page.getByRole('button', { name: 'Export' }).click()
    const file = await download
    expect(file.suggestedFilename()).toBe('Person.csv')
    const lines = readFileSync(await file.path(), 'utf8')
      .trim()
      .split(/\r?\n/)
    expect(lines.length).toBe(indexes.length + 1)
    expect(lines[1]).toContain(pad(indexes[0] ?? 0))
    expect(lines[1]).toContain(`${indexes[0]}.30`)
  })

  testInBrowser(
    'several records are deleted after a question, and one click brings them back',
    async (tab) => {
      const reader = await Reader.enterList(tab, admin.url)
      for (const name of nameAll([1, 3]))
        await reader.page.getByLabel(`Select ${name}`, { exact: true }).check()
      await reader.see('2 selected')
      await reader.page.getByRole('button', { name: 'Delete', exact: true }).click()
      expect(await reader.dialog.getByRole('listitem').allInnerTexts()).toEqual(nameAll([1, 3]))
      await reader.dialog.getByRole('button', { name: 'Delete', exact: true }).click()
      await reader.expectTotal(RECORDS - 2)
      await reader.expectNames(nameAll([0, 2, ...listRange(4, 23)]))
      await reader.page.getByRole('button', { name: 'Undo' }).click()
      await reader.see('2 records were restored.')
      await reader.expectTotal(RECORDS)
      await reader.expectNames(nameAll(listRange(0, 25)))
      expect(await admin.program.read(PERSON, ids[3] ?? 0)).toMatchObject({
        lastName: '003',
        balance: '3.30',
      })
    },
  )

  testInBrowser('a record that others refer to is not deleted, and the reason is said', async (tab) => {
    const reader = await Reader.enterList(tab, admin.url)
    await reader.openList(FIRM)
    await reader.page.getByLabel('Select F0', { exact: true }).check()
    await reader.page.getByRole('button', { name: 'Delete', exact: true }).click()
    await reader.dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    const alert = reader.dialog.getByRole('alert')
    await alert.waitFor()
    expect(await alert.innerText()).toMatch(/^Nothing was deleted\. .*Person/s)
    await reader.dialog.getByRole('button', { name: 'Cancel' }).click()
    await reader.page.getByRole('button', { name: 'Clear the selection' }).click()
    await reader.expectTotal(FIRMS)
    expect((await tab.takeErrors(REFUSED)).length).toBe(1)
  })
})
