// A person in front of the form of a record.
import { Person } from './person.js'
import type { Tab } from '../browser.js'

export class Writer extends Person {
  static async enterForm(
    tab: Tab,
    url: string,
    account?: { readonly username: string; readonly password: string },
  ): Promise<Writer> {
    const { page } = await Person.enter(tab, url, account)
    return new Writer(tab, page, url)
  }

  get createButton() {
    return this.page.getByRole('button', { name: 'Create', exact: true })
  }

  input(path: string) {
    return this.page.locator(`[id="field-${path}"]`)
  }

  /** The line below an input. */
  async readLine(path: string): Promise<string> {
    return this.page.locator(`[id="field-${path}-line"]`).innerText()
  }

  async choose(label: string, option: string): Promise<void> {
    await this.field(label).click()
    await this.page.getByRole('option', { name: option, exact: true }).click()
  }

  async pick(label: string, option: string): Promise<void> {
    await this.field(label).fill(option)
    await this.page.getByRole('option', { name: option, exact: true }).click()
  }

  /** Waits for the form of the record that was created, and returns its id. */
  async create(): Promise<number> {
    await this.createButton.click()
    await this.see(/is created\./)
    await this.saveButton.waitFor()
    return Number(/\/(\d+)$/.exec(this.page.url())?.[1])
  }

  async chooseFile(name: string, mimeType: string, buffer: Buffer): Promise<void> {
    await this.page.locator('main input[type=file]').setInputFiles({ name, mimeType, buffer })
  }
}
