// What others commit between a look and what follows from it: nothing is done that was permitted only before, nothing comes back that was
// ended. On PostgreSQL: on SQLite nobody else writes while a transaction does.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { USER_MODEL } from '../../src/model/model.js'
import { openDatabase } from '../../src/store/open.js'
import type { Database } from '../../src/store/database.js'
import type { Records } from '../../src/wire.js'
import { askingOnce, reopeningSessions } from '../account-twins.js'
import { grantee, officeModels, permit, PROJECT, rootOf } from '../permissions/grantee.js'
import { newPlace, PASSWORD, refusalOf, startService, type Place, type Service } from '../targets.js'
import { Interruption } from './between.js'

const PERSON = 'rel.Person'
const NEW_PASSWORD = 'an entirely new password'

let place: Place
let others: Service
let root: Records

beforeAll(async () => {
  place = await newPlace('postgres')
  others = await startService('postgres', { place, models: officeModels })
  root = rootOf(others)
})
afterAll(() => others.close())

/** A node of the same database that can be interrupted. */
async function withNode(
  work: (node: Service, interruption: Interruption) => Promise<void>,
  twin: (db: Database) => Database = (db) => db,
): Promise<void> {
  const interruption = new Interruption()
  const db = await openDatabase(place.url, { poolSize: 5, statementTimeoutMs: 10_000 })
  const database = twin(interruption.in(db))
  const node = await startService('postgres', { place, models: officeModels, database })
  try {
    await work(node, interruption)
    expect(interruption.isOver).toBe(true)
  } finally {
    await node.close()
  }
}

const isOfPerson = (sql: string) => sql.includes(`from "${PERSON}" as t where t."id" = ?`)
const isCheck = (sql: string) => isOfPerson(sql) && sql.startsWith('select 1 as "one", case when ')
const isRead = (sql: string) => isOfPerson(sql) && !isCheck(sql)

/** Whether the record is still there. */
async function removeWhileItChanges(node: Service, between: Interruption, isMoment: typeof isRead) {
  const grant = { model: PERSON, canRead: true, canRemove: true, condition: `name = 'mine'` }
  const { client } = await grantee(node, [grant])
  const { id } = (await root.create(PERSON, { name: 'mine' })).data
  between.after(isMoment, () => root.update(PERSON, id, { version: 0, name: 'theirs' }))
  const answer = await client.remove(PERSON, id).catch((error: unknown) => error)
  return { answer, isThere: (await root.find(PERSON, { filter: `id = ${id}` })).total === 1 }
}

test.each([
  { moment: 'after it was read', isMoment: isRead },
  { moment: 'after the right was asked for', isMoment: isCheck },
])('a record that is taken out of somebody’s reach $moment is not removed by them', async ({ isMoment }) => {
  await withNode(async (node, between) => {
    const { answer, isThere } = await removeWhileItChanges(node, between, isMoment)
    expect([answer, isThere]).toMatchObject([{ kind: 'not-found' }, true])
  })
})

test('a node that asks for the right once is caught', async () => {
  await withNode(async (node, between) => {
    expect((await removeWhileItChanges(node, between, isCheck)).isThere).toBe(false)
  }, askingOnce)
})

/** What the session is answered, once the password was changed by it and it was ended meanwhile. */
async function endWhilePasswordChanges(
  node: Service,
  between: Interruption,
  end: (cookie: string, id: number) => Promise<unknown>,
): Promise<readonly number[]> {
  const { client, id } = await grantee(node, [])
  const statusOf = async () => (await client.request('GET', '/ws/me')).status
  const before = await statusOf()
  const isLocked = (sql: string) => sql.includes('"password"') && sql.includes('for ')
  between.after(isLocked, () => end(client.cookie, id))
  const data = { old: PASSWORD, new: NEW_PASSWORD }
  const changed = await client.request('POST', '/ws/me/password', { data })
  return [before, changed.status, await statusOf()]
}

const logOut = async (cookie: string) =>
  fetch(`${others.url}/logout`, { headers: { cookie }, redirect: 'manual' })
const endAll = async (_: string, id: number) =>
  others.app.db.transaction((tx) => tx.run('delete from verso_session where user_id = ?', [id]))

test.each([
  // The session ends before the password is written: nothing is.
  { what: 'A logout', end: logOut, changed: 401 },
  // SQL beside the service, which tells no node that a session has ended.
  { what: 'The end of all sessions', end: endAll, changed: 200 },
])('$what during a change of the password is not undone by it', async ({ end, changed }) => {
  await withNode(async (node, between) => {
    expect(await endWhilePasswordChanges(node, between, end)).toEqual([200, changed, 401])
  })
})

test('a node that opens the session again is caught', async () => {
  await withNode(async (node, between) => {
    expect(await endWhilePasswordChanges(node, between, logOut)).toEqual([200, 200, 200])
  }, reopeningSessions)
})

test('nobody acts for one request by a role that they had before with permissions that it got afterwards', async () => {
  await withNode(async (node, between) => {
    const who = await grantee(node, [])
    // So that their rights are worked out anew.
    await permit(others, who, [])
    between.after(
      (sql) => sql.includes(`from "${USER_MODEL}" as t`),
      async () => {
        const { version } = await root.read(USER_MODEL, who.id)
        await root.update(USER_MODEL, who.id, { version, roles: [] })
        await permit(others, who, [{ model: PROJECT, canRead: true }])
      },
    )
    expect((await refusalOf(who.client.find(PROJECT))).kind).toBe('unknown-model')
    expect((await refusalOf(who.client.find(PROJECT))).kind).toBe('unknown-model')
  })
})
