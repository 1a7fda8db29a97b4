// Accounts from before there were roles keep their permissions.
import { expect, test } from 'vitest'
import { ROLE_MODEL } from '../../src/model/catalog/auth-models.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { addUser } from '../../src/service/auth/accounts.js'
import type { App } from '../../src/service/context/app.js'
import { createApp } from '../../src/service/create-app.js'
import { recordsFor } from '../../src/service/records/records.js'
import { findCredentials } from '../../src/store/auth/accounts.js'
import { changesSince } from '../log.js'
import { models } from '../models.js'
import { newLocation, onEveryEngine, catchError, type DatabaseLocation } from '../targets.js'

const PASSWORD = 'a password of former times'

interface StoredShape {
  columns: Record<string, unknown>
  links?: Record<string, unknown>
}

/** Restores the former tables: an admin column, and no roles. */
async function goBack(app: App): Promise<void> {
  await app.db.transaction(async (tx) => {
    await tx.run(`alter table "${USER_MODEL}" add column "admin" ${app.db.dialect.columns.boolean.type}`)
    await tx.run(`update "${USER_MODEL}" set "admin" = ("username" = 'root')`)
    const [row] = await tx.all('select shape from verso_schema where model = ?', [USER_MODEL])
    const shape = JSON.parse(String(row?.['shape'])) as StoredShape
    shape.columns['admin'] = { storage: 'boolean', scale: 0, hashed: false }
    delete shape.links
    await tx.run('update verso_schema set shape = ? where model = ?', [JSON.stringify(shape), USER_MODEL])
    await tx.run(`drop table "${USER_MODEL}:roles"`)
    await tx.run('delete from "verso.auth.Permission"')
    await tx.run(`delete from "${ROLE_MODEL}"`)
  })
}

async function openAt(location: DatabaseLocation): Promise<App> {
  return createApp({ settings: { db: location.url }, models })
}

async function recordsOfUser(app: App, username: string) {
  const found = await findCredentials(app.db.reader, username)
  if (!found) throw new Error(`${username} is gone`)
  return recordsFor(app, found.user)
}

onEveryEngine((engine) => {
  test('an upgrade gives administrators their role, and all others one with their former permissions', async () => {
    const location = await newLocation(engine)
    const before = await openAt(location)
    for (const username of ['root', 'bob']) await addUser(before, { username, password: PASSWORD, roles: [] })
    await goBack(before)
    await before.close()
    const apps = await Promise.all([openAt(location), openAt(location)])
    const [app] = apps
    const root = await recordsOfUser(app, 'root')
    const bob = await recordsOfUser(app, 'bob')
    expect((await root.find(ROLE_MODEL)).data.map(({ name }) => name)).toEqual([
      ...['administrator', 'editor', 'reader'],
    ])
    const { data } = await bob.create('crm.Contact', { lastName: 'Still' })
    await bob.update('crm.Contact', data.id, { version: 0, lastName: 'There' })
    await bob.remove('crm.Contact', data.id)
    expect((await catchError(bob.find(USER_MODEL))).kind).toBe('unknown-model')
    const given = (await changesSince(app.db.reader, 0, 1_000)).filter(
      ({ model, action }) => model === USER_MODEL && action === 'update',
    )
    expect(given.map(({ changes }) => Object.keys(changes))).toEqual([['roles'], ['roles']])
    expect(await app.db.reader.all('select * from verso_former_admin')).toEqual([])
    await Promise.all(apps.map((each) => each.close()))
    location.remove()
  })
})
