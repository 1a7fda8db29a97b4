// A damaged database file: readable data is answered, the rest is 503, and the file is not written any more.
import { copyFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { readLastSeq } from '../../src/store/log/feed.js'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { newLocation, PASSWORD, startService, USERNAME, type DatabaseLocation } from '../targets.js'
import { withoutCorrupt } from '../mutants/damage.js'
import { damagePages, PAGE_BYTES, pagesWith, zeroPage } from './damaged-file.js'
import { exchange, type Answer, type Session } from './load-client.js'

const RECORDS = 240
const AT_ONCE = 40
const LATER = 0.6
const NOTES = 'n'.repeat(500)

let sound: DatabaseLocation
let cookie: string
let damages = 0

beforeAll(async () => {
  sound = await newLocation('sqlite')
  const service = await startService('sqlite', { location: sound })
  const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
  for (let made = 0; made < RECORDS; made += AT_ONCE)
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, index) =>
        client.create('crm.Contact', { firstName: `N${made + index}`, notes: NOTES }),
      ),
    )
  cookie = client.cookie
  await service.close()
})
afterAll(() => {
  sound.remove()
})

function fileOf({ url }: DatabaseLocation): string {
  return url.slice('sqlite:'.length)
}

/** A copy of the sound database with this damage. */
function damaged(damage: (file: string, pages: number) => void): DatabaseLocation {
  const file = path.join(path.dirname(fileOf(sound)), `damaged-${++damages}.db`)
  copyFileSync(fileOf(sound), file)
  damage(file, statSync(file).size / PAGE_BYTES)
  return { url: `sqlite:${file}`, remove: () => undefined }
}

/** These pages hold the newest records, their changes, and the indexes of both. */
const isLate = (page: number, pages: number) => page > pages * LATER

const middleOf = (pages: readonly number[]) => pages[Math.floor(pages.length / 2)] ?? 0

const DAMAGES: Readonly<Record<string, (file: string, pages: number) => void>> = {
  'flipped bytes in the middle': (file) => {
    const meant = middleOf(pagesWith(file, NOTES))
    damagePages(file, (page) => page === meant)
  },
  'a page of zeros': (file) => {
    zeroPage(file, middleOf(pagesWith(file, NOTES)))
  },
  'many flipped pages': (file, pages) => {
    damagePages(file, (page) => isLate(page, pages) && page % 3 === 0)
  },
}

test.for(Object.keys(DAMAGES))(
  'a database file with %s answers reads of damaged pages with 503 and the reason, and rejects every write',
  async (name) => {
    const location = damaged(DAMAGES[name] ?? zeroPage)
    const service = await startService('sqlite', { location, expects: ['busy'] })
    expect(await violationsOf(service.app.db, { url: service.url, cookie })).toEqual([])
    await service.close()
  },
)

test('the mutant that does not recognize SQLITE_CORRUPT is caught', async () => {
  const location = damaged(DAMAGES['many flipped pages'] ?? zeroPage)
  const open = async () => openDatabase(location.url, { poolSize: 1, statementTimeoutMs: 10_000 })
  const database = withoutCorrupt(await open(), await open())
  const service = await startService('sqlite', { location, database })
  const violations = await violationsOf(database, { url: service.url, cookie })
  expect(violations).toContain('a read was answered with 500')
  expect(violations).toContain('/readyz says that it can write')
  await service.close()
})

/** All violations, in words. */
async function violationsOf(db: Database, session: Session): Promise<string[]> {
  const violations = new Set<string>()
  const answers = await readAll(session)
  const rejected = answers.filter(({ status }) => status === 503)
  if (rejected.length === 0) violations.add('nothing has met the damage')
  if (!answers.some(({ status }) => status === 200)) violations.add('nothing could be read')
  for (const { status } of answers)
    // A record is not found if its page lost the keys.
    if (![200, 404, 503].includes(status)) violations.add(`a read was answered with ${status}`)
  for (const { body, headers } of rejected) {
    if (!/is damaged/.test(JSON.stringify(body.data))) violations.add('a rejected read does not say why')
    if (headers['retry-after'] === undefined) violations.add('a rejected read does not say when to come back')
  }
  const ready = await exchange(session, 'GET', '/readyz')
  const told = JSON.stringify(ready.body.data)
  if (ready.status !== 200) violations.add(`/readyz is ${ready.status}`)
  if (!told.includes('"writable":false')) violations.add('/readyz says that it can write')
  if (!/"reason":".*is damaged/.test(told)) violations.add('/readyz does not say why')
  const readyToWrite = await exchange(session, 'GET', '/readyz?write')
  if (readyToWrite.status !== 503) violations.add(`/readyz?write is ${readyToWrite.status}`)
  const before = await readLastSeq(db.reader).catch(() => undefined)
  for (const answer of await writeSome(session)) {
    if (answer.status !== 503) violations.add(`a write was answered with ${answer.status}`)
    if (!/is damaged/.test(JSON.stringify(answer.body))) violations.add('a rejected write does not say why')
  }
  if ((await readLastSeq(db.reader).catch(() => undefined)) !== before)
    violations.add('something was written')
  if ((await exchange(session, 'GET', '/healthz')).status !== 200) violations.add('the process is ill')
  return [...violations]
}

async function readAll(session: Session): Promise<Answer[]> {
  const ids = Array.from({ length: RECORDS }, (_, index) => index + 1)
  const paths = [
    ...ids.map((id) => `/ws/rest/crm.Contact/${id}`),
    ...ids.filter((id) => id % 20 === 0).map((id) => `/ws/rest/crm.Contact/${id}/history`),
    ...ids.filter((id) => id % 50 === 0).map((id) => `/ws/changes?since=${id}&limit=50`),
    '/ws/rest/crm.Contact?limit=240',
    '/ws/rest/crm.Contact?fields=notes&sortBy=notes',
  ]
  return Promise.all(paths.map((each) => exchange(session, 'GET', each)))
}

async function writeSome(session: Session): Promise<Answer[]> {
  const data = { firstName: 'late' }
  return Promise.all([
    exchange(session, 'PUT', '/ws/rest/crm.Contact', { data }),
    exchange(session, 'PUT', '/ws/rest/crm.Contact', { data }),
    exchange(session, 'POST', '/ws/rest/crm.Contact/1', { data: { id: 1, version: 0, ...data } }),
    exchange(session, 'POST', '/callback', { username: USERNAME, password: PASSWORD }),
  ])
}
