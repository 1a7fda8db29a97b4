// A save that would silently lose an edit is rejected, with the path.
import { expect, test } from 'vitest'
import { onEveryTarget, catchError } from '../targets.js'
import { listOf, useRelatedService } from './related-service.js'

onEveryTarget((engine, transport) => {
  const { records, make, change, read, expectRolledBack } = useRelatedService(engine, transport)

  test('a name changed in a related record without its version is rejected with its path', async () => {
    const company = await make('rel.Company', { name: 'C', addresses: [{ city: 'A' }, { city: 'B' }] })
    const person = await make('rel.Person', { name: 'P', company: { id: company.id } })
    const inReference = { ...person, company: { ...(person['company'] as object), name: 'Changed' } }
    expect(
      (await expectRolledBack(() => change('rel.Person', person.id, inReference))).details.errors,
    ).toEqual({
      'company.name': expect.stringContaining('send "version" instead of "$version"'),
    })
    const [a, b] = listOf(company, 'addresses')
    const inList = { ...company, addresses: [a, { ...b, city: 'Changed' }] }
    expect((await expectRolledBack(() => change('rel.Company', company.id, inList))).details.errors).toEqual({
      'addresses[1].city': expect.stringContaining('was changed in a reference'),
    })
    const misspelled = { ...company, addresses: [a, { ...b, citty: 'Changed' }] }
    expect(
      (await expectRolledBack(() => change('rel.Company', company.id, misspelled))).details.errors,
    ).toEqual({
      'addresses[1]': expect.stringContaining('did you mean "city"?'),
    })
  })

  test('a related record renamed by someone else can be sent back under its former name', async () => {
    const company = await make('rel.Company', { name: 'Old' })
    const person = await make('rel.Person', { company: { id: company.id } })
    await change('rel.Company', company.id, { version: 0, name: 'New' })
    expect(await change('rel.Person', person.id, person)).toMatchObject({
      version: 1,
      company: { name: 'New' },
    })
    expect(await read('rel.Company', company.id)).toMatchObject({ version: 1, name: 'New' })
  })

  test('a duplicate unique value in a nested record is reported with its path', async () => {
    const { id } = await make('rel.Address', { city: 'A', doors: [{ code: `${transport} ${engine} 1` }] })
    const doors = [{ code: `${transport} ${engine} 2` }, { code: `${transport} ${engine} 1` }]
    const error = await expectRolledBack(() =>
      make('rel.Company', { name: 'C', addresses: [{ city: 'B', doors }] }),
    )
    expect(error).toMatchObject({
      kind: 'not-unique',
      details: { errors: { 'addresses[0].doors[1].code': 'is already used by another record' } },
    })
    await records().remove('rel.Address', id)
  })

  test('a record listed inside its own related record is rejected as invalid', async () => {
    const company = await make('rel.Company', { name: 'C' })
    const address = await make('rel.Address', { city: 'A' })
    const data = {
      version: 0,
      city: 'B',
      company: { id: company.id, version: 0, addresses: [{ id: address.id }] },
    }
    const error = await expectRolledBack(() => change('rel.Address', address.id, data))
    expect(error).toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('which this request already'),
    })
  })

  test('a conflict about a nested record shows committed values only', async () => {
    const company = await make('rel.Company', { name: 'Committed', addresses: [{ city: 'A' }] })
    const [address] = listOf(company, 'addresses')
    await change('rel.Address', address?.id ?? 0, { version: 0, street: 'S' })
    const data = { version: 0, name: 'Not yet', addresses: [{ id: address?.id, version: 0, city: 'B' }] }
    const error = await catchError(records().update('rel.Company', company.id, data))
    expect(error.details.data).toMatchObject({
      entityName: 'rel.Address',
      theirs: { version: 1, street: 'S', company: { id: company.id, $version: 0, name: 'Committed' } },
    })
  })
})
