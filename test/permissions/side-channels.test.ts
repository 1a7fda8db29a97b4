// Side channels reveal no hidden values: relations, conflicts, errors and repeated answers.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PERMISSION_MODEL, ROLE_MODEL } from '../../src/model/catalog/auth-models.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import type { Records } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import { onEveryEngine, PASSWORD, catchError, startService, type Service } from '../targets.js'
import { withServer } from '../wire/exchange.js'
import { grantee, officeModels, permit, PROJECT, rootOf, type UserWithPermissions } from './office-fixture.js'

const PERSON = 'rel.Person'
const COMPANY = 'rel.Company'
const ADDRESS = 'rel.Address'

onEveryEngine((engine) => {
  let service: Service
  let root: Records

  beforeAll(async () => {
    service = await startService(engine, { models: officeModels })
    root = rootOf(service)
  })
  afterAll(() => service.close())

  test('a user who may read only their own account sees only the names of other users in references', async () => {
    const own = { model: USER_MODEL, canRead: true, condition: 'id = :user' }
    const team = (await root.create('office.Team', { name: 'Hidden home' })).data.id
    const other = await grantee(service, [], { region: 'Hidden region', home: { id: team }, name: 'Zed' })
    const may = [own, { model: PERSON, canRead: true }, { model: 'office.Team', canRead: true }]
    const { client, id, username } = await grantee(service, may, { region: 'mine', name: 'Me' })
    const kept = (await root.create(PERSON, { name: 'kept', keeper: { id: other.id } })).data.id
    const held = (await root.create(PERSON, { name: 'held', keeper: { id } })).data.id

    const fields = ['keeper.name', 'keeper.username', 'keeper.region', 'keeper.disabled', 'keeper.home.name']
    const only = (record: number) => ({ data: { _domain: `id = ${record}` } })
    const hidden = (await client.search(PERSON, { ...only(kept), fields })).data[0]
    const shown = (await client.search(PERSON, { ...only(held), fields })).data[0]
    expect(hidden?.['keeper.name']).toBe('Zed')
    for (const field of fields.slice(1)) expect(hidden?.[field] ?? null, field).toBeNull()
    expect(shown).toMatchObject({ 'keeper.username': username, 'keeper.region': 'mine' })
    const related = { keeper: ['name', 'username', 'region'] }
    const fetched = JSON.stringify(await client.fetch(PERSON, kept, { fields: ['name'], related }))
    expect(fetched).toContain('Zed')
    expect(fetched).not.toMatch(new RegExp(`${other.username}|Hidden`))
    const filters = [
      `keeper.region = 'Hidden region'`,
      `keeper.username = '${other.username}'`,
      `keeper.home.name = 'Hidden home'`,
    ]
    for (const filter of filters) expect((await client.find(PERSON, { filter })).total, filter).toBe(0)
    expect((await client.find(PERSON, { filter: `keeper.region = 'mine'` })).total).toBe(1)
    // Nulls sort first or last: the order depends on visible values only.
    const names = async (sortBy: string) =>
      (await client.search(PERSON, { sortBy: [sortBy], data: { _domain: `id in (${kept}, ${held})` } })).data
    const ofHidden = (records: readonly { id: number }[]) => records.findIndex((each) => each.id === kept)
    const before = ofHidden(await names('keeper.region'))
    const user = await root.read(USER_MODEL, other.id)
    await root.update(USER_MODEL, other.id, { version: user.version, region: 'zzz' })
    expect(ofHidden(await names('keeper.region'))).toBe(before)
  })

  const PAST: readonly { readonly condition: string; readonly isOwn?: boolean }[] = [
    { condition: 'updatedBy = :user', isOwn: true },
    { condition: 'updatedOn is not null' },
    { condition: 'version >= 1' },
  ]
  test.each(PAST)(
    'a conflict reveals no past value that was hidden then, if $condition shows it now',
    async ({ condition, isOwn }) => {
      const { client } = await grantee(service, [
        { model: PROJECT, canRead: true, condition },
        { model: PROJECT, canRead: true, readable: ['name'] },
        { model: PROJECT, canUpdate: true },
      ])
      const { id } = (await root.create(PROJECT, { name: 'n', secret: 'OLD' })).data
      expect(await client.read(PROJECT, id)).not.toHaveProperty('secret')
      await (isOwn ? client : root).update(PROJECT, id, { version: 0, secret: 'new' })
      expect(await client.read(PROJECT, id)).toMatchObject({ secret: 'new' })
      const error = await catchError(client.update(PROJECT, id, { version: 0, secret: 'mine' }))
      expect(error.kind).toBe('conflict')
      expect(JSON.stringify(error.details)).toContain('"new"')
      expect(JSON.stringify(error.details)).not.toContain('OLD')
    },
  )

  test('the owner of a record is named only to users who may see everything', async () => {
    const { client } = await grantee(service, [
      { model: COMPANY, canRead: true, canUpdate: true, canCreate: true, condition: 'createdBy = :user' },
      {
        model: ADDRESS,
        canRead: true,
        readable: ['city', 'company'],
        canUpdate: true,
        writable: ['company'],
      },
    ])
    const hidden = (await root.create(COMPANY, { name: 'Hidden', addresses: [{ city: 'Oslo' }] })).data
    const [address] = hidden['addresses'] as readonly { readonly id: number }[]
    const mine = (await client.create(COMPANY, { name: 'Mine' })).data
    const adopt = (records: Records) =>
      catchError(
        records.update(COMPANY, mine.id, { version: mine.version, addresses: [{ id: address?.id }] }),
      )
    const [told, all] = [await adopt(client), await adopt(root)]
    expect([told.kind, all.kind]).toEqual(['invalid', 'invalid'])
    expect(JSON.stringify([told.message, told.details])).toContain('is in another list')
    expect(JSON.stringify([told.message, told.details])).not.toContain(`${COMPANY} ${hidden.id}`)
    expect(JSON.stringify(all.details)).toContain(`${COMPANY} ${hidden.id}`)
  })

  test('a permission that a user may not write is rejected with the same message for any model', async () => {
    const { client, role } = await grantee(service, [
      { model: PERMISSION_MODEL, canRead: true, canCreate: true, canUpdate: true },
      { model: ROLE_MODEL, canRead: true },
    ])
    const asked = [
      { model: PROJECT },
      { model: 'office.Projec' },
      { model: PROJECT, condition: 'secre is null' },
      { model: PROJECT, readable: ['secre'] },
    ]
    for (const values of asked) {
      const sent = { role: { id: role }, canRead: true, ...values }
      const forbidden = {
        kind: 'forbidden',
        message: `You do not have permission to create records of ${PERMISSION_MODEL}`,
      }
      expect(await catchError(client.create(PERMISSION_MODEL, sent))).toMatchObject(forbidden)
      expect(await catchError(client.save(PERMISSION_MODEL, [sent]))).toMatchObject(forbidden)
    }
  })

  test('a model whose binary fields are hidden answers like one without binary fields', async () => {
    const fields = { readable: ['title'], writable: ['title'] }
    const { client } = await grantee(service, [
      { model: 'doc.Folder', canRead: true, canUpdate: true, ...fields },
      { model: 'rel.Circle', canRead: true, canUpdate: true },
    ])
    const folder = (await root.create('doc.Folder', { title: 'f' })).data.id
    const circle = (await root.create('rel.Circle', { name: 'c' })).data.id
    const told = async (model: string, id: number) => {
      const content = async function* () {
        yield Buffer.from('x')
      }
      const upload = { data: { id, version: 0 }, field: 'cover', content: content() }
      const errors = [
        await catchError(client.download(model, id, 'cover')),
        await catchError(client.clear(model, id, 'cover', { version: 0 })),
        await catchError(client.upload(model, upload)),
      ]
      return errors.map(({ kind, message }) => [kind, message.replace(model, 'it')])
    }
    expect(await told('doc.Folder', folder)).toEqual(await told('rel.Circle', circle))
  })

  test('a hidden field of a related record answers like a field that does not exist', async () => {
    const { client } = await grantee(service, [
      { model: PERSON, canRead: true, canCreate: true },
      { model: COMPANY, canRead: true, readable: ['code'] },
    ])
    const { id } = (await root.create(COMPANY, { name: 'Hidden', code: `code of ${engine}` })).data
    const named = (field: string) => ({ company: { id, $version: 0, [field]: null } })
    const told = async (field: string) =>
      JSON.stringify((await catchError(client.create(PERSON, named(field)))).details).replace(field, 'it')
    expect(await told('founded')).toBe(await told('nothing'))
    expect(await told('foundet')).not.toContain('mean')
    // A related record may be sent back as read, also with the name of a user.
    const user = (await client.create(PERSON, { company: { id, $version: 0, code: `code of ${engine}` } }))
      .data
    const { createdBy } = user
    expect((await client.create(PERSON, { keeper: createdBy })).data).toMatchObject({ keeper: createdBy })
  })

  test('a hidden relation answers like one that does not exist, with compat axelor', async () => {
    const who = await grantee(service, [{ model: PERSON, canRead: true, readable: ['name'] }])
    const { id } = (await root.create(PERSON, { name: 'n' })).data
    await withServer(service, { compat: 'axelor' }, async (url) => {
      const client = await HttpClient.login(url, who.username, PASSWORD)
      const told = async (relation: string) => {
        const body = { fields: ['name'], related: { [relation]: ['name'] } }
        return (await client.request('POST', `/ws/rest/${PERSON}/${id}/fetch`, body)).text()
      }
      expect(await told('keeper')).toBe(await told('nothing'))
      expect(await told('keeper')).toContain('"n"')
    })
  })

  const READS = { model: PERSON, canRead: true, canCreate: true, canUpdate: true, canRemove: true }
  const BLIND = { ...READS, canRead: false }

  async function put({ client }: UserWithPermissions, path: string, body: object, key: string) {
    const headers = { 'idempotency-key': key }
    const response = await client.request('PUT', `/ws/rest/${path}`, body, headers)
    return { text: await response.text(), replayed: response.headers.get('idempotency-replayed') }
  }

  test('a repeated answer has only the fields that the user may read by now', async () => {
    const who = await grantee(service, [READS])
    const one = { data: { name: 'secret name' } }
    const many = { records: [{ name: 'secret one' }, { name: 'secret two' }] }
    const first = await put(who, PERSON, one, 'one')
    await put(who, PERSON, many, 'many')
    expect(await put(who, PERSON, one, 'one')).toEqual({ text: first.text, replayed: 'true' })
    expect(first.text).toContain('secret name')

    await permit(service, who, [{ ...READS, readable: ['rate'] }])
    const [again, all] = [await put(who, PERSON, one, 'one'), await put(who, PERSON, many, 'many')]
    expect([again.text, again.replayed, all.replayed].join(' ')).not.toContain('secret')
    expect(all.text).not.toContain('secret')
    const { data } = JSON.parse(first.text) as { data: readonly { id: number }[] }
    expect(JSON.parse(again.text)).toEqual({ status: 0, data: [{ id: data[0]?.id, version: 0 }] })
    expect((JSON.parse(all.text) as { data: unknown[] }).data).toHaveLength(2)
    expect([again.replayed, all.replayed]).toEqual(['true', 'true'])
  })

  test('a repeated answer to a former administrator has no hidden fields', async () => {
    const who = await grantee(service, [BLIND])
    const { version } = await root.read(ROLE_MODEL, who.role)
    const raised = await root.update(ROLE_MODEL, who.role, { version, admin: true })
    const body = { data: { name: 'secret name' } }
    const first = await put(who, PERSON, body, 'admin')
    expect(first.text).toContain('secret name')
    await root.create(ROLE_MODEL, { name: `another one beside ${who.username}` })
    expect(await put(who, PERSON, body, 'admin')).toEqual({ text: first.text, replayed: 'true' })
    await root.update(ROLE_MODEL, who.role, { version: raised.data.version, admin: false })
    const again = await put(who, PERSON, body, 'admin')
    expect([again.text.includes('secret'), again.replayed]).toEqual([false, 'true'])
  })

  test('a repeated delete returns the first answer after a loss of permissions', async () => {
    const who = await grantee(service, [READS])
    const { id } = (await root.create(PERSON, {})).data
    const first = await who.client.remove(PERSON, id, { idempotencyKey: 'gone' })
    await permit(service, who, [{ ...READS, readable: [] }])
    const again = await who.client.remove(PERSON, id, { idempotencyKey: 'gone' })
    expect([first, again]).toEqual([
      { data: id, replayed: false },
      { data: id, replayed: true },
    ])
  })
})
