// npm run screenshots: writes the pictures in docs/screenshots. Starts a demo with two people in a temporary folder.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createJiti } from 'jiti'

const root = fileURLToPath(new URL('..', import.meta.url))
const pictures = path.join(root, 'docs/screenshots')
const CONTACT = 'com.axelor.contact.db.Contact'
const WIDE = { width: 1280, height: 800 }
const PHONE = { width: 360, height: 740 }
const BESIDE_MENU = { x: 256, y: 48, width: 1024, height: 752 }
const ADMIN = { username: 'admin', password: 'admin' }
const GRACE = { username: 'grace', password: 'a heron on the old mast', name: 'Grace Hopper' }
const NOTES = 'Met at the harbour in March. Prefers letters, and calls back on Tuesdays.'
const START_TIMEOUT_MS = 60_000

async function startDemo(folder) {
  const flags = ['demo', '--port', '0', '--db', `sqlite:${path.join(folder, 'demo.db')}`]
  const demo = spawn(process.execPath, [path.join(root, 'dist/cli/main.js'), ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const timer = setTimeout(() => demo.kill(), START_TIMEOUT_MS)
  for await (const line of createInterface({ input: demo.stdout })) {
    const url = /^listening on (\S+)/.exec(line)?.[1]
    if (url === undefined) continue
    clearTimeout(timer)
    demo.stdout.resume()
    return { demo, url }
  }
  throw new Error('the demo did not start: run npm run build first')
}

/** A program of one person. */
async function logIn(url, { username, password }) {
  const answer = await fetch(`${url}/callback`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password }),
  })
  const cookie = answer.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ')
  return async (method, address, data) => {
    const response = await fetch(`${url}/ws/rest/${address}`, {
      method,
      headers: { cookie, 'content-type': 'application/json' },
      ...(data === undefined ? {} : { body: JSON.stringify({ data }) }),
    })
    const body = await response.json()
    if (!response.ok) throw new Error(`${method} ${address}: ${JSON.stringify(body)}`)
    return body.data[0]
  }
}

async function makeRecords(url) {
  const admin = await logIn(url, ADMIN)
  const me = await admin('GET', `verso.auth.User?filter=${encodeURIComponent("username = 'admin'")}`)
  await admin('POST', `verso.auth.User/${me.id}`, { version: me.version, name: 'Ada Byron' })
  const editor = await admin('GET', `verso.auth.Role?filter=${encodeURIComponent("name = 'editor'")}`)
  await admin('PUT', 'verso.auth.User', { ...GRACE, roles: [{ id: editor.id }] })
  const role = await admin('PUT', 'verso.auth.Role', {
    name: 'sales',
    permissions: [
      { model: CONTACT, canRead: true, canCreate: true, canUpdate: true, condition: 'createdBy = :user' },
      { model: 'com.axelor.contact.db.Company', canRead: true, readable: ['code', 'name'] },
    ],
  })
  // Names that need fonts which few servers have.
  for (const [id, firstName, lastName] of [
    [3, 'Yui', 'Takahashi'],
    [9, 'Maryam', 'Al-Khatib'],
    [11, 'Meera', 'Varma'],
  ])
    await admin('POST', `${CONTACT}/${id}`, { version: 0, firstName, lastName })
  const grace = await logIn(url, GRACE)
  await grace('POST', `${CONTACT}/2`, { version: 0, notes: NOTES, phone: '+49 431 555 0100' })
  await admin('POST', `${CONTACT}/2`, { version: 1, notes: NOTES.replace('March', 'April') })
  await grace('POST', `${CONTACT}/4`, { version: 0, notes: NOTES })
  return { grace, role }
}

async function openPage(browser, url, { viewport = WIDE, theme = 'light', isSignedIn = true } = {}) {
  const context = await browser.newContext({ viewport, colorScheme: theme, locale: 'en', timezoneId: 'UTC' })
  const page = await context.newPage()
  await page.goto(url)
  if (isSignedIn) await page.getByRole('button', { name: 'Use the demo account' }).click()
  await page.getByRole('heading', { name: isSignedIn ? /Welcome/ : /Sign in/ }).waitFor()
  return page
}

/** Waits until nothing fades or moves, and hides the text cursor and what is below the mouse. */
async function take(page, name, options = {}) {
  await page.mouse.move(0, 0)
  await page.evaluate(
    `Promise.all(document.getAnimations().filter(({ effect }) => effect.getTiming().iterations === 1)
      .map(({ finished }) => finished.catch(() => undefined)))`,
  )
  await page.screenshot({ path: path.join(pictures, `${name}.png`), caret: 'hide', ...options })
}

/** Ada and Grace change the same contact; Grace saves first. */
async function showConflict(browser, url, { grace, theme, name, id }) {
  const page = await openPage(browser, url, { theme })
  await page.goto(`${url}/#/records/${CONTACT}/${id}`)
  const save = page.getByRole('button', { name: 'Save', exact: true })
  await save.waitFor()
  const { version, notes, lastName } = await grace('GET', `${CONTACT}/${id}`)
  await page.getByLabel('Notes', { exact: true }).fill(notes.replace('Tuesdays', 'Fridays'))
  await page.getByLabel('Last name', { exact: true }).fill(`${lastName}-Byron`)
  await grace('POST', `${CONTACT}/${id}`, {
    version,
    notes: notes.replace('letters', 'a telephone call'),
    lastName: `${lastName} Lund`,
  })
  await save.click()
  const dialog = page.getByRole('dialog')
  await dialog.waitFor()
  await dialog.getByRole('radio', { name: /Yours/ }).first().click()
  await take(page, name, { clip: { x: 150, y: 20, width: 980, height: 760 } })
  await page.context().close()
}

async function takeAll(browser, url) {
  const { grace, role } = await makeRecords(url)
  const signIn = await openPage(browser, url, { isSignedIn: false })
  await take(signIn, 'sign-in')
  await signIn.context().close()
  const page = await openPage(browser, url)
  await page.getByText('Two people, one record').waitFor()
  await take(page, 'home')
  await page.goto(`${url}/#/records/${CONTACT}`)
  await page.getByRole('row').nth(3).waitFor()
  await take(page, 'list')
  await page.goto(`${url}/#/records/${CONTACT}/2`)
  await page.getByRole('button', { name: 'Save', exact: true }).waitFor()
  await take(page, 'form')
  await showConflict(browser, url, { grace, theme: 'light', name: 'conflict-card', id: 2 })
  await showConflict(browser, url, { grace, theme: 'dark', name: 'conflict-card-dark', id: 4 })
  await page.goto(`${url}/#/records/${CONTACT}/2/history`)
  await page.getByRole('button', { name: 'Restore this version: 0' }).waitFor()
  await take(page, 'history', { clip: BESIDE_MENU })
  await page.goto(`${url}/#/records/verso.auth.Role/${role.id}`)
  await page.getByRole('button', { name: 'Add a permission' }).waitFor()
  await take(page, 'permissions', { clip: BESIDE_MENU })
  const phone = await openPage(browser, url, { viewport: PHONE })
  await phone.goto(`${url}/#/records/${CONTACT}`)
  await phone.getByText('example.org').first().waitFor()
  await take(phone, 'phone-list')
}

const { launchBrowser } = await createJiti(import.meta.url).import('../test/browser-program.ts')
const { browser, failures } = await launchBrowser()
if (!browser) throw new Error(`no browser starts: ${failures.join('; ')}`)
const folder = mkdtempSync(path.join(tmpdir(), 'verso-screenshots-'))
mkdirSync(pictures, { recursive: true })
let demo
try {
  const started = await startDemo(folder)
  demo = started.demo
  await takeAll(browser, started.url)
} finally {
  await browser.close()
  demo?.kill()
  rmSync(folder, { recursive: true, force: true })
}
