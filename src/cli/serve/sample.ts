// Sample contacts: the same ones everywhere, of our own making. No address and no telephone number can be anybody's.
import type { Model } from '../../model/definition/model.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { SERVICE_PRINCIPAL } from '../../service/context/principal.js'
import { recordsFor } from '../../service/records/records.js'
import { createRecord } from '../../service/records/save.js'
import { CIRCLES, COMPANIES, DOMAINS, NOTES, PEOPLE, PHONES } from './sample-lists.js'

const PACKAGE = 'com.axelor.contact.db'
export const SAMPLE_MODEL = `${PACKAGE}.Contact`
export const DEFAULT_SAMPLE = 12

// What waits together is committed together.
const CHUNK = 256
const BORN_FIRST = 1945
const BORN_YEARS = 60

export interface SampleContact {
  readonly firstName: string
  readonly lastName: string
  readonly email: string
  readonly phone: string
  readonly dateOfBirth: string
  readonly notes: string | null
}

/** Makes contacts until there are so many; never removes one. */
export async function makeSample(
  app: App,
  actor: UserIdentity | null,
  model: Model,
  count: number,
): Promise<void> {
  const there = actor ? (await recordsFor(app, actor).find(model.name, { limit: 0 })).total : 0
  if (there >= count) return
  const companies = model.fields.has('company')
    ? await makeAll(app, actor, `${PACKAGE}.Company`, COMPANIES)
    : []
  const circles = model.fields.has('circles') ? await makeAll(app, actor, `${PACKAGE}.Circle`, CIRCLES) : []
  for (let start = there; start < count; start += CHUNK) {
    const length = Math.min(CHUNK, count - start)
    const chunk = Array.from({ length }, (_, index) => ({
      ...sampleContact(start + index),
      ...placeOf(start + index, companies, circles),
    }))
    const by = actor ? await app.authorizer.resolvePrincipal(actor) : SERVICE_PRINCIPAL
    await Promise.all(chunk.map((contact) => createRecord(app, by, model, contact)))
  }
}

/** The records of a small model, made if there are none; answers their ids. */
async function makeAll(
  app: App,
  actor: UserIdentity | null,
  name: string,
  samples: readonly object[],
): Promise<number[]> {
  const model = app.catalog.models.find((each) => each.name === name)
  if (!model || !actor) return []
  const { data } = await recordsFor(app, actor).find(name, { limit: samples.length })
  if (data.length > 0) return data.map(({ id }) => id)
  const ids: number[] = []
  const by = await app.authorizer.resolvePrincipal(actor)
  for (const sample of samples) ids.push((await createRecord(app, by, model, sample)).data.id)
  return ids
}

/** Where somebody works, and with whom: three of four have a company, and most are in a circle or two. */
function placeOf(index: number, companies: readonly number[], circles: readonly number[]): object {
  const random = randomFrom(-index - 1)
  const company =
    companies.length > 0 && random() % 4 > 0 ? { company: { id: pick(companies, random()) } } : {}
  const members = circles.filter(() => random() % 2 === 0).map((id) => ({ id }))
  return members.length > 0 ? { ...company, circles: members } : company
}

/** The contact of this number, from 0: always the same one. */
export function sampleContact(index: number): SampleContact {
  const random = randomFrom(index)
  const { given, family } = pick(PEOPLE, index)
  const [firstName, latinFirst] = spelling(pick(given, random()))
  const [lastName, latinLast] = spelling(pick(family, random()))
  const suffix = index < DEFAULT_SAMPLE ? '' : String(index + 1)
  const phone = pick(PHONES, random()).replace(/#/g, () => String(random() % 10))
  const born = new Date(Date.UTC(BORN_FIRST, 0, 1 + (random() % (BORN_YEARS * 365))))
  return {
    firstName,
    lastName,
    email: `${latinFirst}.${latinLast}${suffix}@${pick(DOMAINS, random())}`,
    phone,
    dateOfBirth: born.toISOString().slice(0, 10),
    notes: random() % 3 === 0 ? pick(NOTES, random()) : null,
  }
}

/** `美咲|misaki` is written one way and has the other in an address; `Zoë` is its own. */
function spelling(entry: string): readonly [name: string, latin: string] {
  const [name = '', latin = name] = entry.split('|')
  const plain = latin.normalize('NFD').replace(/[^A-Za-z]/g, '')
  return [name, plain.toLowerCase()]
}

function pick<T>(list: readonly T[], number: number): T {
  return list[number % list.length] as T
}

/** Whole numbers that look random and follow from the seed alone (splitmix32). */
function randomFrom(seed: number): () => number {
  let state = Math.imul(seed + 1, 0x9e3779b9)
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return (mixed ^ (mixed >>> 15)) >>> 0
  }
}
