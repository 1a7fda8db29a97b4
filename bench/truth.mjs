// Checks the responses of a server. A server with wrong responses is not measured, because errors are fast.
import { createApi, isContact, LAST_NAME, PAGE } from './apis.mjs'
import { buildContact, formatPhone } from './contacts.mjs'
import { OFFICE_COUNTRY, OFFICES } from './offices.mjs'

/**
 * Returns the faults of a server as texts; `rows` is the number of contacts it was filled with, `earlier` the number of
 * checks before this one, each of which creates a contact and changes one.
 */
export async function findFaults(
  { url, headers, writeHeaders = {}, api: kind, isVerso = false },
  rows,
  earlier = 0,
) {
  const api = createApi(kind)
  const faults = []
  const ask = async (what, request) => {
    const { method, path, body } = request
    const type = body === undefined ? {} : { 'content-type': 'application/json', ...writeHeaders }
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...headers, ...type },
      body: body && JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) {
      faults.push(`${what} is answered with ${response.status}: ${text.slice(0, 200)}`)
      return undefined
    }
    const answer = JSON.parse(text)
    return { records: api.readRecords(answer), total: api.readTotal(answer, response.headers) }
  }
  const expect = (isTrue, fault) => {
    if (!isTrue) faults.push(fault)
  }

  const id = rows - earlier
  const last = await ask('a read', api.read(id))
  if (last) expect(isContact(last.records[0], id - 1), `a read tells another contact than number ${id}`)
  for (const offset of [0, Math.floor(rows / 80) * 40]) {
    const page = await ask('a list', api.list(offset))
    if (!page) continue
    expect(page.records.length === PAGE, `a list has ${page.records.length} records`)
    expect(isContact(page.records[0], offset), `the list at ${offset} begins with another record`)
    expect(page.total === rows + earlier, `a list tells a total of ${page.total}`)
  }
  if (isVerso) await checkLists(api, ask, expect, { rows, earlier })
  await checkWrites(api, ask, expect, { rows, id })
  return faults
}

/** Checks the sorted and filtered lists, of contacts and of the small table. */
async function checkLists(api, ask, expect, { rows, earlier }) {
  const created = Array.from({ length: earlier }, () => buildContact(rows))
  const contacts = [...Array.from({ length: rows }, (_, index) => buildContact(index)), ...created]
  const named = contacts.filter(({ lastName }) => lastName === LAST_NAME)
  const inCountry = OFFICES.filter(({ country }) => country === OFFICE_COUNTRY)
  const expected = {
    sorted: [contacts.map(({ email }) => email).sort(), 'email', contacts.length],
    filtered: [named.map(({ email }) => email), 'email', named.length],
    small: [OFFICES.map(({ city }) => city), 'city', OFFICES.length],
    smallSorted: [OFFICES.map(({ city }) => city).sort(), 'city', OFFICES.length],
    smallFiltered: [inCountry.map(({ city }) => city), 'city', inCountry.length],
  }
  for (const [operation, [values, field, total]] of Object.entries(expected)) {
    const page = await ask(`the list ${operation}`, api[operation]())
    if (!page) continue
    const told = page.records.map((record) => record[field])
    expect(
      told.join() === values.slice(0, PAGE).join(),
      `the list ${operation} tells other records: ${told.slice(0, 3).join()} …`,
    )
    expect(page.total === total, `the list ${operation} tells a total of ${page.total}`)
  }
}

async function checkWrites(api, ask, expect, { rows, id }) {
  const created = await ask('a create', api.create(rows))
  if (created) expect(isContact(created.records[0], rows), 'a create answers another contact')
  const before = await ask('a read', api.read(id))
  const version = before?.records[0].version
  await ask('an update', api.update(id, version, 77))
  const after = await ask('a read', api.read(id))
  if (!after) return
  expect(after.records[0].phone === formatPhone(77), 'an update is not there afterwards')
  if (api.hasVersions) expect(after.records[0].version === version + 1, 'an update makes no version')
}
