import { expect, test } from 'vitest'
import { quoteIdentifier, toTableName } from '../../src/store/engine/names.js'
import type { WireRecord } from '../../src/wire.js'
import { onEveryTarget, catchError } from '../targets.js'
import { idsOf, inShort, useRelatedService } from './related-service.js'

onEveryTarget((engine, transport) => {
  const { service, records, make, change, read, changesOf, expectRolledBack } = useRelatedService(
    engine,
    transport,
  )

  const revert = async (model: string, id: number, version: number, to: number) =>
    (await records().revert(model, id, { version, to })).data

  test('a revert is an update to the values of an earlier version', async () => {
    const { id } = await make('rel.Company', { name: 'One', founded: '2001-01-01' })
    await change('rel.Company', id, { version: 0, name: 'Two', founded: null })
    const changes = await changesOf(async () => {
      const reverted = await revert('rel.Company', id, 1, 0)
      expect(reverted).toMatchObject({ id, version: 2, name: 'One', founded: '2001-01-01' })
      expect(reverted).toEqual(await read('rel.Company', id))
    })
    expect(inShort(changes)).toEqual([`rel.Company ${id} update 2`])
    expect(changes[0]?.changes).toEqual({
      name: { before: 'Two', after: 'One' },
      founded: { before: null, after: '2001-01-01' },
    })
  })

  test('a revert needs the current version and an earlier one', async () => {
    const { id } = await make('rel.Company', { name: 'One' })
    await change('rel.Company', id, { version: 0, name: 'Two' })
    const stale = await expectRolledBack(() => records().revert('rel.Company', id, { version: 7, to: 0 }))
    expect([stale.kind, stale.details.data]).toMatchObject(['conflict', { current: 1, expected: 7 }])
    const matched = await expectRolledBack(() =>
      records().revert('rel.Company', id, { to: 0 }, { ifMatch: 5 }),
    )
    expect(matched.kind).toBe('stale-match')
    for (const data of [{ to: 0 }, { version: 1 }, { version: 1, to: 1 }, { version: 1, to: 'x' }, 3]) {
      const error = await expectRolledBack(() => records().revert('rel.Company', id, data))
      expect([data, error.kind]).toEqual([data, 'bad-request'])
    }
    const done = await records().revert('rel.Company', id, { to: 0 }, { ifMatch: 1 })
    expect(done.data['name']).toBe('One')
    const never = await expectRolledBack(() =>
      records().revert('rel.Company', 999_999, { version: 1, to: 0 }),
    )
    expect(never.kind).toBe('not-found')
  })

  test('a rejected revert names every unknown key and the error in the version', async () => {
    const { id } = await make('rel.Company', { name: 'One' })
    for (let version = 0; version < 7; version++) await change('rel.Company', id, { version })
    const messageOf = async (data: unknown, options = {}) =>
      (await expectRolledBack(() => records().revert('rel.Company', id, data, options))).message
    expect(await messageOf({ version: 3, to: 4 })).toBe(
      'data.to must be lower than 3, the version in data.version',
    )
    expect(await messageOf({ to: '0' }, { ifMatch: 7 })).toBe(
      'data.to must be lower than 7, the version in If-Match',
    )
    expect(await messageOf({ version: 7 })).toBe('data.to is required: the version to revert to')
    expect(await messageOf({ id, version: 7, too: 1, name: 'Two' })).toBe(
      'unknown key "too" in the data of a revert (did you mean "to"?); unknown key "name" in the data of a revert; ' +
        'data.to is required: the version to revert to',
    )
    expect(await messageOf({ version: 7, to: 0, name: null })).toBe(
      'unknown key "name" in the data of a revert',
    )
  })

  test('a revert from a future version is a conflict', async () => {
    const { id } = await make('rel.Circle', { name: 'One' })
    const rejected = async () => {
      const error = await expectRolledBack(() => records().revert('rel.Circle', id, { version: 99, to: 9 }))
      return [error.kind, error.details.data]
    }
    expect(await rejected()).toMatchObject(['conflict', { expected: 99, current: 0 }])
    await records().remove('rel.Circle', id)
    expect(await rejected()).toMatchObject(['conflict', { expected: 99, current: 1 }])
  })

  test('a revert restores references and links', async () => {
    const circles = [await make('rel.Circle', { name: 'A' }), await make('rel.Circle', { name: 'B' })]
    const [a, b] = circles.map(({ id }) => ({ id }))
    const boss = await make('rel.Person', { name: 'Boss' })
    const { id } = await make('rel.Person', { name: 'Me', boss: { id: boss.id }, circles: [a] })
    await change('rel.Person', id, { version: 0, boss: null, circles: [b] })
    const reverted = await revert('rel.Person', id, 1, 0)
    expect(reverted['boss']).toMatchObject({ id: boss.id })
    expect(idsOf(reverted, 'circles')).toEqual([a])
  })

  test("a revert that needs a deleted member names it, and succeeds after that member's own revert", async () => {
    const company = await make('rel.Company', { name: 'C', addresses: [{ city: 'Rome' }, { city: 'Oslo' }] })
    const [rome, oslo] = idsOf(company, 'addresses')
    await change('rel.Company', company.id, { version: 0, addresses: [oslo] })
    const gone = await expectRolledBack(() =>
      records().revert('rel.Company', company.id, { version: 1, to: 0 }),
    )
    expect([gone.kind, gone.details.errors]).toEqual([
      'invalid',
      {
        'addresses[0]': `refers to rel.Address ${rome?.id}, which does not exist any more: revert that record first`,
      },
    ])
    const back = await revert('rel.Address', rome?.id ?? 0, 1, 0)
    expect(back).toMatchObject({ city: 'Rome', version: 2, company: { id: company.id } })
    const owner = await read('rel.Company', company.id)
    expect([owner.version, idsOf(owner, 'addresses')]).toEqual([2, [rome, oslo]])
    expect((await revert('rel.Company', company.id, 2, 0)).version).toBe(3)
  })

  test('a deleted record is reverted under its id, with the next version and a create Change', async () => {
    const made = await make('rel.Badge', {})
    const other = await make('rel.Badge', {})
    await records().remove('rel.Badge', made.id)
    const changes = await changesOf(async () => {
      const back = await revert('rel.Badge', made.id, 1, 0)
      expect(back).toEqual({ ...made, version: 2 })
    })
    expect(inShort(changes)).toEqual([`rel.Badge ${made.id} create 2`])
    const next = await make('rel.Badge', {})
    expect(next.id).toBeGreaterThan(other.id)
    expect(numberIn(next)).toBe(numberIn(other) + 1)
    expect((await records().history('rel.Badge', made.id)).data.map(({ action }) => action)).toEqual([
      'create',
      'delete',
      'create',
    ])
    expect((await records().readAt('rel.Badge', made.id, 0)).version).toBe(0)
    await change('rel.Badge', made.id, { version: 2 })
  })

  test('a deleted owner is reverted with empty lists, and its members by their own reverts', async () => {
    const company = await make('rel.Company', { name: 'C', addresses: [{ city: 'Rome' }] })
    const [rome] = idsOf(company, 'addresses')
    await change('rel.Company', company.id, { version: 0, seat: rome })
    await records().remove('rel.Company', company.id)
    const early = await expectRolledBack(() =>
      records().revert('rel.Address', rome?.id ?? 0, { version: 1, to: 0 }),
    )
    expect(early.details.errors).toEqual({
      company: `refers to rel.Company ${company.id}, which does not exist any more: revert that record first`,
    })
    const back = await revert('rel.Company', company.id, 2, 1)
    expect(back).toMatchObject({ version: 3, name: 'C', addresses: [], seat: null })
    await revert('rel.Address', rome?.id ?? 0, 1, 0)
    const whole = await read('rel.Company', company.id)
    expect([whole.version, idsOf(whole, 'addresses')]).toEqual([4, [rome]])
  })

  test('a deleted record that referred to itself can be reverted', async () => {
    const { id } = await make('rel.Person', { name: 'Self' })
    await change('rel.Person', id, { version: 0, boss: { id } })
    await change('rel.Person', id, { version: 1, boss: null })
    await records().remove('rel.Person', id)
    expect((await revert('rel.Person', id, 3, 1))['boss']).toMatchObject({ id })
  })

  test('a deleted record is reverted from the version of its delete only, and once if concurrent', async () => {
    const { id } = await make('rel.Circle', { name: 'One' })
    await change('rel.Circle', id, { version: 0, name: 'Two' })
    await records().remove('rel.Circle', id)
    const wrong = await expectRolledBack(() => records().revert('rel.Circle', id, { version: 1, to: 0 }))
    expect([wrong.kind, wrong.details.data]).toMatchObject(['conflict', { expected: 1, current: 2 }])
    const both = await Promise.allSettled([
      ...Array.from({ length: 8 }, () => records().revert('rel.Circle', id, { version: 2, to: 0 })),
    ])
    const rejected = both.filter((each) => each.status === 'rejected').map(({ reason }) => reason as object)
    expect(rejected.length).toBe(7)
    for (const reason of rejected) expect(reason).toMatchObject({ kind: 'conflict' })
    expect(await read('rel.Circle', id)).toMatchObject({ version: 3, name: 'One' })
  })

  test('a revert checks unique values again', async () => {
    const code = `u-${engine.slice(0, 4)}-${transport}`
    const { id } = await make('rel.Company', { name: 'One', code })
    await records().remove('rel.Company', id)
    const other = await make('rel.Company', { name: 'Other', code })
    const taken = await expectRolledBack(() => records().revert('rel.Company', id, { version: 1, to: 0 }))
    expect([taken.kind, taken.details.errors]).toEqual([
      'not-unique',
      { code: 'is already used by another record' },
    ])
    await change('rel.Company', other.id, { version: 0, code: null })
    const free = await expectRolledBack(() =>
      records().revert('rel.Company', other.id, { version: 0, to: 0 }),
    )
    expect(free.kind).toBe('bad-request')
    expect((await revert('rel.Company', id, 1, 0))['code']).toBe(code)
    const again = await expectRolledBack(() =>
      records().revert('rel.Company', other.id, { version: 1, to: 0 }),
    )
    expect(again.kind).toBe('not-unique')
  })

  test('a revert recomputes computed fields and keeps secrets', async () => {
    const made = await make('crm.Contact', { firstName: 'A', lastName: 'B', pin: 'one' })
    await change('crm.Contact', made.id, { version: 0, firstName: 'X', pin: 'two' })
    expect((await revert('crm.Contact', made.id, 1, 0))['fullName']).toBe('A B')
    const table = quoteIdentifier(toTableName('crm.Contact'))
    const [row] = await service().app.db.reader.all(`select "pin" from ${table} where "id" = ?`, [made.id])
    expect(row?.['pin']).toBe('two')
  })

  test('a revert repeated under its idempotency key returns the first answer', async () => {
    const { id } = await make('rel.Circle', { name: 'One' })
    await records().remove('rel.Circle', id)
    const options = { idempotencyKey: `revert-${id}` }
    const first = await records().revert('rel.Circle', id, { version: 1, to: 0 }, options)
    await records().remove('rel.Circle', id)
    const second = await records().revert('rel.Circle', id, { version: 1, to: 0 }, options)
    expect([first.replayed, second.replayed]).toEqual([false, true])
    expect(second.data).toEqual(first.data)
    const other = await catchError(records().revert('rel.Circle', id, { version: 3, to: 0 }, options))
    expect(other.kind).toBe('key-reused')
  })

  test('a revert of a MetaModel is forbidden', async () => {
    const [model] = (await records().find('com.axelor.meta.db.MetaModel', { limit: 1 })).data
    const error = await catchError(
      records().revert('com.axelor.meta.db.MetaModel', model?.id ?? 1, { version: 1, to: 0 }),
    )
    expect(error.kind).toBe('forbidden')
  })

  test('a revert cannot remove the last administrator', async () => {
    const id = 1
    const user = await read('verso.auth.User', id)
    const roles = user['roles'] as readonly { id: number }[]
    const [admin] = roles
    const second = await make('verso.auth.Role', { name: `second-${engine}-${transport}`, admin: true })
    const moved = await change('verso.auth.User', id, { version: user.version, roles: [{ id: second.id }] })
    const role = await read('verso.auth.Role', admin?.id ?? 0)
    const plain = await change('verso.auth.Role', role.id, { version: role.version, admin: false })
    const error = await catchError(
      records().revert('verso.auth.User', id, { version: moved.version, to: user.version }),
    )
    expect(['conflict', 'forbidden', 'invalid']).toContain(error.kind)
    await revert('verso.auth.Role', role.id, plain.version, role.version)
    const back = await revert('verso.auth.User', id, moved.version, user.version)
    expect(idsOf(back, 'roles')).toEqual([{ id: admin?.id }])
  })

  function numberIn(badge: WireRecord): number {
    return Number(String(badge['number']).replace(/\D/g, ''))
  }
})
