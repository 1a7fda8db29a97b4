// Account rules hold for every way to write an account.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROLE_MODEL } from '../../src/model/catalog/auth-models.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import {
  addUser,
  changePassword,
  ensureDemoAccount,
  hasDemoPassword,
  requireUserByName,
} from '../../src/service/auth/accounts.js'
import { createApp } from '../../src/service/create-app.js'
import { verifyCredentials } from '../../src/service/auth/throttle.js'
import { resolveRoles } from '../../src/service/auth/roles.js'
import { findCredentialsByTypedName } from '../../src/store/auth/accounts.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { models } from '../models.js'
import {
  enter,
  newLocation,
  onEveryTarget,
  PASSWORD,
  catchError,
  startService,
  type Service,
} from '../targets.js'

/** Refers to an account. */
const Desk = defineModel({
  name: 'office.Desk',
  fields: { place: { type: 'string' }, holder: { type: 'many-to-one', target: USER_MODEL } },
})
const MODELS = [...models, { file: 'desk.ts', definition: Desk }]

const TOO_SHORT = 'must have at least 12 characters'
const COMMON = 'must not be a common password'
const REPEATED = 'must not repeat the same few characters'

/** Passwords for the user Grace Hopper the 2nd, each with its expected error. */
const PASSWORDS: readonly (readonly [string, string | undefined])[] = [
  ['short', TOO_SHORT],
  ['éléphants!!', TOO_SHORT],
  ['1qaz2wsx3edc', COMMON],
  ['1QAZ2wsx3EDC', COMMON],
  ['aaaaaaaaaaaaaaaa', REPEATED],
  ['abcabcabcabcab', REPEATED],
  ['🐘🐘🐘🐘🐘🐘🐘🐘🐘🐘🐘🐘', REPEATED],
  ['aaaa', `${TOO_SHORT} and ${REPEATED}`],
  ['grace.hopper.2nd', 'must not be the same as the user name'],
  ['Grace Hopper the 2nd', "must not be the same as the user's name"],
  [`${'é'.repeat(500)}${'è'.repeat(100)}`, 'must have at most 1024 bytes'],
  // There are no composition rules: length is enough.
  ['all lower case letters', undefined],
  ['839201746529', undefined],
  [`correct ${'horse '.repeat(160)}`, undefined],
]

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine, { models: MODELS })
    records = await enter(service, transport)
  })
  afterAll(() => service.close())

  const person = { username: 'grace.hopper.2nd', name: 'Grace Hopper the 2nd' }

  describe('password validation', () => {
    test.each(PASSWORDS)('validation of the password %j yields the error: %s', async (password, fault) => {
      const made = records.create(USER_MODEL, { ...person, password })
      if (fault === undefined) {
        await records.remove(USER_MODEL, (await made).data.id, { version: 0 })
        return
      }
      const error = await catchError(made)
      expect([error.kind, error.details.errors]).toEqual(['invalid', { password: fault }])
    })

    test('a password is compared with the stored user name, and the command line applies the same password rules', async () => {
      const { data } = await records.create(USER_MODEL, { ...person, password: PASSWORD })
      const again = { version: 0, password: 'GRACE.hopper.2nd' }
      expect((await catchError(records.update(USER_MODEL, data.id, again))).details.errors).toEqual({
        password: 'must not be the same as the user name',
      })
      const error = await catchError(changePassword(service.app, person.username, 'qazwsxedc123'))
      expect(error.message).toBe(`The password ${COMMON}`)
      const user = { username: 'no name', password: 'short', roles: [] }
      expect((await catchError(addUser(service.app, user))).details.errors).toEqual({
        ...{ username: 'must be 1 to 64 letters, digits or any of . _ @ + -', password: TOO_SHORT },
      })
      await records.remove(USER_MODEL, data.id, { version: 0 })
    })
  })

  test('a user name is stored normalized, and all field errors are reported at once with their paths', async () => {
    const { data } = await records.create(USER_MODEL, { username: 'MARGO\u0301T', password: PASSWORD })
    expect(data['username']).toBe('marg\u00f3t')
    const repeated = await catchError(
      records.create(USER_MODEL, { username: 'Marg\u00d3t', password: PASSWORD }),
    )
    expect(repeated.kind).toBe('not-unique')
    const wrong = { username: 'a b', password: 'short' }
    const error = await catchError(records.save(USER_MODEL, [wrong, wrong]))
    expect(Object.keys(error.details.errors ?? {})).toEqual([
      ...['records[0].username', 'records[0].password'],
      ...['records[1].username', 'records[1].password'],
    ])
  })

  test.each(['ｇｉｎｅｖｒａ', '𝐠inevra', 'Ｇinevra', 'ɢinevra'.replace('ɢ', 'ᴳ')])(
    'the user name %s equals ginevra under NFKC and is rejected as not unique',
    async (username) => {
      const there = await findCredentialsByTypedName(service.app.db.reader, 'ginevra')
      if (!there) await records.create(USER_MODEL, { username: 'ginevra', password: PASSWORD })
      const error = await catchError(records.create(USER_MODEL, { username, password: PASSWORD }))
      expect([error.kind, Object.keys(error.details.errors ?? {})]).toEqual(['not-unique', ['username']])
      const found = await findCredentialsByTypedName(service.app.db.reader, username)
      expect(found?.user.username).toBe('ginevra')
      // A comparison by NFC keeps them apart.
      expect(username.normalize('NFC').toLowerCase()).not.toBe('ginevra')
    },
  )

  test.each([
    ['аdmin', 'mixes Latin and Cyrillic letters; use letters of one script'],
    ['αdmin', 'mixes Latin and Greek letters; use letters of one script'],
    ['аδ', 'mixes Greek and Cyrillic letters; use letters of one script'],
  ])(
    'the mixed-script user name %s is rejected on create, on update and on the command line',
    async (username, fault) => {
      const made = await catchError(records.create(USER_MODEL, { username, password: PASSWORD }))
      expect([made.kind, made.details.errors]).toEqual(['invalid', { username: fault }])
      const { data } = await records.create(USER_MODEL, { username: 'иван.2', password: PASSWORD })
      const renamed = await catchError(records.update(USER_MODEL, data.id, { version: 0, username }))
      expect([renamed.kind, renamed.details.errors]).toEqual(['invalid', { username: fault }])
      const added = await catchError(addUser(service.app, { username, password: PASSWORD, roles: [] }))
      expect(added.message).toBe(`The user name ${fault}`)
      await records.remove(USER_MODEL, data.id, { version: 0 })
    },
  )

  test('accounts of earlier releases keep their user names, and look-alike names are rejected as not unique', async () => {
    const { app } = service
    const older: Record<string, number> = {}
    const made = ['wide', 'narrow', 'ｗｉｄｅ', 'ｌｏｎｅ', 'мixed', '½']
    for (const [index, username] of made.entries()) {
      const { data } = await records.create(USER_MODEL, { username: `older${index}`, password: PASSWORD })
      // Stores the name as an earlier release did.
      await app.db.transaction((tx) =>
        tx.run(`update "${USER_MODEL}" set "username" = ? where "id" = ?`, [username, data.id]),
      )
      older[username] = data.id
    }
    for (const username of made) {
      const login = await verifyCredentials(app, { username, password: PASSWORD }, '10.0.0.9')
      expect([username, login?.user.id]).toEqual([username, older[username]])
      expect((await requireUserByName(app, username)).id).toBe(older[username])
    }
    for (const username of ['lone', 'ＬＯＮＥ', 'ᴸone']) {
      const error = await catchError(records.create(USER_MODEL, { username, password: PASSWORD }))
      expect([error.kind, Object.keys(error.details.errors ?? {})]).toEqual(['not-unique', ['username']])
    }
    // A form sends every field that it shows.
    for (const username of ['ｗｉｄｅ', 'мixed', '½']) {
      const whole = { version: 0, username, name: 'another' }
      const { data } = await records.update(USER_MODEL, older[username] ?? 0, whole)
      expect(data).toMatchObject({ username, name: 'another' })
      await records.remove(USER_MODEL, data.id, { version: 1 })
    }
    const again = await createApp({ settings: { db: service.location.url }, models: MODELS })
    await again.close()
    for (const username of ['wide', 'narrow', 'ｌｏｎｅ'])
      await records.remove(USER_MODEL, older[username] ?? 0, { version: 0 })
  })

  test('a user cannot be created inside another record', async () => {
    const inside = { place: 'south', holder: { username: 'OWL', password: PASSWORD } }
    const error = await catchError(records.create('office.Desk', inside))
    expect(error.details.errors).toHaveProperty('holder')
  })

  test('a mass update cannot set user names', async () => {
    const update = {
      data: { criteria: [{ fieldName: 'id', operator: '>', value: 0 }] },
      values: { username: 'X' },
    }
    expect((await catchError(records.updateMass(USER_MODEL, update))).details.errors).toHaveProperty(
      'username',
    )
  })

  describe('the last administrator', () => {
    const admins = async () => {
      const [role] = await resolveRoles(service.app, ['administrator'])
      const record = await records.fetch(ROLE_MODEL, role?.id ?? 0, { fields: ['users', 'admin'] })
      const users = record['users'] as WireRecord[]
      return { role: record, user: await records.read(USER_MODEL, users[0]?.id ?? 0) }
    }

    test('the last administrator cannot be disabled, deleted or deprived of the role, and the role cannot be deleted', async () => {
      const { role, user } = await admins()
      for (const call of [
        () => records.update(USER_MODEL, user.id, { version: user.version, disabled: true }),
        () => records.update(USER_MODEL, user.id, { version: user.version, roles: [] }),
        () => records.remove(USER_MODEL, user.id, { version: user.version }),
        () => records.update(ROLE_MODEL, role.id, { version: role.version, admin: false }),
        () => records.remove(ROLE_MODEL, role.id, { version: role.version }),
        () =>
          records.updateMass(USER_MODEL, {
            data: { criteria: [{ fieldName: 'id', operator: '=', value: user.id }] },
            values: { disabled: true },
          }),
        () => records.removeAll(USER_MODEL, [{ id: user.id, version: user.version }]),
      ]) {
        const error = await catchError(call())
        expect(error.kind).toBe('forbidden')
        expect(error.message).toContain('This would remove the last administrator')
      }
      expect(await admins()).toEqual({ role, user })
      // A change that removes no rights is accepted.
      await records.update(USER_MODEL, user.id, { version: user.version, name: 'Ada L.', disabled: false })
    })

    test('two administrators cannot disable each other concurrently: one of the two updates is rejected', async () => {
      const { role, user } = await admins()
      const second = { username: 'second', password: PASSWORD, roles: [{ id: role.id }] }
      const { data: other } = await records.create(USER_MODEL, second)
      const disable = ({ id, version }: WireRecord) =>
        records.update(USER_MODEL, id, { version, disabled: true }).then(
          () => 'done',
          () => 'rejected',
        )
      const ends = await Promise.all([disable(user), disable(other)])
      expect(ends.sort()).toEqual(['done', 'rejected'])
    })
  })
})

test('only a demo service creates the demo account; a regular service rejects it as invalid', async () => {
  const location = await newLocation('sqlite')
  const demo = await createApp({ settings: { db: location.url, isDemo: true }, models })
  const plain = await createApp({ settings: { db: location.url }, models })
  try {
    expect((await catchError(ensureDemoAccount(plain))).kind).toBe('invalid')
    await ensureDemoAccount(demo)
    expect(await hasDemoPassword(demo)).toBe(true)
  } finally {
    await demo.close()
    await plain.close()
    location.remove()
  }
})
