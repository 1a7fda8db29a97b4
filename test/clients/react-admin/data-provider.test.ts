import type { DataProvider, RaRecord } from 'ra-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createDataProvider, ProviderError } from 'verso-records/react-admin'
import type { Client } from '../../../src/client/client-types.js'
import { connect } from '../../../src/client/index.js'
import { compareWithCache, saveOnCurrentVersion } from '../../mutants/data-provider.js'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../../targets.js'

const PERSON = 'rel.Person'
const COMPANY = 'rel.Company'
const CIRCLE = 'rel.Circle'
const PAGE_SIZE = 100

test('the provider is a data provider of ra-core', () => {
  const provider: DataProvider = createDataProvider(connect('http://localhost'))
  expect(provider.supportAbortSignal).toBe(true)
})

onEngineOfTier((engine) => {
  let service: Service
  /** Requests since the beginning of the test: method and path with query. */
  let requests: string[] = []
  let provider: DataProvider
  let client: Client

  beforeAll(async () => {
    service = await startService(engine, { settings: { maxPageSize: PAGE_SIZE } })
    const countedFetch: typeof fetch = (input, init) => {
      const { pathname, search } = new URL(input instanceof Request ? input.url : input)
      requests.push(`${init?.method ?? 'GET'} ${pathname}${decodeURIComponent(search.replaceAll('+', ' '))}`)
      return fetch(input, init)
    }
    client = connect(service.url, { username: USERNAME, password: PASSWORD }, { fetch: countedFetch })
    provider = createDataProvider(client)
    await client.login()
  })
  afterAll(() => service.close())
  beforeEach(() => {
    requests = []
  })

  const save = async (model: string, data: object): Promise<RaRecord<number>> =>
    (await provider.create<RaRecord<number>>(model, { data })).data
  const read = async (model: string, id: number): Promise<RaRecord<number>> =>
    (await provider.getOne<RaRecord<number>>(model, { id })).data
  const namesOf = (records: readonly RaRecord[]) => records.map((record) => record['name'] as string)

  /** The error that a call rejects with. */
  async function fail(call: Promise<unknown>): Promise<ProviderError> {
    const error = await call.then(
      () => new Error('the call was expected to fail, and succeeded'),
      (reason: unknown) => reason,
    )
    if (error instanceof ProviderError) return error
    throw error
  }

  describe('getList', () => {
    let company: RaRecord<number>

    beforeAll(async () => {
      company = await save(COMPANY, { name: 'List & Sons', code: 'LIST' })
      const people = Array.from({ length: 7 }, (_, index) => ({
        name: `lister ${index}`,
        isActive: index % 2 === 0,
      }))
      for (const person of people) await save(PERSON, { ...person, company: { id: company.id } })
    })

    const list = async (params: object) => {
      const { data, total, pageInfo } = await provider.getList<RaRecord>(PERSON, {
        pagination: { page: 1, perPage: 10 },
        sort: { field: 'name', order: 'ASC' },
        ...params,
      })
      return { names: namesOf(data), total, pageInfo, data }
    }

    test('returns a sorted page and the total', async () => {
      const pagination = { page: 2, perPage: 3 }
      const { names, total } = await list({
        pagination,
        sort: { field: 'name', order: 'DESC' },
        filter: { q: 'lister' },
      })
      expect([names, total]).toEqual([['lister 3', 'lister 2', 'lister 1'], 7])
    })

    test.for<[string, (id: number) => object, number]>([
      ['words', () => ({ q: 'lister 5' }), 1],
      ['a value', () => ({ q: 'lister', isActive: false }), 3],
      ['the id of a reference', (id) => ({ 'company.id': id, isActive: true }), 4],
      [
        'the id of a reference as text, nested as an input makes it',
        (id) => ({ company: { id: String(id) } }),
        7,
      ],
      ['a path over a reference', () => ({ company: { code: 'LIST' } }), 7],
      ['an operator', () => ({ name: { like: 'lister%', '!=': 'lister 0' } }), 6],
      ['several values', () => ({ name: ['lister 1', 'lister 2', 'unknown'] }), 2],
      ['null', () => ({ q: 'lister', boss: null }), 7],
      ['groups of conditions', () => ({ or: [{ name: 'lister 1' }, { name: 'lister 2' }] }), 2],
      ['an undefined value, which is no condition', () => ({ name: 'lister 1', boss: undefined }), 1],
    ])('filters by %s', async ([, filter, total]) => {
      expect(await list({ filter: filter(company.id) })).toMatchObject({ total })
    })

    test('meta adds a condition and selects fields', async () => {
      const meta = { fields: ['name', 'company.code'], filter: `name = 'lister 1' or name = 'lister 2'` }
      const { data } = await list({ filter: { isActive: true }, meta })
      expect(data).toEqual([expect.objectContaining({ name: 'lister 2', 'company.code': 'LIST' })])
      expect(Object.keys(data[0] ?? {}).sort()).toEqual(['company.code', 'id', 'name', 'version'])
    })

    test('without a count, says whether there are more pages', async () => {
      const meta = { count: 'none' }
      const pageInfos = [1, 2, 3].map(async (page) => {
        const { pageInfo, total } = await list({
          pagination: { page, perPage: 3 },
          filter: { q: 'lister' },
          meta,
        })
        return [total, pageInfo?.hasPreviousPage, pageInfo?.hasNextPage]
      })
      expect(await Promise.all(pageInfos)).toEqual([
        [undefined, false, true],
        [undefined, true, true],
        [undefined, true, false],
      ])
    })

    test('returns a page that is larger than the page size of the service', async () => {
      const data = Array.from({ length: 250 }, (_, index) => ({ name: `big ${index}` }))
      await client.batch(data.map((each) => ({ op: 'create' as const, model: CIRCLE, data: each })))
      requests = []
      const params = { sort: { field: 'id', order: 'DESC' as const }, filter: { q: 'big' } }
      const all = await provider.getList<RaRecord>(CIRCLE, {
        ...params,
        pagination: { page: 1, perPage: 1000 },
      })
      expect(namesOf(all.data)).toEqual(data.map(({ name }) => name).reverse())
      expect(all.total).toBe(250)
      expect(requests).toHaveLength(3)
      const second = await provider.getList<RaRecord>(CIRCLE, {
        ...params,
        pagination: { page: 2, perPage: 120 },
      })
      expect(namesOf(second.data)).toEqual(namesOf(all.data.slice(120, 240)))
    })

    test('getManyReference lists the records that refer to a record', async () => {
      for (const target of ['company', 'company.id']) {
        const { data, total } = await provider.getManyReference<RaRecord>(PERSON, {
          ...{ target, id: String(company.id), filter: { isActive: true } },
          pagination: { page: 1, perPage: 2 },
          sort: { field: 'name', order: 'DESC' },
        })
        expect([namesOf(data), total]).toEqual([['lister 6', 'lister 4'], 4])
      }
    })

    test('an aborted call rejects with the reason of its signal', async () => {
      const controller = new AbortController()
      const call = provider.getList(PERSON, { signal: controller.signal })
      controller.abort()
      await expect(call).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }) as Error)
    })
  })

  describe('getOne and getMany', () => {
    test('read a record by an id that is text', async () => {
      const { id } = await save(PERSON, { name: 'one' })
      const { data } = await provider.getOne<RaRecord>(PERSON, { id: String(id) })
      expect(data).toMatchObject({ id, version: 0, name: 'one', company: null })
      const { data: part } = await provider.getOne<RaRecord>(PERSON, { id, meta: { fields: ['name'] } })
      expect(part).toEqual({ id, version: 0, name: 'one' })
    })

    test.each(['999999', 'create', 'NaN', ''])('the id "%s" leads to no record: 404', async (id) => {
      expect(await fail(provider.getOne(PERSON, { id }))).toMatchObject({
        status: 404,
        body: { kind: 'not-found' },
      })
    })

    test('calls of one tick are one request, each keeps its order, and missing ids are left out', async () => {
      const [one, two, three] = [
        await save(CIRCLE, { name: 'a' }),
        await save(CIRCLE, { name: 'b' }),
        await save(CIRCLE, { name: 'c' }),
      ]
      requests = []
      const answers = await Promise.all([
        provider.getMany<RaRecord>(CIRCLE, { ids: [String(three.id), one.id] }),
        provider.getMany<RaRecord>(CIRCLE, { ids: [two.id, 999_999, one.id, 'unknown'] }),
      ])
      expect(answers.map(({ data }) => namesOf(data))).toEqual([
        ['c', 'a'],
        ['b', 'a'],
      ])
      expect(requests).toHaveLength(1)
      expect(requests[0]).toContain(`filter=id in (${[three.id, one.id, two.id, 999_999].join()})`)
    })

    test('more than 200 ids are several requests, which the page size of the service does not shorten', async () => {
      const { data: circles } = await provider.getList<RaRecord>(CIRCLE, {
        pagination: { page: 1, perPage: 240 },
      })
      const ids = circles.map(({ id }) => id).reverse()
      const { data } = await provider.getMany<RaRecord>(CIRCLE, { ids })
      expect(data.map(({ id }) => id)).toEqual(ids)
    })

    test('values that are no ids lead to no record, and harm no other call of the tick', async () => {
      const { id } = await save(PERSON, { name: 'found' })
      const strange = [NaN, 1.5, 1e21, -1, '9007199254740993', 'x', null]
      const [found, none] = await Promise.all([
        provider.getMany<RaRecord<number>>(PERSON, { ids: [id] }),
        provider.getMany(PERSON, { ids: strange as number[] }),
      ])
      expect([namesOf(found.data), none.data]).toEqual([['found'], []])
    })

    test('a record may refer to an archived one', async () => {
      const note = await save('test.Note', { title: 'kept', archived: true })
      const { data } = await provider.getMany<RaRecord>('test.Note', { ids: [note.id] })
      expect(data).toHaveLength(1)
    })

    test('the request of several calls goes on until all of them are aborted', async () => {
      const circle = await save(CIRCLE, { name: 'signal' })
      const controllers = [new AbortController(), new AbortController()]
      const start = () =>
        controllers.map(({ signal }) => provider.getMany<RaRecord>(CIRCLE, { ids: [circle.id], signal }))
      const [left, stays] = start()
      controllers[0]?.abort()
      await expect(left).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }) as Error)
      expect((await stays)?.data).toHaveLength(1)
      await expect(start()[0]).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }) as Error)
    })

    test('a call that follows an aborted one in the same tick gets its records', async () => {
      const circle = await save(CIRCLE, { name: 'again' })
      const controller = new AbortController()
      const left = provider.getMany<RaRecord>(CIRCLE, { ids: [circle.id], signal: controller.signal })
      controller.abort()
      const { signal } = new AbortController()
      const stays = provider.getMany<RaRecord>(CIRCLE, { ids: [circle.id], signal })
      await expect(left).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }) as Error)
      expect((await stays).data).toHaveLength(1)
    })
  })

  describe('create', () => {
    test('saves references as inputs leave them', async () => {
      const company = await save(COMPANY, { name: 'Input Ltd' })
      const data = {
        name: 'new',
        company: { id: String(company.id) },
        boss: { id: '' },
        keeper: { id: null },
      }
      expect(await save(PERSON, data)).toMatchObject({
        version: 0,
        company: { id: company.id },
        boss: null,
        keeper: null,
      })
    })

    test('rejects values with their fields, as forms of react-admin read them', async () => {
      const error = await fail(
        provider.create(COMPANY, { data: { code: 'x'.repeat(17), seat: { id: 999_999 } } }),
      )
      expect(error).toMatchObject({ status: 422, body: { kind: 'invalid' } })
      const { errors = {} } = error.body
      expect(Object.keys(errors).sort()).toEqual(['code', 'name', 'root'])
      expect(errors['root']).toEqual({ serverError: error.message })
    })

    test('rejects a reference to a missing record at the field and at the input of its id', async () => {
      const data = { name: 'Lost', seat: { id: 999_999 } }
      const { errors = {} } = (await fail(provider.create(COMPANY, { data }))).body
      expect(Object.keys(errors).sort()).toEqual(['root', 'seat', 'seat.id'])
    })

    test('rejects a value that another record has, at its field', async () => {
      await save(COMPANY, { name: 'First', code: 'TWICE' })
      const error = await fail(provider.create(COMPANY, { data: { name: 'Second', code: 'TWICE' } }))
      expect(error).toMatchObject({
        status: 409,
        body: { kind: 'not-unique', errors: { code: expect.any(String) } },
      })
    })
  })

  describe('update', () => {
    const update = (previousData: RaRecord, data: object, by = provider) =>
      by.update<RaRecord<number>>(PERSON, { id: String(previousData.id), data, previousData })

    test('sends only changed fields, so that the service keeps the changes of others', async () => {
      const base = await save(PERSON, { name: 'before', born: '1990-01-01' })
      await update(base, { ...base, born: '1991-02-03' })
      const { data } = await update(base, { ...base, name: 'after' })
      expect(data).toMatchObject({ version: 2, name: 'after', born: '1991-02-03' })
    })

    test('without changes writes nothing', async () => {
      const base = await save(PERSON, { name: 'same', company: null })
      expect((await update(base, { ...base, company: { id: null } })).data.version).toBe(0)
    })

    test('chooses another reference, and clears it, as inputs leave it', async () => {
      const [one, two] = [await save(COMPANY, { name: 'One' }), await save(COMPANY, { name: 'Two' })]
      const base = await save(PERSON, { name: 'worker', company: { id: one.id } })
      expect(base['company']).toMatchObject({ id: one.id, $version: 0 })
      const { data: moved } = await update(base, {
        ...base,
        company: { ...base['company'], id: String(two.id) },
      })
      expect(moved).toMatchObject({ version: 1, company: { id: two.id, name: 'Two' } })
      const { data: cleared } = await update(moved, { ...moved, company: { ...moved['company'], id: null } })
      expect(cleared).toMatchObject({ version: 2, company: null })
    })

    test('replaces a list by references or by ids, and leaves an unchanged list alone', async () => {
      const [one, two] = [await save(CIRCLE, { name: 'one' }), await save(CIRCLE, { name: 'two' })]
      const base = await save(PERSON, { name: 'member', circles: [{ id: one.id }] })
      const { data: same } = await update(base, { ...base, circles: [one.id], name: 'renamed' })
      expect(same).toMatchObject({ version: 1, circles: [{ id: one.id }] })
      const { data: more } = await update(same, {
        ...same,
        circles: [...(same['circles'] as object[]), { id: two.id }],
      })
      expect(more).toMatchObject({ version: 2, circles: [{ id: one.id }, { id: two.id }] })
      const { data: none } = await update(more, { ...more, circles: [] })
      expect(none).toMatchObject({ version: 3, circles: [] })
    })

    test('a field that both sides changed rejects with base, ours and theirs, and can be saved on the current version', async () => {
      const base = await save(PERSON, { name: 'base', born: '1990-01-01' })
      await update(base, { ...base, name: 'theirs' })
      const error = await fail(update(base, { ...base, name: 'ours', born: '1991-02-03' }))
      expect(error).toMatchObject({
        name: 'ProviderError',
        status: 409,
        message: expect.stringContaining(PERSON),
      })
      expect(error.body).toMatchObject({
        kind: 'conflict',
        base: { name: 'base', version: 0 },
        ours: { name: 'ours', born: '1991-02-03' },
        theirs: { name: 'theirs', version: 1 },
        fields: {
          name: { base: 'base', ours: 'ours', theirs: 'theirs', verdict: 'clash' },
          born: { verdict: 'ours' },
        },
        current: 1,
      })
      // Otherwise react-admin would show no notification.
      expect(error.body).not.toHaveProperty('errors')
      const theirs = error.body.theirs as RaRecord
      const { data } = await update(theirs, { ...theirs, ...error.body.ours })
      expect(data).toMatchObject({ version: 2, name: 'ours', born: '1991-02-03' })
    })

    /** The cache has followed the change of another user; the form has not. */
    const saveOldForm = async (by: DataProvider) => {
      const base = await save(PERSON, { name: 'form', born: '1990-01-01' })
      const { data: newer } = await update(base, { ...base, born: '1991-02-03' })
      return (await update(newer, { ...base, name: 'edited' }, by)).data
    }

    test('a form that is older than the cache of react-admin undoes no change of others', async () => {
      expect(await saveOldForm(provider)).toMatchObject({ version: 2, name: 'edited', born: '1991-02-03' })
    })

    test('the mutant that compares a form with the cache undoes the change of another user', async () => {
      expect((await saveOldForm(compareWithCache(provider)))['born']).toBe('1990-01-01')
    })

    test('the mutant that saves on the current version overwrites a clash', async () => {
      const base = await save(PERSON, { name: 'base' })
      await update(base, { ...base, name: 'theirs' })
      const { data } = await update(base, { ...base, name: 'ours' }, saveOnCurrentVersion(provider))
      expect(data['name']).toBe('ours')
    })

    test('without the previous record, sets the given fields', async () => {
      const { id } = await save(PERSON, { name: 'blind', born: '1990-01-01' })
      const { data } = await provider.update<RaRecord>(PERSON, {
        id,
        data: { name: 'seen' },
        previousData: undefined,
      })
      expect(data).toMatchObject({ version: 1, name: 'seen', born: '1990-01-01' })
    })

    test('a record that was read in part loses no field that its form did not show', async () => {
      const { id } = await save(PERSON, { name: 'part', born: '1990-01-01' })
      const part = { id, version: 0, name: 'part' }
      const { data } = await update(part, { ...part, name: 'whole', born: null })
      expect(data).toMatchObject({ name: 'whole', born: '1990-01-01' })
    })
  })

  describe('several records', () => {
    const savePeople = async (label: string) =>
      [await save(PERSON, { name: `${label} 1` }), await save(PERSON, { name: `${label} 2` })] as const

    test('updateMany changes all of them, with one write', async () => {
      const people = await savePeople('many')
      requests = []
      const ids = people.map(({ id }) => String(id))
      const { data } = await provider.updateMany(PERSON, {
        ids,
        data: { isActive: true, company: { id: null } },
      })
      expect(data).toEqual(ids)
      expect(requests.filter((each) => !each.startsWith('GET'))).toEqual(['POST /ws/batch'])
      for (const { id } of people)
        expect(await read(PERSON, id)).toMatchObject({ version: 1, isActive: true })
    })

    test('an empty list changes nothing, and a repeated id changes its record once', async () => {
      const [one] = await savePeople('repeated')
      expect(await provider.updateMany(PERSON, { ids: [], data: { name: 'x' } })).toEqual({ data: [] })
      expect(await provider.deleteMany(PERSON, { ids: [] })).toEqual({ data: [] })
      await provider.updateMany(PERSON, { ids: [one.id, one.id], data: { name: 'once' } })
      expect(await read(PERSON, one.id)).toMatchObject({ version: 1, name: 'once' })
      await provider.deleteMany(PERSON, { ids: [one.id, one.id] })
      expect((await fail(provider.getOne(PERSON, { id: one.id }))).status).toBe(404)
    })

    test('updateMany changes none if one does not exist, or is not at the version of meta', async () => {
      const people = await savePeople('none')
      const [{ id: one }, { id: two }] = people
      const missing = await fail(
        provider.updateMany(PERSON, { ids: [one, 999_999], data: { isActive: true } }),
      )
      expect(missing).toMatchObject({ status: 404 })
      await provider.update(PERSON, { id: two, data: { name: 'changed' }, previousData: people[1] })
      const meta = { versions: Object.fromEntries(people.map(({ id }) => [id, 0])) }
      const stale = await fail(provider.updateMany(PERSON, { ids: [one, two], data: { name: 'x' }, meta }))
      expect(stale).toMatchObject({ status: 409, body: { kind: 'conflict', theirs: { name: 'changed' } } })
      expect(await read(PERSON, one)).toMatchObject({ version: 0 })
    })

    test('delete removes a record that is still at its version', async () => {
      const [one] = await savePeople('delete')
      const { data: newer } = await provider.update<RaRecord>(PERSON, {
        id: one.id,
        data: { name: 'new' },
        previousData: one,
      })
      const error = await fail(provider.delete(PERSON, { id: one.id, previousData: one }))
      expect(error).toMatchObject({ status: 409, body: { kind: 'conflict', theirs: { name: 'new' } } })
      expect(await provider.delete(PERSON, { id: one.id, previousData: newer })).toEqual({ data: newer })
      expect(await fail(provider.getOne(PERSON, { id: one.id }))).toMatchObject({ status: 404 })
    })

    test('deleteMany removes all or none', async () => {
      const people = await savePeople('gone')
      const [{ id: one }, { id: two }] = people
      const meta = { versions: { [String(two)]: 5 } }
      expect(await fail(provider.deleteMany(PERSON, { ids: [one, two], meta }))).toMatchObject({
        status: 409,
      })
      expect(await read(PERSON, one)).toMatchObject({ version: 0 })
      const ids = people.map(({ id }) => String(id))
      expect(await provider.deleteMany(PERSON, { ids })).toEqual({ data: ids })
      expect((await provider.getMany(PERSON, { ids })).data).toEqual([])
    })
  })

  test('an unknown model rejects with status 404, a failed login with 401', async () => {
    expect(await fail(provider.getList('rel.Unknown', {}))).toMatchObject({
      status: 404,
      body: { kind: 'unknown-model' },
    })
    const stranger = createDataProvider(connect(service.url, { key: 'unknown' }))
    expect(await fail(stranger.getList(PERSON, {}))).toMatchObject({ status: 401 })
  })
})
