// Generates fictional sample contacts, the same ones on every run. Their addresses and telephone numbers are reserved
// for fiction.
import type { Model } from '../../model/definition/model.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { SERVICE_PRINCIPAL } from '../../service/context/principal.js'
import { recordsFor } from '../../service/records/records.js'
import { createRecord, saveRecords } from '../../service/records/save.js'
import { CIRCLES, COMPANIES, EMAIL_DOMAINS, NOTES, NAME_POOLS, PHONE_PATTERNS } from './sample-lists.js'
import { createContext } from '../../service/context/context.js'

const SAMPLE_PACKAGE = 'com.axelor.contact.db'
export const SAMPLE_MODEL = `${SAMPLE_PACKAGE}.Contact`
export const DEFAULT_SAMPLE_RECORDS = 12

/** The records of one transaction. */
const CHUNK_RECORDS = 256
const FIRST_BIRTH_YEAR = 1945
const BIRTH_YEARS = 60

export interface SampleContact {
  readonly firstName: string
  readonly lastName: string
  readonly email: string
  readonly phone: string
  readonly dateOfBirth: string
  readonly notes: string | null
}

/** Creates sample contacts until the model has `count` records. It never removes one. */
export async function createSampleContacts(
  app: App,
  user: UserIdentity | null,
  model: Model,
  count: number,
): Promise<void> {
  const existing = user ? (await recordsFor(app, user).find(model.name, { limit: 0 })).total : 0
  if (existing >= count) return
  const companies = model.fields.has('company')
    ? await ensureSamples(app, user, `${SAMPLE_PACKAGE}.Company`, COMPANIES)
    : []
  const circles = model.fields.has('circles')
    ? await ensureSamples(app, user, `${SAMPLE_PACKAGE}.Circle`, CIRCLES)
    : []
  for (let start = existing; start < count; start += CHUNK_RECORDS) {
    const length = Math.min(CHUNK_RECORDS, count - start)
    const chunk = Array.from({ length }, (_, index) => ({
      ...buildSampleContact(start + index),
      ...pickRelations(start + index, companies, circles),
    }))
    const principal = user ? await app.authorizer.resolvePrincipal(user) : SERVICE_PRINCIPAL
    await saveRecords(createContext(app, principal), model, chunk)
  }
}

/** Returns the ids of the model's records; creates the samples if it has none. */
async function ensureSamples(
  app: App,
  user: UserIdentity | null,
  name: string,
  samples: readonly object[],
): Promise<number[]> {
  const model = app.catalog.models.find((each) => each.name === name)
  if (!model || !user) return []
  const { data } = await recordsFor(app, user).find(name, { limit: samples.length })
  if (data.length > 0) return data.map(({ id }) => id)
  const ids: number[] = []
  const principal = await app.authorizer.resolvePrincipal(user)
  for (const sample of samples)
    ids.push((await createRecord(createContext(app, principal), model, sample)).data.id)
  return ids
}

/** Three of four contacts have a company, and most belong to one or two circles. */
function pickRelations(index: number, companies: readonly number[], circles: readonly number[]): object {
  const random = createRandom(-index - 1)
  const company =
    companies.length > 0 && random() % 4 > 0 ? { company: { id: pickByNumber(companies, random()) } } : {}
  const members = circles.filter(() => random() % 2 === 0).map((id) => ({ id }))
  return members.length > 0 ? { ...company, circles: members } : company
}

/** Builds sample contact number `index`, counted from 0. Equal numbers give equal contacts. */
export function buildSampleContact(index: number): SampleContact {
  const random = createRandom(index)
  const { given, family } = pickByNumber(NAME_POOLS, index)
  const [firstName, latinFirst] = splitSpelling(pickByNumber(given, random()))
  const [lastName, latinLast] = splitSpelling(pickByNumber(family, random()))
  const suffix = index < DEFAULT_SAMPLE_RECORDS ? '' : String(index + 1)
  const phone = pickByNumber(PHONE_PATTERNS, random()).replace(/#/g, () => String(random() % 10))
  const born = new Date(Date.UTC(FIRST_BIRTH_YEAR, 0, 1 + (random() % (BIRTH_YEARS * 365))))
  return {
    firstName,
    lastName,
    email: `${latinFirst}.${latinLast}${suffix}@${pickByNumber(EMAIL_DOMAINS, random())}`,
    phone,
    dateOfBirth: born.toISOString().slice(0, 10),
    notes: random() % 3 === 0 ? pickByNumber(NOTES, random()) : null,
  }
}

/** Splits `美咲|misaki` into the name and its spelling for an e-mail address. `Zoë` is used for both. */
function splitSpelling(entry: string): readonly [name: string, latin: string] {
  const [name = '', latin = name] = entry.split('|')
  const plain = latin.normalize('NFD').replace(/[^A-Za-z]/g, '')
  return [name, plain.toLowerCase()]
}

function pickByNumber<T>(list: readonly T[], number: number): T {
  return list[number % list.length] as T
}

/** Generates whole numbers that depend on the seed only (splitmix32). */
function createRandom(seed: number): () => number {
  let state = Math.imul(seed + 1, 0x9e3779b9)
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return (mixed ^ (mixed >>> 15)) >>> 0
  }
}
