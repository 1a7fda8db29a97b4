// A person who uses the web application in a browser.
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { withTab, type Tab } from '../browser.js'
import { HttpClient } from '../http-client.js'
import {
  PASSWORD,
  startService,
  USERNAME,
  type Engine,
  type Service,
  type ServiceOptions,
} from '../targets.js'
import { ADMIN_MODELS } from './models.js'

/** A second account, which may edit all records. The first one, Ada, is an administrator. */
export const BOB = { username: 'bob', password: 'grey heron on a mast', name: 'Bob' }

/** A service of a file of tests, and a program that calls it. */
export class AdminService {
  #service: Service | undefined
  #program: HttpClient | undefined

  get service(): Service {
    if (!this.#service) throw new Error('the service has not started')
    return this.#service
  }

  get url(): string {
    return this.service.url
  }

  /** A program of Ada. */
  get program(): HttpClient {
    if (!this.#program) throw new Error('the service has not started')
    return this.#program
  }

  async start(engine: Engine, options: ServiceOptions): Promise<void> {
    this.#service = await startService(engine, { models: ADMIN_MODELS, ...options })
    await addUser(this.#service.app, { ...BOB, roles: ['editor'] })
    this.#program = await HttpClient.login(this.url, USERNAME, PASSWORD)
  }

  async close(): Promise<void> {
    await this.#service?.close()
  }
}

export function useAdminService(engine: Engine = 'sqlite', options: ServiceOptions = {}): AdminService {
  const admin = new AdminService()
  beforeAll(() => admin.start(engine, options))
  afterAll(() => admin.close())
  return admin
}

export class Person {
  constructor(
    readonly tab: Tab,
    readonly page: Page,
    readonly url: string,
  ) {}

  /** Opens the application with a session of its own, without the sign-in page. */
  static async enter(
    tab: Tab,
    url: string,
    account = { username: USERNAME, password: PASSWORD },
  ): Promise<Person> {
    const { cookie } = await HttpClient.login(url, account.username, account.password)
    const cookies = cookie.split('; ').map((pair) => {
      const [name = '', ...value] = pair.split('=')
      return { name, value: value.join('='), url, httpOnly: name === 'JSESSIONID' }
    })
    await tab.context.addCookies(cookies)
    tab.permit(url)
    return new Person(tab, tab.page, url)
  }

  async fillSignIn(username: string, password: string): Promise<void> {
    await this.page.getByLabel('User name').fill(username)
    await this.page.getByLabel('Password').fill(password)
    await this.page.getByRole('button', { name: 'Sign in', exact: true }).click()
  }

  /** The same person in a second tab. */
  async openTab(): Promise<Person> {
    return new Person(this.tab, await this.tab.context.newPage(), this.url)
  }

  /** Opens an address below `#`. */
  async open(path: string): Promise<void> {
    await this.page.goto(`${this.url}/#${path}`)
  }

  async openList(model: string): Promise<void> {
    await this.open(`/records/${model}`)
    await this.page.getByRole('table').waitFor()
  }

  async openRecord(model: string, id: number): Promise<void> {
    await this.open(`/records/${model}/${id}`)
    await this.saveButton.waitFor()
  }

  async openNew(model: string): Promise<void> {
    await this.open(`/records/${model}/new`)
    await this.page.getByRole('button', { name: 'Create', exact: true }).waitFor()
  }

  field(label: string): Locator {
    return this.page.locator('main').getByLabel(label, { exact: true })
  }

  get saveButton(): Locator {
    return this.page.getByRole('button', { name: 'Save', exact: true })
  }

  get dialog(): Locator {
    return this.page.getByRole('dialog')
  }

  /** Saves, and waits until everything is saved. */
  async save(): Promise<void> {
    await this.saveButton.click()
    await this.waitUntilSaved()
  }

  async waitUntilSaved(): Promise<void> {
    await this.page.getByRole('main').getByText('Saved', { exact: true }).waitFor()
  }

  /** Waits for a text anywhere on the page. */
  async see(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).first().waitFor()
  }

  async expectValue(label: string, value: string): Promise<void> {
    await expect.poll(() => this.field(label).inputValue()).toBe(value)
  }

  async expectNoCard(): Promise<void> {
    expect(await this.dialog.count()).toBe(0)
  }
}

/** Runs with somebody else, in a browser profile of their own. */
export async function withOther(
  person: Person,
  account: { readonly username: string; readonly password: string },
  run: (other: Person) => Promise<void>,
): Promise<void> {
  const browser = person.tab.context.browser()
  if (!browser) throw new Error('the browser is closed')
  await withTab(browser, async (tab) => {
    await run(await Person.enter(tab, person.url, account))
    await tab.expectNothingWrong()
  })
}
