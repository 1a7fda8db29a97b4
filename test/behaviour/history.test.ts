import { expect, test } from 'vitest'
import type { VersoError } from '../../src/errors.js'
import { addUser } from '../../src/service/auth/accounts.js'
import type { Change, WireRecord } from '../../src/wire.js'
import { onEveryTarget, catchError } from '../targets.js'
import { useRelatedService } from './related-service.js'

onEveryTarget((engine, transport) => {
  const { service, records, make, change, read } = useRelatedService(engine, transport)

  const inShort = (changes: readonly Change[]) =>
    changes.map(({ version, action, changes: made }) => [version, action, made])

  async function threeVersions(): Promise<WireRecord> {
    const made = await make('rel.Company', { name: 'One', code: `h${Math.random()}`.slice(0, 16) })
    await change('rel.Company', made.id, { version: 0, name: 'Two' })
    return change('rel.Company', made.id, { version: 1, name: 'Three', founded: '2001-02-03' })
  }

  test('a history has every Change, newest first, with before and after values', async () => {
    const { id, code } = await threeVersions()
    const { data, total, offset, seq } = await records().history('rel.Company', id)
    expect({ total, offset }).toEqual({ total: 3, offset: 0 })
    expect(seq).toBeGreaterThanOrEqual(data[0]?.seq ?? Infinity)
    expect(inShort(data)).toEqual([
      [
        2,
        'update',
        { name: { before: 'Two', after: 'Three' }, founded: { before: null, after: '2001-02-03' } },
      ],
      [1, 'update', { name: { before: 'One', after: 'Two' } }],
      [0, 'create', { name: { before: null, after: 'One' }, code: { before: null, after: code } }],
    ])
    expect(data.every(({ by, on }) => by?.name === 'Ada' && on.endsWith('Z'))).toBe(true)
  })

  test('a history is paged and has the total of all Changes', async () => {
    const { id } = await threeVersions()
    const page = await records().history('rel.Company', id, { offset: 1, limit: 1 })
    expect([page.total, page.offset, page.data.map(({ version }) => version)]).toEqual([3, 1, [1]])
    expect(await records().history('rel.Company', id, { offset: 9 })).toMatchObject({ total: 3, data: [] })
    expect(await records().history('rel.Company', id, { limit: 0 })).toMatchObject({ total: 3, data: [] })
    const error = await catchError(records().history('rel.Company', id, { offset: -1 }))
    expect(error.kind).toBe('bad-request')
  })

  test('a deleted record has a history; a record that never existed is not-found', async () => {
    const { id } = await threeVersions()
    await records().remove('rel.Company', id)
    const { data, total } = await records().history('rel.Company', id)
    expect(total).toBe(4)
    expect([data[0]?.action, data[0]?.version]).toEqual(['delete', 3])
    expect((await catchError(records().history('rel.Company', 999_999))).kind).toBe('not-found')
    expect((await catchError(records().history('rel.Nothing', 1))).kind).toBe('unknown-model')
  })

  test('a record can be read at each of its versions', async () => {
    const made = await make('rel.Company', { name: 'One', addresses: [{ city: 'Rome' }, { city: 'Oslo' }] })
    const path: WireRecord[] = [await read('rel.Company', made.id)]
    const [rome] = made['addresses'] as readonly { id: number }[]
    path.push(await change('rel.Company', made.id, { version: 0, name: 'Two' }))
    path.push(await change('rel.Company', made.id, { version: 1, seat: rome, founded: '1999-01-01' }))
    path.push(await change('rel.Company', made.id, { version: 2, seat: null, founded: null }))
    for (const [version, expected] of path.entries()) {
      const was = await records().readAt('rel.Company', made.id, version)
      // Related records are shown as they are today.
      expect(withoutVersions(was)).toEqual(withoutVersions(expected))
      expect(Object.keys(was)).toEqual(Object.keys(expected))
      expect(await records().readAt('rel.Company', made.id, String(version))).toEqual(was)
    }
  })

  test('a read at an earlier version shows deleted related records by id only', async () => {
    const made = await make('rel.Company', { name: 'One', addresses: [{ city: 'Rome' }, { city: 'Oslo' }] })
    const [rome, oslo] = made['addresses'] as readonly { id: number }[]
    const boss = await make('rel.Person', { name: 'Boss' })
    const person = await make('rel.Person', { name: 'Me', boss: { id: boss.id } })
    await change('rel.Person', person.id, { version: 0, boss: null })
    await records().remove('rel.Person', boss.id)
    await change('rel.Company', made.id, { version: 0, addresses: [{ id: oslo?.id }] })
    expect((await records().readAt('rel.Person', person.id, 0))['boss']).toEqual({ id: boss.id })
    expect((await records().readAt('rel.Company', made.id, 0))['addresses']).toEqual([
      { id: rome?.id },
      { id: oslo?.id, $version: 0, city: 'Oslo' },
    ])
  })

  test('a read at an earlier version has createdBy and updatedBy of that version', async () => {
    const made = await make('rel.Circle', { name: 'One' })
    const changed = await change('rel.Circle', made.id, { version: 0, name: 'Two' })
    await change('rel.Circle', made.id, { version: 1, name: 'Three' })
    await records().remove('rel.Circle', made.id)
    expect(await records().readAt('rel.Circle', made.id, 0)).toEqual(made)
    expect(await records().readAt('rel.Circle', made.id, 1)).toEqual(changed)
  })

  test('a read at a version that never existed, or at that of a delete, is not-found', async () => {
    const { id } = await threeVersions()
    await records().remove('rel.Company', id)
    expect((await records().readAt('rel.Company', id, 2))['name']).toBe('Three')
    for (const version of [3, 4, 77]) {
      const error = await catchError(records().readAt('rel.Company', id, version))
      expect([error.kind, error.message]).toEqual([
        'not-found',
        `rel.Company ${id} has no version ${version}`,
      ])
    }
    expect((await catchError(records().readAt('rel.Company', 999_999, 0))).kind).toBe('not-found')
  })

  test('a read at a point in time returns the version of that time', async () => {
    const at: string[] = []
    const pass = () => {
      service().clock.advance(60_000)
      at.push(new Date(service().clock.now()).toISOString())
      service().clock.advance(60_000)
    }
    pass()
    const made = await make('rel.Circle', { name: 'One' })
    pass()
    await change('rel.Circle', made.id, { version: 0, name: 'Two' })
    pass()
    await records().remove('rel.Circle', made.id)
    pass()
    const nameAt = async (moment = '') => {
      const reading = records().readAt('rel.Circle', made.id, moment)
      return reading.then(
        (was) => was['name'],
        (error: unknown) => (error as VersoError).kind,
      )
    }
    expect(await Promise.all(at.map(nameAt))).toEqual(['not-found', 'One', 'Two', 'not-found'])
    const local = at[1]?.replace('Z', '+00:00')
    expect(await nameAt(local)).toBe('One')
    expect(await nameAt('2001-01-01')).toBe('not-found')
  })

  test('a read with an invalid asOf is rejected as bad-request', async () => {
    const { id } = await threeVersions()
    for (const asOf of ['yesterday', '-1', '1.5', '2026-02-30', '', '2026-01-01T00:00:00']) {
      const error = await catchError(records().readAt('rel.Company', id, asOf))
      expect([asOf, error.kind]).toEqual([asOf, 'bad-request'])
      expect(error.message).toMatch(/^asOf must be a version, a date and time/)
    }
  })

  test('a history contains no secrets', async () => {
    const made = await make('crm.Contact', { firstName: 'A', pin: 'pin-1234', password: 'a long password' })
    await change('crm.Contact', made.id, { version: 0, pin: 'pin-5678', firstName: 'B' })
    const told = [
      await records().history('crm.Contact', made.id),
      await records().readAt('crm.Contact', made.id, 0),
      await records().readAt('crm.Contact', made.id, 1),
    ]
    expect(JSON.stringify(told)).not.toMatch(/pin|password|argon/)
  })

  test('accounts have a history', async () => {
    const username = `history-${engine}-${transport}`
    const id = await addUser(service().app, { username, password: 'a first password', roles: ['editor'] })
    const { data } = await records().history('verso.auth.User', id)
    expect(data.map(({ action, by }) => [action, by])).toEqual([['create', null]])
    expect((await records().readAt('verso.auth.User', id, 0))['username']).toBe(username)
  })
})

/** Clears `$version`: related records are shown as they are today. */
function withoutVersions(record: WireRecord): unknown {
  return JSON.parse(JSON.stringify(record), (key, value: unknown) => (key === '$version' ? 0 : value))
}
