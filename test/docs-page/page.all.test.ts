// The API reference in a real browser. Each test fails on a console error, a violation of the policy, or a request to another origin.
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { Page } from 'playwright-core'
import { testInBrowser, type Tab } from '../browser.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { checked } from '../wire/ext-plugins.js'

/** Fills the login form and waits for the models. */
async function logIn(tab: Tab, url: string, hash = ''): Promise<void> {
  await tab.open(`${url}/docs${hash}`)
  await tab.page.getByLabel('User name').fill(USERNAME)
  await tab.page.getByLabel('Password').fill(PASSWORD)
  await tab.page.getByRole('button', { name: 'Log in' }).click()
  await tab.page.getByRole('navigation', { name: 'Models' }).waitFor()
}

async function choose(page: Page, model: string): Promise<void> {
  await page.getByRole('link', { name: model, exact: true }).click()
  await page.getByRole('heading', { level: 2, name: model }).waitFor()
}

/** Opens an operation by its id. */
async function openOperation(page: Page, id: string) {
  const operation = page.locator(`[id$="-${id}"]`)
  await operation.locator('.opblock-summary').click()
  await operation.getByRole('button', { name: 'Execute' }).waitFor()
  return operation
}

/** Executes an operation with a body, and returns the shown status. */
async function execute(operation: Awaited<ReturnType<typeof openOperation>>, body?: object): Promise<string> {
  if (body) await operation.locator('textarea.body-param__text').fill(JSON.stringify(body))
  await operation.getByRole('button', { name: 'Execute' }).click()
  return operation.locator('.live-responses-table tbody .response-col_status').innerText()
}

/** Executes an operation as its form is, and waits for the answer. */
async function expectStatus(
  operation: Awaited<ReturnType<typeof openOperation>>,
  status: number,
): Promise<void> {
  const [response] = await Promise.all([
    operation.page().waitForResponse((each) => each.request().resourceType() === 'fetch'),
    operation.getByRole('button', { name: 'Execute' }).click(),
  ])
  expect(response.status(), await response.text()).toBe(status)
  // The page shows the answer after it has filled the forms anew.
  await operation.locator('.live-responses-table').waitFor()
  await operation.locator('.loading-container').waitFor({ state: 'detached' })
}

describe('strict', () => {
  let service: Service
  let user: HttpClient
  beforeAll(async () => {
    service = await startService('sqlite', { routes: [checked] })
    user = await HttpClient.login(service.url, USERNAME, PASSWORD)
  })
  afterAll(() => service.close())

  testInBrowser('a wrong password shows the message of the service, a right one the models', async (tab) => {
    await tab.open(`${service.url}/docs`)
    expect(await tab.page.title()).toBe('API reference · Verso')
    await tab.page.getByRole('heading', { level: 1, name: 'API reference' }).waitFor()
    await tab.page.getByLabel('User name').fill(USERNAME)
    await tab.page.getByLabel('Password').fill('wrong')
    await tab.page.getByRole('button', { name: 'Log in' }).click()
    await tab.page.getByRole('alert').getByText('Wrong user name or password').waitFor()
    expect(await tab.takeErrors(/status of 401/)).toHaveLength(1)
    await tab.page.getByLabel('Password').fill(PASSWORD)
    await tab.page.getByRole('button', { name: 'Log in' }).click()
    await tab.page.getByRole('link', { name: 'crm.Contact', exact: true }).waitFor()
    await tab.page.getByRole('button', { name: 'Log out' }).click()
    await tab.page.getByLabel('User name').waitFor()
    expect(tab.requests.every((url) => url.startsWith('data:') || url.startsWith(service.url))).toBe(true)
  })

  testInBrowser('the search finds models by parts of their names', async (tab) => {
    await logIn(tab, service.url)
    await tab.page.getByLabel(/^Search \d+ models$/).fill('REL comp')
    await tab.page.getByText(/^1 of \d+ models$/).waitFor()
    expect(await tab.page.getByRole('navigation').getByRole('link').allInnerTexts()).toEqual(['rel.Company'])
  })

  testInBrowser('"Execute" creates a record with the session, and shows a conflict in words', async (tab) => {
    await logIn(tab, service.url)
    await choose(tab.page, 'crm.Contact')
    const create = await openOperation(tab.page, 'createCrmContact')
    expect(await execute(create, { data: { firstName: '<b>Grace</b>', lastName: 'Hopper' } })).toContain(
      '200',
    )
    const { data } = await user.find('crm.Contact', { sortBy: '-id', limit: 1, fields: 'firstName' })
    const [record] = data
    expect(record).toMatchObject({ firstName: '<b>Grace</b>', version: 0 })

    await user.update('crm.Contact', Number(record?.id), { version: 0, firstName: '<i>Ada</i>' })
    const update = await openOperation(tab.page, 'updateCrmContact')
    await update.getByPlaceholder('id', { exact: true }).fill(String(record?.id))
    expect(await execute(update, { data: { version: 0, firstName: '<u>Bob</u>' } })).toContain('409')
    const conflict = update.locator('.conflict')
    await conflict.getByRole('heading', { name: 'Conflict' }).waitFor()
    const cells = await conflict.locator('tbody tr').first().locator('th, td').allInnerTexts()
    expect(cells).toEqual(['firstName', '<b>Grace</b>', '<u>Bob</u>', '<i>Ada</i>', 'clash'])
    expect(await tab.takeErrors(/status of 409/)).toHaveLength(1)
  })

  testInBrowser('"Execute" succeeds twice without an edit, and again after one', async (tab) => {
    const { id } = (await user.create('rel.Circle', { name: 'Chess' })).data
    await logIn(tab, service.url)
    await choose(tab.page, 'rel.Circle')
    const update = await openOperation(tab.page, 'updateRelCircle')
    const patch = await openOperation(tab.page, 'patchRelCircle')
    const revert = await openOperation(tab.page, 'revertRelCircle')
    const body = update.locator('textarea.body-param__text')
    expect(await update.locator('.snippets pre').innerText()).toContain('"version":0')
    await expectStatus(update, 200)
    await expectStatus(update, 200)
    // The user's own value stays, with the new version.
    await body.fill(JSON.stringify({ data: { version: 2, name: 'Go' } }))
    await expectStatus(update, 200)
    expect(JSON.parse(await body.inputValue())).toEqual({ data: { version: 3, name: 'Go' } })
    await expectStatus(patch, 200)
    await expectStatus(revert, 200)
    expect(await update.locator('.snippets pre').innerText()).toContain('"version":5')
    expect(await user.read('rel.Circle', id)).toMatchObject({ version: 5, name: 'Go' })
    // An operation that is opened later has the new version, too.
    const removeAll = await openOperation(tab.page, 'bulkRemoveRelCircle')
    await expectStatus(removeAll, 200)
    expect((await user.find('rel.Circle', { limit: 0 })).total).toBe(0)
  })

  testInBrowser('a form about another record keeps its version', async (tab) => {
    await user.create('rel.Badge', {})
    const { id } = (await user.create('rel.Badge', {})).data
    await logIn(tab, service.url)
    await choose(tab.page, 'rel.Badge')
    const patch = await openOperation(tab.page, 'patchRelBadge')
    await patch.getByPlaceholder('id', { exact: true }).fill(String(id))
    const update = await openOperation(tab.page, 'updateRelBadge')
    await expectStatus(update, 200)
    expect(await patch.locator('textarea.body-param__text').inputValue()).toContain('"version": 0')
    expect(await patch.getByPlaceholder('id', { exact: true }).inputValue()).toBe(String(id))
  })

  testInBrowser('the forms of files are filled: upload, clear', async (tab) => {
    await logIn(tab, service.url)
    await choose(tab.page, 'doc.Paper')
    const upload = await openOperation(tab.page, 'uploadDocPaper')
    const file = { name: 'hello.txt', mimeType: 'text/plain', buffer: Buffer.from('Hello') }
    await upload.locator('input[type=file]').setInputFiles(file)
    await expectStatus(upload, 200)
    const clear = await openOperation(tab.page, 'clearDocPaper')
    await expectStatus(clear, 200)
    await expectStatus(clear, 200)
  })

  testInBrowser('an API key works without a session, and a wrong one shows the message', async (tab) => {
    const created = await user.request('POST', '/ws/me/keys', { data: { name: 'page' } })
    const { data } = (await created.json()) as { readonly data: readonly { readonly key: string }[] }
    await tab.open(`${service.url}/docs#/crm.Contact`)
    await tab.page.getByLabel('API key').fill('vk_wrong')
    await tab.page.getByRole('button', { name: 'Use the key' }).click()
    await tab.page.getByRole('alert').getByText('Unknown or expired API key').waitFor()
    await tab.takeErrors(/status of 401/)
    await tab.page.getByLabel('API key').fill(data[0]?.key ?? '')
    await tab.page.getByRole('button', { name: 'Use the key' }).click()
    const find = await openOperation(tab.page, 'findCrmContact')
    expect(await execute(find)).toContain('200')
    expect((await tab.context.cookies()).length).toBe(0)
  })

  testInBrowser('the general calls have a page of their own', async (tab) => {
    await logIn(tab, service.url)
    await choose(tab.page, 'General calls')
    const list = await openOperation(tab.page, 'listModels')
    expect(await execute(list)).toContain('200')
  })

  testInBrowser("routes of one's own are among the general calls, and can be tried", async (tab) => {
    await logIn(tab, service.url)
    await choose(tab.page, 'General calls')
    await tab.page.locator('[id="operations-tag-Extensions"]').waitFor()
    const ping = await openOperation(tab.page, 'extGetPing')
    expect(await execute(ping)).toContain('200')
    expect(await tab.page.locator('[id$="-extGetHidden"]').count()).toBe(0)
  })

  testInBrowser('a user can create a key for the snippets', async (tab) => {
    await logIn(tab, service.url)
    await tab.page.getByRole('button', { name: 'Create a key for a day' }).click()
    const line = await tab.page.getByText(/^export VERSO_KEY='.+'$/).innerText()
    const [, key = ''] = /'(.+)'/.exec(line) ?? []
    const response = await fetch(`${service.url}/ws/me`, { headers: { 'api-key': key } })
    expect(response.status).toBe(200)
  })

  testInBrowser('names of models are text, and an unknown one is refused in words', async (tab) => {
    const name = '<img src=x onerror="document.title=1">'
    await tab.page.route('**/ws/meta/models', async (route) =>
      route.fulfill({ contentType: 'application/json', body: JSON.stringify({ status: 0, data: [name] }) }),
    )
    await logIn(tab, service.url)
    await tab.page.getByRole('link', { name }).click()
    await tab.page.getByRole('heading', { level: 2, name }).waitFor()
    await tab.page.getByRole('main').getByRole('alert').waitFor()
    expect(await tab.page.locator('img').count()).toBe(0)
    expect(await tab.page.title()).toBe('API reference · Verso')
    await tab.takeErrors(/status of 404/)
  })

  testInBrowser('a mutant page with inline code and a request to another origin is caught', async (tab) => {
    const mutant =
      '<script>document.title = "run"</script><p style="color: red">text</p><img src="http://127.0.0.1:9/">'
    await tab.page.route('**/docs', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, body: `${await response.text()}${mutant}` })
    })
    await tab.open(`${service.url}/docs`)
    await tab.page.getByLabel('User name').waitFor()
    expect(await tab.page.title()).toBe('API reference · Verso')
    const violations = await tab.takeViolations()
    for (const directive of ['script-src-elem', 'style-src-attr', 'img-src'])
      expect(violations.join('\n')).toContain(directive)
    // The log of requests has it, although the policy stops it.
    expect(tab.listForeignRequests()).toEqual(['http://127.0.0.1:9/'])
    tab.permit('http://127.0.0.1:9/')
    await tab.takeErrors(/Content Security Policy/)
  })

  testInBrowser('a page that loses the service says so', async (tab) => {
    await logIn(tab, service.url)
    await tab.page.route('**/ws/**', (route) => route.abort())
    await tab.page.getByRole('link', { name: 'crm.Contact', exact: true }).click()
    await tab.page.getByText('The service cannot be reached. Check that it runs, then try again.').waitFor()
    await tab.takeErrors(/Failed to load resource/)
  })
})

describe('below a base path, behind a proxy, for clients of Axelor', () => {
  let service: Service
  let proxy: http.Server
  let url: string
  beforeAll(async () => {
    service = await startService('sqlite', {
      http: { basePath: '/verso', compat: 'axelor', trustProxy: ['127.0.0.1'] },
    })
    const { port } = new URL(service.url)
    proxy = http.createServer((request, response) => {
      const { url: path, method, headers } = request
      const forwarded = { ...headers, 'x-forwarded-for': '203.0.113.7' }
      const passed = http.request({ host: '127.0.0.1', port, path, method, headers: forwarded }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      request.pipe(passed)
    })
    proxy.listen(0, '127.0.0.1')
    await new Promise((resolve) => proxy.once('listening', resolve))
    url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/verso`
  })
  afterAll(async () => {
    proxy.close()
    await service.close()
  })

  testInBrowser('the page works, and shows a conflict that has the status 200', async (tab) => {
    await logIn(tab, url, '#/crm.Contact')
    const create = await openOperation(tab.page, 'createCrmContact')
    expect(await execute(create, { data: { firstName: 'Grace' } })).toContain('200')
    const update = await openOperation(tab.page, 'updateCrmContact')
    await update.getByPlaceholder('id', { exact: true }).fill('1')
    expect(await execute(update, { data: { version: 7, firstName: 'Bob' } })).toContain('200')
    await update.locator('.conflict').getByRole('heading', { name: 'Conflict' }).waitFor()
    expect(await update.locator('.snippets pre').innerText()).toContain(`${url}/ws/rest/crm.Contact/1`)
    expect(tab.requests.every((each) => each.startsWith('data:') || each.startsWith(url))).toBe(true)
  })
})
