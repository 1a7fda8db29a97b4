import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { loadCatalog } from '../../src/cli/models/models.js'
import {
  buildSampleContact,
  createSampleContacts,
  DEFAULT_SAMPLE_RECORDS,
  SAMPLE_MODEL,
} from '../../src/cli/serve/sample.js'
import { EMAIL_DOMAINS, PHONE_PATTERNS } from '../../src/cli/serve/sample-lists.js'
import { SETTINGS } from '../../src/cli/settings/settings.js'
import { readCreateDraft } from '../../src/model/write/draft-reader.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { createApp } from '../../src/service/create-app.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { newLocation } from '../database-location.js'
import { computeValues } from '../../src/model/definition/record-values.js'

const MANY = Array.from({ length: 3_000 }, (_, index) => buildSampleContact(index))

test('a sample contact depends on its number only', () => {
  expect(buildSampleContact(0)).toEqual({
    firstName: 'Grace',
    lastName: 'Harper',
    email: 'grace.harper@example.com',
    phone: '+44 20 7946 0321',
    dateOfBirth: '1948-01-31',
    notes: null,
  })
  expect(buildSampleContact(2_999)).toEqual(MANY[2_999])
})

test('every sample contact is valid and has a full name', async () => {
  const place = fileURLToPath(new URL('../../examples/contacts', import.meta.url))
  const catalog = await loadCatalog(place)
  const model = catalog.get(SAMPLE_MODEL)
  for (const contact of MANY) {
    const { values } = readCreateDraft(catalog, model, contact, '2024-01-01T00:00:00.000Z')
    expect(computeValues(model, values)).toEqual({ fullName: `${contact.firstName} ${contact.lastName}` })
  }
})

test('sample contacts get ids in the order of their numbers', async () => {
  const location = await newLocation('sqlite')
  const folder = fileURLToPath(new URL('../../examples/contacts', import.meta.url))
  const app = await createApp({ models: await loadCatalog(folder), settings: { db: location.url } })
  try {
    const id = await addUser(app, {
      username: 'ada',
      password: 'a long enough one',
      roles: ['administrator'],
    })
    const user = { id, version: 0, username: 'ada', name: 'ada' }
    await createSampleContacts(app, user, app.catalog.get(SAMPLE_MODEL), DEFAULT_SAMPLE_RECORDS)
    const { data } = await recordsForPrincipal(app, SERVICE_PRINCIPAL).find(SAMPLE_MODEL)
    expect(data.map(({ email }) => email)).toEqual(
      MANY.slice(0, DEFAULT_SAMPLE_RECORDS).map(({ email }) => email),
    )
  } finally {
    await app.close()
    location.remove()
  }
})

test('sample contacts use only reserved e-mail domains and telephone ranges', () => {
  const phones = PHONE_PATTERNS.map(
    (range) => new RegExp(`^${range.replace('+', '\\+').replaceAll('#', '\\d')}$`),
  )
  for (const { email, phone } of MANY) {
    expect(email).toMatch(/^[a-z]+\.[a-z]+\d*@example\.(org|com|net)$/)
    expect(phones.some((range) => range.test(phone))).toBe(true)
  }
  expect(EMAIL_DOMAINS).toEqual(['example.org', 'example.com', 'example.net'])
})

test('the first sample contacts have names in many scripts, and no e-mail address repeats', () => {
  const first = MANY.slice(0, DEFAULT_SAMPLE_RECORDS)
  const scripts = [
    /\p{Script=Han}/u,
    /\p{Script=Cyrillic}/u,
    /\p{Script=Arabic}/u,
    /\p{Script=Devanagari}/u,
    /[À-ÿ]/,
  ]
  for (const script of scripts)
    expect(first.some(({ firstName, lastName }) => script.test(firstName + lastName))).toBe(true)
  expect(new Set(MANY.map(({ email }) => email)).size).toBe(MANY.length)
  expect(SETTINGS.sample.default).toBe(String(DEFAULT_SAMPLE_RECORDS))
})
