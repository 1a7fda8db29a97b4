// Checks the responses of a server. A server with wrong responses is not measured, because errors are fast.
import { createApi, isContact, PAGE } from './apis.mjs'
import { formatPhone } from './contacts.mjs'

/** Returns the faults of a server as texts; `rows` is the number of contacts it holds. */
export async function findFaults({ url, headers, api: kind }, rows) {
  const api = createApi(kind)
  const faults = []
  const ask = async (what, request) => {
    const { method, path, body } = request
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
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

  const last = await ask('a read', api.read(rows))
  if (last) expect(isContact(last.records[0], rows - 1), `a read tells another contact than number ${rows}`)
  for (const offset of [0, Math.floor(rows / 80) * 40]) {
    const page = await ask('a list', api.list(offset))
    if (!page) continue
    expect(page.records.length === PAGE, `a list has ${page.records.length} records`)
    expect(isContact(page.records[0], offset), `the list at ${offset} begins with another record`)
    expect(page.total === rows, `a list tells a total of ${page.total}`)
  }
  await checkWrites(api, ask, expect, rows)
  return faults
}

async function checkWrites(api, ask, expect, rows) {
  const created = await ask('a create', api.create(rows))
  if (created) expect(isContact(created.records[0], rows), 'a create answers another contact')
  const before = await ask('a read', api.read(rows))
  const version = before?.records[0].version
  await ask('an update', api.update(rows, version, 77))
  const after = await ask('a read', api.read(rows))
  if (!after) return
  expect(after.records[0].phone === formatPhone(77), 'an update is not there afterwards')
  if (api.hasVersions) expect(after.records[0].version === version + 1, 'an update makes no version')
}
