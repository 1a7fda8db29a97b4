import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect } from 'vitest'
import { bundleForPage, startPages, type Pages } from '../../browser-pages.js'
import { testInBrowser, type Tab } from '../../browser.js'
import { HttpClient } from '../../http-client.js'
import { onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../../targets.js'

const PERSON = 'rel.Person'
const ROWS = 12
const POLL = { timeout: 30_000 }

let script: Promise<string> | undefined

onEveryEngine((engine) => {
  let service: Service
  let pages: Pages
  let other: HttpClient
  let people: readonly number[] = []

  beforeAll(async () => {
    script ??= bundleForPage(fileURLToPath(new URL('app.mjs', import.meta.url)))
    service = await startService(engine)
    pages = await startPages(await script)
    pages.target = service.url
    other = await HttpClient.login(service.url, USERNAME, PASSWORD)
    const boss = await other.create(PERSON, { name: 'Grace', company: await createCompany('C-BOSS') })
    const created = [boss.data.id]
    for (let index = 1; index < ROWS; index++) {
      const company = await createCompany(`C-${index}`)
      const { data } = await other.create(PERSON, {
        name: `Row ${index}`,
        company,
        boss: { id: boss.data.id },
      })
      created.push(data.id)
    }
    people = created
  })
  afterAll(async () => {
    pages.close()
    await service.close()
  })

  async function createCompany(code: string): Promise<{ id: number }> {
    const { data } = await other.create('rel.Company', { code, name: code })
    return { id: data.id }
  }

  /** Logs in with the cookie of the page, and opens the application. */
  async function openApp(tab: Tab): Promise<void> {
    await tab.context.request.post(`${pages.url}/callback`, {
      data: { username: USERNAME, password: PASSWORD },
    })
    await tab.open(pages.url)
    await tab.page.getByText(`${ROWS} people`).waitFor()
  }

  async function editRow(tab: Tab, index: number): Promise<void> {
    await tab.page.getByRole('button', { name: `Edit Row ${index}`, exact: true }).click()
    await tab.page.getByLabel('Name').waitFor()
    await expect.poll(() => tab.page.getByLabel('Name').inputValue(), POLL).toBe(`Row ${index}`)
  }

  testInBrowser(
    'a list shows the related records of all rows with one request for each model',
    async (tab) => {
      await openApp(tab)
      await tab.page.getByText('Row 11: C-11, Grace', { exact: true }).waitFor()
      await tab.page.getByText('Grace: C-BOSS, no boss', { exact: true }).waitFor()
      const calls = tab.requests
        .map((url) => new URL(url))
        .filter(({ pathname }) => pathname.startsWith('/ws/rest/'))
      const references = calls.filter(({ searchParams }) => /^id in/.test(searchParams.get('filter') ?? ''))
      expect(references.map(({ pathname }) => pathname).sort()).toEqual([
        '/ws/rest/rel.Company',
        `/ws/rest/${PERSON}`,
      ])
      expect(calls).toHaveLength(3)
    },
  )

  testInBrowser(
    'a form merges with the change of another field, and shows base, ours and theirs of a conflict',
    async (tab) => {
      const id = people[1] ?? 0
      await openApp(tab)
      await editRow(tab, 1)
      await other.update(PERSON, id, { version: 0, born: '1990-01-01' })
      await tab.page.getByLabel('Name').fill('Mine')
      await tab.page.getByRole('button', { name: 'Save' }).click()
      await tab.page.getByText('saved as version 2').waitFor()
      expect(await other.read(PERSON, id)).toMatchObject({ version: 2, name: 'Mine', born: '1990-01-01' })

      await other.update(PERSON, id, { version: 2, name: 'Theirs' })
      await tab.page.getByLabel('Name').fill('Ours')
      await tab.page.getByRole('button', { name: 'Save' }).click()
      await tab.page.getByText('409: Mine, Ours, Theirs, version 3').waitFor()
      expect(await tab.takeErrors(/status of 409/)).toHaveLength(1)
      expect(await other.read(PERSON, id)).toMatchObject({ version: 3, name: 'Theirs' })
    },
  )

  testInBrowser('a form shows the errors of the service at its inputs', async (tab) => {
    await openApp(tab)
    await editRow(tab, 2)
    await tab.page.getByLabel('Born').fill('yesterday')
    await tab.page.getByRole('button', { name: 'Save' }).click()
    await tab.page.getByText(/^Born: must be a date/).waitFor()
    await tab.page.getByLabel('Born').fill('')
    await tab.page.getByLabel('Company').fill('999999')
    await tab.page.getByRole('button', { name: 'Save' }).click()
    await tab.page.getByText(/^Company: /).waitFor()
    expect(await tab.takeErrors(/status of 422/)).toHaveLength(2)
  })

  testInBrowser(
    'a delete of a record that others have changed is rejected with a notification',
    async (tab) => {
      const id = people[3] ?? 0
      await openApp(tab)
      await other.update(PERSON, id, { version: 0, born: '1990-01-01' })
      await tab.page.getByRole('button', { name: 'Delete Row 3', exact: true }).click()
      await tab.page.getByRole('status').getByText(`${PERSON} ${id}`).waitFor()
      expect(await tab.takeErrors(/status of 409/)).toHaveLength(1)
      expect(await other.read(PERSON, id)).toMatchObject({ version: 1 })
      await tab.page.getByRole('button', { name: 'Delete Row 4', exact: true }).click()
      await tab.page.getByText('Row 4: ').waitFor({ state: 'detached' })
    },
  )
})
