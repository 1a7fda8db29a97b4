// Verify: a check that a record is still as the client read it.
import { expect, test } from 'vitest'
import { onEveryTarget, catchError } from '../targets.js'
import { inShort, useRelatedService } from './related-service.js'

const [COMPANY, PERSON] = ['rel.Company', 'rel.Person']

onEveryTarget((engine, transport) => {
  const { service, records, make, change, read, changesOf } = useRelatedService(engine, transport)
  const verify = (model: string, data: unknown) => records().verify(model, data)

  test('a verify of a record just read succeeds and writes nothing', async () => {
    const company = await make(COMPANY, { name: 'fresh', addresses: [{ city: 'A' }] })
    const changes = await changesOf(async () => {
      await verify(COMPANY, company)
      await verify(COMPANY, { id: company.id, version: 0 })
    })
    expect(inShort(changes)).toEqual([])
  })

  test("a verify of a changed record is a conflict with the content of an update's conflict", async () => {
    const company = await make(COMPANY, { name: 'old' })
    await change(COMPANY, company.id, { version: 0, name: 'new' })
    expect(await catchError(verify(COMPANY, company))).toMatchObject({
      kind: 'conflict',
      details: {
        data: {
          ...{ entityName: COMPANY, entityId: company.id, expected: 0, current: 1, mergeable: false },
          ...{ theirs: { name: 'new', version: 1 }, changedBy: { name: 'Ada' } },
          fields: { name: { base: 'old', theirs: 'new', verdict: 'theirs' } },
        },
      },
    })
  })

  test('a verify counts nested records without a version towards the limit of 1,000', async () => {
    const company = await make(COMPANY, { name: 'many' })
    const addresses = Array.from({ length: 1_000 }, () => ({}))
    const error = await catchError(verify(COMPANY, { ...company, addresses }))
    expect([error.kind, error.message]).toEqual(['bad-request', expect.stringContaining('At most 1000')])
  })

  test('a verify of an outdated related record in a reference, list or nested list is a conflict', async () => {
    const company = await make(COMPANY, { name: 'C', addresses: [{ city: 'A', doors: [{}] }] })
    const person = await make(PERSON, { company: { id: company.id }, circles: [{ name: 'X' }] })
    const read1 = await records().fetch(COMPANY, company.id, { fields: ['name', 'addresses.doors'] })
    const { data } = await records().search('rel.Door', { sortBy: ['-id'] })
    await verify(COMPANY, read1)
    await verify(PERSON, person)
    await change(COMPANY, company.id, { version: 0, name: 'C2' })
    const stale = await catchError(verify(PERSON, person))
    expect(stale).toMatchObject({ kind: 'conflict', details: { data: { entityName: COMPANY } } })
    const door1 = data[0]
    await change('rel.Door', door1?.id ?? 0, { version: 0, pin: 'x' })
    const below = await catchError(verify(COMPANY, { ...read1, version: 1 }))
    expect(below.details.data).toMatchObject({ entityName: 'rel.Door', entityId: door1?.id, current: 1 })
    expect(JSON.stringify(below.details)).not.toMatch(/pin/)
  })

  test('a verify of a deleted record, or of one with a deleted related record, is not-found', async () => {
    const { id } = await make(PERSON, {})
    await records().remove(PERSON, id)
    expect((await catchError(verify(PERSON, { id, version: 0 }))).kind).toBe('not-found')
    const claim = { id: 1, version: 0, boss: { id, $version: 0 } }
    expect((await catchError(verify(PERSON, { ...claim, id: (await make(PERSON, {})).id }))).kind).toBe(
      'not-found',
    )
  })

  test('a verify ignores the versions of users, so it reveals nothing about them', async () => {
    const [user] = await service().app.db.reader.all('select "id", "version" from "verso.auth.User"')
    const keeper = { id: Number(user?.['id']) }
    const person = await make(PERSON, { keeper })
    for (const version of [0, 7]) {
      await verify(PERSON, { ...person, keeper: { ...keeper, $version: version } })
      await verify(PERSON, { ...person, keeper: { id: 987_654, version } })
      await verify(PERSON, {
        ...(await read(PERSON, person.id)),
        createdBy: { ...keeper, $version: version },
      })
    }
  })

  test('a verify without a version, or with an invalid one, is rejected as bad-request', async () => {
    const { id } = await make(PERSON, { boss: { name: 'boss' } })
    const attempts = [
      ...[{}, { id }, { version: 0 }, { name: 'x' }, [], 'x', null],
      ...['0', -1, 0.5, true, [0]].map((version) => ({ id, version })),
      ...['1', -1, 1.5].map((each) => ({ id: each, version: 0 })),
      { id, version: 0, boss: { id: 1, $version: '0' } },
      { id, version: 0, circles: [{ id: 1, version: {} }] },
    ]
    for (const attempt of attempts)
      expect([attempt, (await catchError(verify(PERSON, attempt))).kind]).toEqual([attempt, 'bad-request'])
  })

  test('a verify takes 1,000 records, and rejects 1,001', async () => {
    const { data } = await records().save(
      'rel.Circle',
      Array.from({ length: 999 }, () => ({ name: 'c' })),
    )
    const person = await make(PERSON, { name: 'P' })
    await verify(PERSON, { ...person, circles: data })
    const error = await catchError(verify(PERSON, { ...person, circles: [...data, data[0]] }))
    expect(error.kind).toBe('bad-request')
  })
})
