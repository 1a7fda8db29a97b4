// The pages at /setup and /reset in a browser: errors in the form, values that were typed, and a page with the next step.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { addUser, listAllUsers } from '../../src/service/auth/accounts.js'
import { countAnew, onEngineOfTier, PASSWORD, startService, type Service } from '../targets.js'
import {
  asUser,
  credentials,
  json,
  login,
  only,
  openSession,
  send,
  withServer,
  type Answer,
} from './exchange.js'

const POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
const TOKEN = 'a'.repeat(43)
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'sec-fetch-site': 'same-origin' }
const FORM = { ...BROWSER, 'content-type': 'application/x-www-form-urlencoded' }

onEngineOfTier((engine) => {
  let service: Service
  beforeEach(async () => {
    service = await startService(engine, { setupToken: TOKEN })
    await service.app.db.transaction((tx) => tx.run('delete from "verso.auth.User"'))
    await countAnew(service, 'verso.auth.User')
  })
  afterEach(() => service.close())

  const listUsernames = async () => (await listAllUsers(service.app)).map(({ username }) => username)
  const open = async (path: string) => send(service.url, { path, headers: BROWSER })
  const submit = async (path: string, fields: Record<string, string>) =>
    send(service.url, { method: 'POST', path, headers: FORM, body: new URLSearchParams(fields).toString() })

  function expectPage(answer: Answer, status: number): void {
    expect(answer.status, answer.text).toBe(status)
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(answer.headers['cache-control']).toBe('no-store')
    // The URL has a token, which must not reach other sites.
    expect(answer.headers['referrer-policy']).toBe('strict-origin')
    expect(answer.headers['content-security-policy']).toBe(POLICY)
    expect(answer.text).not.toMatch(/<script|<style|style=|\son\w+=/)
    expect(answer.text).toMatch(/<main>\n<h1>[^<]+<\/h1>/)
    expect(answer.text).not.toContain('{"status"')
  }

  describe('/setup', () => {
    const path = `/setup?token=${TOKEN}`

    test('a rejected form comes back with its errors and the typed name, and without the password', async () => {
      const answer = await submit(path, { username: 'Ada "<b>', password: 'short-secret'.slice(0, 5) })
      expectPage(answer, 422)
      expect(answer.text).toContain('value="Ada &quot;&lt;b&gt;"')
      expect(answer.text).toMatch(/<p class="error field-error" id="password-error">The password .*<\/p>/)
      expect(answer.text).toMatch(/<p class="error field-error" id="username-error">The username .*<\/p>/)
      expect(answer.text.match(/ autofocus/g)).toHaveLength(1)
      expect(answer.text).toMatch(/role="alert">Nothing was changed\./)
      expect(answer.text).not.toContain('short')
      expect(await listUsernames()).toEqual([])
    })

    test('a form without a field comes back with the error of this field', async () => {
      const answer = await submit(path, { username: 'ada' })
      expectPage(answer, 400)
      expect(answer.text).toContain('The password is required.')
      expect(answer.text).toContain('value="ada"')
      expect(await listUsernames()).toEqual([])
    })

    test('a saved form leads to a page that says what is next, and reloading it creates nothing', async () => {
      const saved = await submit(path, { username: 'ada', password: PASSWORD })
      expect(saved.status).toBe(303)
      expect(saved.headers.location).toBe('/setup?done')
      const done = await open('/setup?done')
      expectPage(done, 200)
      expect(done.text).toContain('The administrator is ready')
      expect(done.text).toContain('/callback')
      expect(done.text).toContain('<a class="button" href="/">Open Verso</a>')
      expect((await login(service.url, {}, credentials('ada', PASSWORD))).status).toBe(200)
      const used = await submit(path, { username: 'eve', password: PASSWORD })
      expectPage(used, 404)
      expect(used.text).toContain('an administrator exists already')
      expect(await listUsernames()).toEqual(['ada'])
    })

    test('the page names its style sheet and logo below the base path, and leads to it in the end', async () => {
      await withServer(service, { basePath: '/x' }, async (url) => {
        const done = await send(url, { path: '/reset?done', headers: BROWSER })
        expectPage(done, 200)
        expect(done.text).toContain('<a class="button" href="/x/">Open Verso</a>')
        const files = [...done.text.matchAll(/(?:href|src)="(\/x\/assets\/[^"]+)"/g)].map(
          ([, file = '']) => file,
        )
        expect(files.map((file) => file.replace(/-[0-9a-f]{16}/, ''))).toEqual([
          '/x/assets/verso-logo.svg',
          '/x/assets/verso-page.css',
          '/x/assets/verso-logo.svg',
        ])
        for (const path of files) expect((await send(new URL(url).origin, { path })).status, path).toBe(200)
      })
    })

    test('a wrong link is a page for a browser, and JSON for a program', async () => {
      expectPage(await open('/setup?token=wrong'), 404)
      const program = await send(service.url, { path: '/setup?token=wrong' })
      expect(json(program)).toMatchObject({ status: -1, data: { kind: 'not-found' } })
    })

    test('a form from another site is rejected with a page', async () => {
      const answer = await send(service.url, {
        method: 'POST',
        path,
        headers: { ...FORM, 'sec-fetch-site': 'cross-site' },
        body: `username=eve&password=${encodeURIComponent(PASSWORD)}`,
      })
      expectPage(answer, 403)
      expect(await listUsernames()).toEqual([])
    })

    test('a program gets errors as JSON', async () => {
      const answer = await send(service.url, {
        method: 'POST',
        path,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ username: 'ada', password: 'short' }),
      })
      expect(answer.status).toBe(422)
      expect(json(answer)).toMatchObject({ status: -4, errors: { password: expect.any(String) } })
      expect(await listUsernames()).toEqual([])
    })
  })

  describe('/reset', () => {
    test('a rejected password comes back in the form; a saved one leads to a page that says what is next', async () => {
      await submit(`/setup?token=${TOKEN}`, { username: 'admin', password: PASSWORD })
      const id = await addUser(service.app, { username: 'bob', password: PASSWORD, roles: [] })
      const cookie = await openSession(service.url, {}, credentials('admin', PASSWORD))
      const made = await asUser(service.url, cookie).ask('POST', `/ws/users/${id}/reset`)
      const { pathname, search } = new URL(String(only(made)['link']))
      expectPage(await open(pathname + search), 200)
      const rejected = await submit(pathname + search, { password: 'password1234' })
      expectPage(rejected, 422)
      expect(rejected.text).toMatch(/id="password-error">The password /)
      const saved = await submit(pathname + search, { password: 'an entirely new password' })
      expect(saved.headers.location).toBe('/reset?done')
      const done = await open('/reset?done')
      expectPage(done, 200)
      expect(done.text).toContain('The password is set')
      expectPage(await open(pathname + search), 404)
      expect((await login(service.url, {}, credentials('bob', 'an entirely new password'))).status).toBe(200)
    })
  })
})
