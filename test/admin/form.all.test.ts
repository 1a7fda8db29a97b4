// The form of a record: fields of every type, faults at their inputs, copies and deletes.
import { beforeAll, describe, expect } from 'vitest'
import { testInBrowser } from '../browser.js'
import { FIRM, PERSON } from './models.js'
import { useAdminService } from './person.js'
import { Writer } from './writer.js'

const REJECTED = /status of 422/
const LABEL = 'crm.Label'
const TOKEN = '0b9e2e6e-3a5c-4c1e-9d55-6a2f0b7c1d2e'

describe('the form of a record', () => {
  const admin = useAdminService()

  beforeAll(async () => {
    await admin.program.create(FIRM, { code: 'BYTE', name: 'Byte Works' })
    await admin.program.save(LABEL, [{ name: 'Sailing' }, { name: 'Chess' }, { name: 'Tea' }])
  })

  async function countRecords(model: string): Promise<number | undefined> {
    return (await admin.program.find(model, { limit: 0 })).total
  }

  testInBrowser(
    'shows all faults of a new record at once, writes nothing, and then creates it',
    async (tab) => {
      const writer = await Writer.enterForm(tab, admin.url)
      const before = await countRecords(FIRM)
      await writer.openNew(FIRM)
      await writer.page.getByRole('button', { name: 'Addresses: Add line' }).click()
      await writer.input('addresses[0].street').fill('Hafenstrasse 1')
      await writer.createButton.click()
      await writer.page.getByRole('alert').getByText('3 fields need another value.').waitFor()
      for (const path of ['code', 'name', 'addresses[0].city']) {
        expect(await writer.readLine(path)).toMatch(/required/)
        expect(await writer.input(path).getAttribute('aria-invalid')).toBe('true')
      }
      expect(await tab.page.evaluate('document.activeElement.id')).toBe('field-code')
      expect(await countRecords(FIRM)).toBe(before)
      expect(await tab.takeErrors(REJECTED)).toHaveLength(1)
      // The next fault: a value that another record has.
      await writer.input('code').fill('BYTE')
      await writer.input('name').fill('Second')
      await writer.input('addresses[0].city').fill('Kiel')
      await writer.createButton.click()
      await expect.poll(() => writer.readLine('code')).not.toBe('')
      await writer.page.getByRole('alert').getByText('One field needs another value.').waitFor()
      expect(await writer.input('addresses[0].street').inputValue()).toBe('Hafenstrasse 1')
      await tab.takeErrors(/status of 4(09|22)/)
      await writer.input('code').fill('TWO')
      const id = await writer.create()
      expect(await countRecords(FIRM)).toBe((before ?? 0) + 1)
      const firm = await admin.program.fetch(FIRM, id, {
        fields: ['code', 'name', 'addresses'],
        related: { addresses: ['street', 'city'] },
      })
      expect(firm).toMatchObject({ code: 'TWO', addresses: [{ street: 'Hafenstrasse 1', city: 'Kiel' }] })
    },
  )

  testInBrowser('shows faults of numbers, texts, UUIDs and JSON in words, all at once', async (tab) => {
    const writer = await Writer.enterForm(tab, admin.url)
    const before = await countRecords(PERSON)
    await writer.openNew(PERSON)
    await writer.field('Phone').fill('1'.repeat(25))
    await writer.field('Score').fill('500')
    await writer.field('Balance').fill('12.345')
    await writer.field('Token').fill('nonsense')
    await writer.createButton.click()
    const alert = writer.page.getByRole('alert')
    await alert.getByText('4 fields need another value.').waitFor()
    for (const path of ['phone', 'score', 'balance', 'token'])
      expect(await writer.readLine(path), path).not.toBe('')
    expect(await tab.page.evaluate('document.activeElement.id')).toBe('field-phone')
    expect(await tab.takeErrors(REJECTED)).toHaveLength(1)
    await writer.field('Phone').fill('1')
    await writer.field('Score').fill('50')
    await writer.field('Balance').fill('12.3')
    await writer.field('Token').fill('')
    await writer.field('Extra').fill('{"open":')
    await writer.createButton.click()
    await alert.getByText('One field needs another value.').waitFor()
    expect(await writer.readLine('extra')).toMatch(/^This is not JSON: /)
    expect(await tab.page.evaluate('document.activeElement.id')).toBe('field-extra')
    expect(await countRecords(PERSON)).toBe(before)
  })

  testInBrowser('stores exactly what was filled into a field of each type', async (tab) => {
    const writer = await Writer.enterForm(tab, admin.url)
    const debug = await tab.context.newCDPSession(tab.page)
    await debug.send('Emulation.setTimezoneOverride', { timezoneId: 'America/New_York' })
    await writer.openNew(PERSON)
    await writer.field('First name').fill('Grace')
    await writer.field('Last name').fill('Hopper')
    await writer.field('Email').fill('grace@example.org')
    await writer.field('Phone').fill('+1 202 555 0123')
    await writer.field('Birthday').fill('1906-12-09')
    await writer.field('Wakes at').fill('06:30')
    await writer.field('Met on').fill('2024-03-01T19:30:15')
    await writer.field('Score').fill('97')
    await writer.field('Big').fill('9007199254740991')
    await writer.field('Balance').fill('12345678901234567.3')
    await writer.choose('Vip', 'No')
    await writer.choose('Stage', 'known')
    await writer.field('Token').fill(TOKEN.toUpperCase())
    await writer.field('Extra').fill('{"languages": ["COBOL", null, 1.5]}')
    await writer.field('Notes').fill('Two lines,\nand a <b>tag</b>.')
    await writer.field('Pin').fill('1906')
    await writer.pick('Firm', 'Byte Works')
    await writer.pick('Labels', 'Chess')
    await writer.pick('Labels', 'Sailing')
    const id = await writer.create()
    const stored = await admin.program.read(PERSON, id)
    expect(stored).toMatchObject({
      version: 0,
      fullName: 'Grace Hopper',
      firstName: 'Grace',
      lastName: 'Hopper',
      email: 'grace@example.org',
      phone: '+1 202 555 0123',
      birthday: '1906-12-09',
      wakesAt: '06:30:00',
      metOn: '2024-03-02T00:30:15.000Z',
      score: 97,
      big: 9_007_199_254_740_991,
      balance: '12345678901234567.30',
      vip: false,
      stage: 'known',
      token: TOKEN,
      extra: { languages: ['COBOL', null, 1.5] },
      notes: 'Two lines,\nand a <b>tag</b>.',
      firm: { name: 'Byte Works' },
    })
    expect((stored['labels'] as unknown[]).length).toBe(2)
    expect(stored).not.toHaveProperty('pin')
    const [row] = await admin.service.app.db.reader.all('select "pin" from "crm.Person" where "id" = ?', [id])
    expect(String(row?.['pin'])).not.toBe('')
    // The form of the stored record shows the same, in the time zone of the person, and never the secret.
    await writer.page.reload()
    await writer.saveButton.waitFor()
    await writer.see('No unsaved changes')
    expect(await writer.field('Met on').inputValue()).toMatch(/^2024-03-01T19:30:15/)
    expect(await writer.field('Balance').inputValue()).toBe('12345678901234567.30')
    expect(await writer.field('Firm').inputValue()).toBe('Byte Works')
    expect(await writer.field('Pin').inputValue()).toBe('')
    for (const label of ['Chess', 'Sailing'])
      await writer.page.getByRole('button', { name: label, exact: true }).waitFor()
    // Emptied fields are null, and a third value of a boolean is none.
    await writer.choose('Vip', 'empty')
    await writer.field('Balance').fill('')
    await writer.field('Birthday').fill('')
    await writer.page.getByRole('button', { name: 'Chess', exact: true }).press('Delete')
    await writer.save()
    const emptied = await admin.program.read(PERSON, id)
    expect(emptied).toMatchObject({
      version: 1,
      vip: null,
      balance: null,
      birthday: null,
      score: 97,
      token: TOKEN,
    })
    expect((emptied['labels'] as unknown[]).length).toBe(1)
  })

  testInBrowser('a record is copied, deleted, and brought back by one click', async (tab) => {
    const { data } = await admin.program.create(PERSON, {
      firstName: 'Ada',
      lastName: 'Byron',
      phone: '1815',
    })
    const writer = await Writer.enterForm(tab, admin.url)
    await writer.openRecord(PERSON, data.id)
    await writer.page.getByRole('button', { name: 'Copy', exact: true }).click()
    await writer.createButton.waitFor()
    expect(await writer.field('Phone').inputValue()).toBe('1815')
    await writer.field('Last name').fill('Lovelace')
    const copy = await writer.create()
    expect(copy).not.toBe(data.id)
    expect(await admin.program.read(PERSON, copy)).toMatchObject({
      fullName: 'Ada Lovelace',
      phone: '1815',
      version: 0,
    })
    expect(await admin.program.read(PERSON, data.id)).toMatchObject({ fullName: 'Ada Byron', version: 0 })
    await writer.page.getByRole('button', { name: 'Delete', exact: true }).click()
    await writer.dialog.getByText('Delete Ada Lovelace?').waitFor()
    await writer.dialog.getByRole('button', { name: 'Cancel' }).click()
    await writer.dialog.waitFor({ state: 'detached' })
    await writer.page.getByRole('button', { name: 'Delete', exact: true }).click()
    await writer.dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    await writer.page.getByRole('table').waitFor()
    await writer.see('Ada Lovelace is deleted.')
    await expect(admin.program.read(PERSON, copy)).rejects.toMatchObject({ kind: 'not-found' })
    const link = writer.page.getByRole('link', { name: 'Ada Lovelace', exact: true })
    await expect.poll(() => link.count()).toBe(0)
    await writer.page.getByRole('button', { name: 'Undo' }).click()
    await writer.see('Ada Lovelace is restored.')
    expect(await admin.program.read(PERSON, copy)).toMatchObject({ phone: '1815' })
  })

  testInBrowser(
    'a delete of a record that others refer to is refused in words, and the form stays',
    async (tab) => {
      const { data: firm } = await admin.program.create(FIRM, { code: 'KEPT', name: 'Kept' })
      await admin.program.create(PERSON, { lastName: 'Member', firm: { id: firm.id } })
      const writer = await Writer.enterForm(tab, admin.url)
      await writer.openRecord(FIRM, firm.id)
      await writer.page.getByRole('button', { name: 'Delete', exact: true }).click()
      await writer.dialog.getByRole('button', { name: 'Delete', exact: true }).click()
      await writer.page
        .getByRole('status')
        .getByText(/Person/)
        .waitFor()
      expect(await writer.input('name').inputValue()).toBe('Kept')
      await writer.input('name').fill('Kept on')
      await writer.save()
      expect((await tab.takeErrors(/status of 4\d\d/)).length).toBe(1)
    },
  )
})
