// Others commit between a check and the write that depends on it: nothing happens that is no longer permitted, and no ended session comes
// back. PostgreSQL only: on SQLite a write transaction excludes other writers.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { openDatabase } from '../../src/store/open.js'
import type { Database } from '../../src/store/engine/database.js'
import type { Records } from '../../src/wire.js'
import { askingOnce, reopeningSessions } from '../mutants/accounts.js'
import { grantee, officeModels, permit, PROJECT, rootOf } from '../permissions/office-fixture.js'
import {
  newLocation,
  PASSWORD,
  catchError,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { Interruption } from './interruption.js'

const PERSON = 'rel.Person'
const NEW_PASSWORD = 'an entirely new password'

let location: DatabaseLocation
let others: Service
let root: Records

beforeAll(async () => {
  location = await newLocation('postgres')
  others = await startService('postgres', { location, models: officeModels })
  root = rootOf(others)
})
afterAll(() => others.close())

/** Runs a node of the same database that can be interrupted. */
async function withNode(
  work: (node: Service, interruption: Interruption) => Promise<void>,
  mutant: (db: Database) => Database = (db) => db,
): Promise<void> {
  const interruption = new Interruption()
  const db = await openDatabase(location.url, { poolSize: 5, statementTimeoutMs: 10_000 })
  const database = mutant(interruption.in(db))
  const node = await startService('postgres', { location, models: officeModels, database })
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

/** Removes a record while another client changes it; returns the response and if the record still exists. */
async function removeWhileItChanges(node: Service, between: Interruption, isMoment: typeof isRead) {
  const grant = { model: PERSON, canRead: true, canRemove: true, condition: `name = 'mine'` }
  const { client } = await grantee(node, [grant])
  const { id } = (await root.create(PERSON, { name: 'mine' })).data
  between.after(isMoment, () => root.update(PERSON, id, { version: 0, name: 'theirs' }))
  const answer = await client.remove(PERSON, id).catch((error: unknown) => error)
  return { answer, isThere: (await root.find(PERSON, { filter: `id = ${id}` })).total === 1 }
}

test.each([
  { moment: 'after the read', isMoment: isRead },
  { moment: 'after the permission check', isMoment: isCheck },
])("a record that leaves a user's access $moment is not removed by that user", async ({ isMoment }) => {
  await withNode(async (node, between) => {
    const { answer, isThere } = await removeWhileItChanges(node, between, isMoment)
    expect([answer, isThere]).toMatchObject([{ kind: 'not-found' }, true])
  })
})

test('the mutant that checks the permission once is caught', async () => {
  await withNode(async (node, between) => {
    expect((await removeWhileItChanges(node, between, isCheck)).isThere).toBe(false)
  }, askingOnce)
})

/** The statuses of a session before, during and after it changes its password while another client ends it. */
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
  // The session ends before the password is written, so nothing is written.
  { what: 'a logout', end: logOut, changed: 401 },
  // Raw SQL beside the service: no node learns that the sessions ended.
  { what: 'the end of all sessions', end: endAll, changed: 200 },
])('a change of the password does not undo $what during it', async ({ end, changed }) => {
  await withNode(async (node, between) => {
    expect(await endWhilePasswordChanges(node, between, end)).toEqual([200, changed, 401])
  })
})

test('the mutant that reopens the session is caught', async () => {
  await withNode(async (node, between) => {
    expect(await endWhilePasswordChanges(node, between, logOut)).toEqual([200, 200, 200])
  }, reopeningSessions)
})

test('a request never combines a role that the user lost with permissions that the role gained later', async () => {
  await withNode(async (node, between) => {
    const who = await grantee(node, [])
    // Invalidates their cached permissions.
    await permit(others, who, [])
    between.after(
      (sql) => sql.includes(`from "${USER_MODEL}" as t`),
      async () => {
        const { version } = await root.read(USER_MODEL, who.id)
        await root.update(USER_MODEL, who.id, { version, roles: [] })
        await permit(others, who, [{ model: PROJECT, canRead: true }])
      },
    )
    expect((await catchError(who.client.find(PROJECT))).kind).toBe('unknown-model')
    expect((await catchError(who.client.find(PROJECT))).kind).toBe('unknown-model')
  })
})
