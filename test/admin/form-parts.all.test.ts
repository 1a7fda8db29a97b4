// Lines and files in the form of a record, and what people with few permissions see of it.
import { describe, expect } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { testInBrowser } from '../browser.js'
import { FIRM, PERSON } from './models.js'
import { useAdminService } from './person.js'
import { Writer } from './writer.js'

const REJECTED = /status of 422/
const FORBIDDEN = /status of 403/
const UPLOAD_LIMIT_BYTES = 100_000
const PASSWORD = 'a heron beside the canal'
/** One red pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==',
  'base64',
)

describe('parts of a form, and permissions', () => {
  const admin = useAdminService('sqlite', { settings: { uploadLimitBytes: UPLOAD_LIMIT_BYTES } })

  async function addRole(
    name: string,
    permissions: readonly object[],
  ): Promise<{ username: string; password: string }> {
    await admin.program.create('verso.auth.Role', { name, permissions })
    await addUser(admin.service.app, { username: name, password: PASSWORD, roles: [name] })
    return { username: name, password: PASSWORD }
  }

  async function readBytes(id: number): Promise<Buffer | undefined> {
    const file = await admin.program.download(PERSON, id, 'photo')
    if (!file) return undefined
    const chunks: Uint8Array[] = []
    for await (const chunk of file.content) chunks.push(chunk)
    return Buffer.concat(chunks)
  }

  testInBrowser('lines are added, changed and removed, and a fault is at its input', async (tab) => {
    const { data: firm } = await admin.program.create(FIRM, {
      code: 'LINES',
      name: 'Lines',
      addresses: [{ city: 'Kiel' }, { city: 'Rome' }, { city: 'Oslo' }],
    })
    const writer = await Writer.enterForm(tab, admin.url)
    await writer.openRecord(FIRM, firm.id)
    await writer.input('addresses[0].street').fill('Hafenstrasse 1')
    await writer.page.getByRole('button', { name: 'Remove line 2' }).click()
    await writer.see('Rome is removed when you save.')
    await writer.page.getByRole('button', { name: 'Addresses: Add line' }).click()
    await expect.poll(() => tab.page.evaluate('document.activeElement.id')).toMatch(/addresses\[2\]/)
    await writer.input('addresses[2].street').fill('Rue de Rivoli 5')
    await writer.saveButton.click()
    await expect.poll(() => writer.readLine('addresses[2].city')).toMatch(/required/)
    expect(await tab.page.evaluate('document.activeElement.id')).toBe('field-addresses[2].city')
    expect(await writer.readLine('addresses[0].city')).toBe('')
    expect(await admin.program.read(FIRM, firm.id)).toMatchObject({ version: 0 })
    expect(await tab.takeErrors(REJECTED)).toHaveLength(1)
    await writer.input('addresses[2].city').fill('Paris')
    await writer.save()
    const { addresses } = (await admin.program.fetch(FIRM, firm.id, {
      fields: ['addresses'],
      related: { addresses: ['street', 'city'] },
    })) as unknown as { addresses: readonly object[] }
    expect(addresses).toMatchObject([
      { city: 'Kiel', street: 'Hafenstrasse 1' },
      { city: 'Oslo', street: null },
      { city: 'Paris', street: 'Rue de Rivoli 5' },
    ])
  })

  testInBrowser('a file is chosen, previewed, stored, replaced and removed', async (tab) => {
    const { data } = await admin.program.create(PERSON, { firstName: 'With', lastName: 'File' })
    const writer = await Writer.enterForm(tab, admin.url)
    await writer.openRecord(PERSON, data.id)
    await writer.chooseFile('red.png', 'image/png', PNG)
    await writer.see('Uploaded when you save')
    const isDrawn = async () =>
      tab.page.evaluate<boolean>(`(document.querySelector('main img')?.naturalWidth ?? 0) > 0`)
    await expect.poll(isDrawn).toBe(true)
    expect(await readBytes(data.id)).toBeUndefined()
    await writer.save()
    expect(await readBytes(data.id)).toEqual(PNG)
    const link = writer.page.getByRole('link', { name: /red\.png/ })
    await link.waitFor()
    await expect.poll(isDrawn).toBe(true)
    const text = Buffer.from('Once upon a time,\nthere was a file.')
    await writer.chooseFile('tale.txt', 'text/plain', text)
    await writer.page
      .getByRole('region', { name: 'Beginning of tale.txt' })
      .getByText('Once upon a time')
      .waitFor()
    await writer.save()
    expect(await readBytes(data.id)).toEqual(text)
    await writer.page.getByRole('link', { name: /tale\.txt/ }).waitFor()
    await writer.page
      .getByRole('region', { name: 'Beginning of tale.txt' })
      .getByText('Once upon a time')
      .waitFor()
    await writer.chooseFile('large.bin', 'application/octet-stream', Buffer.alloc(UPLOAD_LIMIT_BYTES + 1))
    await writer.see(/large\.bin has .*A file can have at most .*It was not chosen\./)
    await writer.waitUntilSaved()
    await writer.page.getByRole('button', { name: 'Photo: Remove the file' }).click()
    await writer.see('The file is removed when you save.')
    await writer.save()
    expect(await readBytes(data.id)).toBeUndefined()
    await writer.see('No file')
  })

  testInBrowser('somebody who may only read sees texts, and nothing that writes', async (tab) => {
    const { data } = await admin.program.create(PERSON, { firstName: 'Only', lastName: 'Read', phone: '404' })
    await addUser(admin.service.app, { username: 'rita', password: PASSWORD, roles: ['reader'] })
    const reader = await Writer.enterForm(tab, admin.url, { username: 'rita', password: PASSWORD })
    await reader.openList(PERSON)
    for (const name of ['New', 'Delete'])
      expect(await reader.page.getByRole('main').getByRole('button', { name, exact: true }).count()).toBe(0)
    expect(await reader.page.getByRole('checkbox').count()).toBe(0)
    await reader.open(`/records/${PERSON}/${data.id}`)
    await reader.see('You may read this record, but not change it.')
    expect(await reader.page.locator('form').getByText('404').count()).toBe(1)
    expect(await reader.page.locator('form :is(input, textarea, [role=combobox])').count()).toBe(0)
    for (const name of ['Save', 'Delete', 'Copy'])
      expect(await reader.page.getByRole('button', { name, exact: true }).count()).toBe(0)
    await reader.page.getByRole('link', { name: 'History' }).click()
    await reader.page.getByRole('heading', { name: 'Version 0' }).waitFor()
    expect(await reader.page.getByRole('button', { name: /Restore/ }).count()).toBe(0)
    await reader.open(`/records/${PERSON}/new`)
    await reader.see(/may not|only read|not permitted|but not change/)
    expect(await reader.createButton.count()).toBe(0)
  })

  testInBrowser('a field without permission is in no form, no list and no filter', async (tab) => {
    const { data } = await admin.program.create(PERSON, {
      firstName: 'Part',
      lastName: 'Hidden',
      phone: '1',
      notes: 'not for everybody',
    })
    const account = await addRole('assistant', [
      { model: PERSON, canRead: true, readable: ['fullName', 'firstName', 'lastName', 'phone'] },
      { model: PERSON, canUpdate: true, writable: ['phone'] },
    ])
    const writer = await Writer.enterForm(tab, admin.url, account)
    await writer.openRecord(PERSON, data.id)
    await writer.field('Phone').fill('2')
    const text = await writer.page.getByRole('main').innerText()
    expect(text).toContain('Hidden')
    expect(text).not.toMatch(/Notes|not for everybody|Balance/)
    expect(await writer.page.getByLabel('Notes').count()).toBe(0)
    // A field that may be read and not written is a text.
    expect(await writer.page.locator('input[id="field-lastName"]').count()).toBe(0)
    await writer.save()
    expect(await admin.program.read(PERSON, data.id)).toMatchObject({
      phone: '2',
      notes: 'not for everybody',
    })
    await writer.openList(PERSON)
    await writer.page.getByRole('button', { name: 'Columns' }).click()
    await writer.page.getByRole('menuitemcheckbox', { name: 'Phone' }).waitFor()
    expect(await writer.page.getByRole('menuitemcheckbox', { name: 'Notes' }).count()).toBe(0)
  })

  testInBrowser('somebody without any permission gets words', async (tab) => {
    await addUser(admin.service.app, { username: 'nemo', password: PASSWORD, roles: [] })
    const nobody = await Writer.enterForm(tab, admin.url, { username: 'nemo', password: PASSWORD })
    await nobody.open('/')
    await nobody.see('There are no models yet, or you may not see any.')
    await nobody.open(`/records/${PERSON}`)
    await nobody.page.getByRole('main').getByRole('alert').waitFor()
    await nobody.open(`/records/${PERSON}/1`)
    await nobody.page.getByRole('main').getByRole('alert').waitFor()
    await tab.takeErrors(/status of 40[34]/)
    // Somebody who may only create gets a form, and no list.
    const account = await addRole('collector', [{ model: PERSON, canCreate: true }])
    await tab.context.clearCookies()
    const collector = await Writer.enterForm(tab, admin.url, account)
    await collector.page.reload()
    await collector.open(`/records/${PERSON}`)
    await collector.see('You may not see these records.')
    await tab.takeErrors(FORBIDDEN)
  })
})
