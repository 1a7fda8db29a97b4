// A list of 300 people for tests, and a person in front of it.
import { expect } from 'vitest'
import type { Tab } from '../browser.js'
import type { HttpClient } from '../http-client.js'
import { FIRM, PERSON } from './models.js'
import { Person } from './person.js'

export const RECORDS = 300
export const FIRMS = 25
const DAY_MS = 86_400_000
const STAGES = ['new', 'known', 'lost'] as const

export function pad(number: number): string {
  return String(number).padStart(3, '0')
}

/** The names of the people with these indexes. */
export function nameAll(indexes: readonly number[]): string[] {
  return indexes.map((index) => `P ${pad(index)}`)
}

export function listRange(first: number, count: number, step = 1): number[] {
  return Array.from({ length: count }, (_, index) => first + index * step)
}

/** Returns the ids of the people. */
export async function createPeople(program: HttpClient): Promise<readonly number[]> {
  const firms = Array.from({ length: FIRMS }, (_, index) => ({
    code: `F${index}`,
    name: `Firm ${pad(index)}`,
  }))
  const { data: savedFirms } = await program.save(FIRM, firms)
  const { data: label } = await program.create('crm.Label', { name: 'Sailing' })
  const people = Array.from({ length: RECORDS }, (_, index) => ({
    firstName: 'P',
    lastName: pad(index),
    email: index % 3 === 0 ? null : `${pad(index)}@example.org`,
    birthday: new Date(Date.UTC(2000, 0, 1) + index * DAY_MS).toISOString().slice(0, 10),
    metOn: new Date(Date.UTC(2024, 0, 1) + index * DAY_MS).toISOString(),
    score: index % 101,
    balance: `${index}.30`,
    vip: [true, false, null][index % 3],
    stage: STAGES[index % 3],
    firm: { id: savedFirms[index % FIRMS]?.id },
    labels: index % 10 === 0 ? [{ id: label.id }] : [],
  }))
  const { data } = await program.save(PERSON, people)
  return data.map(({ id }) => id)
}

export interface Condition {
  readonly field: string
  /** Undefined means the first one. */
  readonly operator?: string
  readonly value?: string
  readonly to?: string
  /** A choice, of a list that stays open. */
  readonly choice?: string
  /** The name of a related record. */
  readonly related?: string
}

export class Reader extends Person {
  static async enterList(tab: Tab, url: string, query = ''): Promise<Reader> {
    const { page } = await Person.enter(tab, url)
    const reader = new Reader(tab, page, url)
    await reader.openList(`${PERSON}${query}`)
    return reader
  }

  get rows() {
    return this.page.getByRole('table').locator('tbody tr')
  }

  async expectNames(names: readonly string[]): Promise<void> {
    await expect.poll(() => this.rows.locator('th').allInnerTexts()).toEqual(names)
  }

  async expectTotal(count: number): Promise<void> {
    const text = count === 1 ? '1 record' : `${count} records`
    await this.page.getByRole('status').getByText(text, { exact: true }).waitFor()
  }

  async goTo(page: number): Promise<void> {
    await this.page.getByLabel('Page', { exact: true }).fill(String(page))
    await this.page.keyboard.press('Enter')
  }

  async addFilter({ field, operator, value, to, choice, related }: Condition): Promise<void> {
    await this.page.getByRole('button', { name: 'Filter', exact: true }).click()
    await this.dialog.getByLabel('Field', { exact: true }).fill(field)
    await this.page.getByRole('option', { name: field, exact: true }).click()
    if (operator !== undefined) {
      await this.dialog.getByLabel('Condition').click()
      await this.page.getByRole('option', { name: operator, exact: true }).click()
    }
    const input = this.dialog.locator('#condition-value')
    if (value !== undefined) await input.fill(value)
    if (to !== undefined) await this.dialog.getByLabel('To', { exact: true }).fill(to)
    const option = choice ?? related
    if (option !== undefined) {
      await input.fill(option)
      await this.page.getByRole('option', { name: option, exact: true }).click()
    }
    if (choice !== undefined) await this.page.keyboard.press('Escape')
    await this.dialog.getByRole('button', { name: 'Apply' }).click()
    await this.dialog.waitFor({ state: 'detached' })
  }
}
