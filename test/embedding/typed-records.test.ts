// The records of an embedded service: typed by model, and by the name of the model.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createVerso, isConflict, type UserIdentity, type Verso, type VersoRecords } from 'verso-records'
import { forgetAuthor, ignoreUser, spliceFilter } from '../mutants/embedding.js'
import { catchError, newLocation, onEveryEngine, type DatabaseLocation } from '../targets.js'
import { Project, Task } from './models.js'

const PASSWORD = 'red kite over hills'
const MODELS = [Project, Task]

onEveryEngine((engine) => {
  let location: DatabaseLocation
  let verso: Verso
  let admin: UserIdentity
  let reader: UserIdentity
  let records: VersoRecords
  beforeAll(async () => {
    location = await newLocation(engine)
    verso = await createVerso({ db: location.url, models: MODELS })
    await verso.ensureFirstAdmin('admin', PASSWORD)
    await verso.addUser({ username: 'reader', password: PASSWORD, roles: ['reader'] })
    admin = await findUser(verso, 'admin')
    reader = await findUser(verso, 'reader')
    records = verso.records(admin)
  })
  afterAll(async () => {
    await verso.close()
    location.remove()
  })

  test('typed records do what the verbs do', async () => {
    const project = await records.of(Project).create({ name: 'Bridge' })
    const task = await records.of(Task).create({ title: 'Plan', cost: 12.5, project: { id: project.id } })
    expect(task).toMatchObject({ version: 0, title: 'Plan', state: 'open', cost: '12.50' })
    expect(task).toEqual(await records.read('embed.Task', task.id))
    expect(await records.of(Task).read(task.id)).toEqual(task)
    const updated = await records.of(Task).update(task.id, { version: 0, state: 'doing' })
    expect(updated).toMatchObject({ version: 1, state: 'doing', title: 'Plan' })
    expect(await catchError(records.of(Task).update(task.id, { version: 0, state: 'done' }))).toMatchObject({
      kind: 'conflict',
    })
    const history = await records.of(Task).history(task.id)
    expect(history).toEqual(await records.history('embed.Task', task.id))
    expect((await records.of(Task).history(task.id, { limit: 1 })).data).toHaveLength(1)
    expect(await records.of(Task).revert(task.id, { version: 1, to: 0 })).toMatchObject({ state: 'open' })
    expect(await catchError(records.of(Task).remove(task.id, { version: 1 }))).toMatchObject({
      kind: 'conflict',
    })
    await records.of(Task).remove(task.id)
    expect(await catchError(records.of(Task).read(task.id))).toMatchObject({ kind: 'not-found' })
    expect(await catchError(records.of(Task).create({ title: null as never }))).toMatchObject({
      kind: 'invalid',
    })
  })

  test('a model is found by its name as by its definition', async () => {
    const task = await records.of('embed.Task').create({ title: 'By name' })
    expect(await records.of(Task).read(task.id)).toEqual(task)
    expect(await catchError(records.of('embed.Nothing').find())).toMatchObject({ kind: 'unknown-model' })
    expect(() => records.of(undefined as never)).toThrow('of() takes a model that defineModel returned')
  })

  describe('find', () => {
    let bridge: number
    beforeAll(async () => {
      bridge = (await records.of(Project).create({ name: 'Tunnel' })).id
      for (const [title, cost] of [
        ['Dig', 5],
        ["Dig 'deep'", 7],
        ['Build', 9],
      ] as const)
        await records.of(Task).create({ title, cost, project: { id: bridge }, notes: title })
    })

    test('an object is a filter, with fields, an order and a limit', async () => {
      const filter = { project: bridge, cost: { '>': 5 } }
      const found = await records.of(Task).find({
        filter,
        fields: ['title', 'project.name'],
        sortBy: ['-cost'],
        limit: 1,
      })
      expect(found.total).toBe(2)
      expect(found.data).toEqual([
        expect.objectContaining({ title: 'Build', 'project.name': 'Tunnel', version: 0 }),
      ])
      const text = `self.project = ${bridge} and self.cost > 5`
      expect((await records.of(Task).find({ filter: text })).data).toEqual(
        (await records.of(Task).find({ filter })).data,
      )
      const either = await records
        .of(Task)
        .find({ filter: { or: [{ title: 'Dig' }, "self.title = 'Build'"] } })
      expect(either.data.map(({ title }) => title).sort()).toEqual(['Build', 'Dig'])
    })

    test('a value of a filter never changes its meaning, and a filter of spliced text is caught', async () => {
      const attack = { title: "' or self.title != '" }
      const safe = await records.of(Task).find({ filter: attack })
      expect(safe.total).toBe(0)
      expect((await records.of(Task).find({ filter: { title: "Dig 'deep'" } })).total).toBe(1)
      const mutant = spliceFilter(records, 'embed.Task')
      expect((await mutant({ title: 'Dig' })).total).toBe(1)
      expect((await mutant(attack)).total).toBeGreaterThan(0)
    })

    test.each([
      [{ filter: { title: undefined } }, /cannot compare self\.title with undefined/],
      [{ filter: { 'title) or (1': 1 } }, /is not a path of fields/],
      [{ filtre: {} }, /filtre/],
      [{ fields: ['titel'] }, /titel/],
      [{ sortBy: ['titel'] }, /titel/],
      [{ limit: -1 }, /limit must be a whole number/],
    ])('a wrong query is rejected: %j', async (query, message) => {
      const error = await catchError(records.of(Task).find(query as object))
      expect(error.kind).toBe('bad-request')
      expect(error.message).toMatch(message)
    })
  })

  test('the permissions of a user apply to both kinds of calls, and a mutant that ignores the user is caught', async () => {
    const own = verso.records(reader)
    const { id } = await records.of(Task).create({ title: 'Read only' })
    expect(await own.of(Task).read(id)).toMatchObject({ title: 'Read only' })
    for (const write of [
      (each: VersoRecords) => each.of(Task).create({ title: 'No' }),
      (each: VersoRecords) => each.create('embed.Task', { title: 'No' }),
      (each: VersoRecords) => each.transaction((inside) => inside.of(Task).create({ title: 'No' })),
    ]) {
      expect(await catchError(write(own))).toMatchObject({ kind: 'forbidden' })
      await expect(write(ignoreUser(verso)(reader))).resolves.toBeDefined()
    }
  })

  test('all permissions keep the author, and a mutant that forgets it is caught', async () => {
    const own = verso.records(reader)
    const typed = await own.asSystem().of(Task).create({ title: 'Mine' })
    const byName = await own.asSystem().create('embed.Task', { title: 'Mine' })
    for (const task of [typed, byName.data])
      expect(task).toMatchObject({ createdBy: { id: reader.id, name: 'reader' } })
    const forgotten = await forgetAuthor(own, verso).asSystem().of(Task).create({ title: 'Nobody' })
    expect(forgotten).toMatchObject({ title: 'Nobody', createdBy: null })
  })

  test('changed roles apply to the next call', async () => {
    const id = await verso.addUser({ username: 'changing', password: PASSWORD, roles: ['reader'] })
    const own = verso.records(await findUser(verso, 'changing'))
    expect(await catchError(own.of(Task).create({ title: 'Early' }))).toMatchObject({ kind: 'forbidden' })
    const { version } = await verso.system.read('verso.auth.User', id)
    const [editor] = (await verso.system.find('verso.auth.Role', { filter: "self.name = 'editor'" })).data
    await verso.system.update('verso.auth.User', id, { version, roles: [{ id: editor?.id }] })
    expect(await own.of(Task).create({ title: 'Later' })).toMatchObject({ createdBy: { id } })
  })

  test('a transaction writes everything or nothing', async () => {
    const both = await records.transaction(async (inside) => {
      const project = await inside.of(Project).create({ name: 'Both' })
      return inside.of(Task).create({ title: 'Both', project: { id: project.id } })
    })
    expect(both).toMatchObject({ title: 'Both', createdBy: { id: admin.id } })
    const failed = records.transaction(async (inside) => {
      await inside.of(Project).create({ name: 'Neither' })
      await inside.of(Task).create({ title: null as never })
    })
    expect(await catchError(failed)).toMatchObject({ kind: 'invalid' })
    expect((await records.of(Project).find({ filter: { name: 'Neither' } })).total).toBe(0)
  })

  test('the details of a conflict are typed', async () => {
    const task = await records.of(Task).create({ title: 'a' })
    await records.of(Task).update(task.id, { version: 0, title: 'b' })
    const error: unknown = await catchError(records.of(Task).update(task.id, { version: 0, title: 'c' }))
    if (!isConflict(error)) throw new Error('expected a conflict')
    const { current, theirs, mergeable, fields } = error.details.data
    expect([current, theirs['title'], mergeable, Object.keys(fields)]).toEqual([1, 'b', false, ['title']])
    for (const other of [undefined, new Error('x'), await catchError(records.of(Task).read(987_654))])
      expect(isConflict(other)).toBe(false)
  })

  test('calls with a transaction of their own are refused inside a transaction', async () => {
    const calls: readonly (() => Promise<unknown>)[] = [
      async () =>
        verso.addUser({ username: 'eve', password: 'red kite over hills', roles: ['administrator'] }),
      async () => verso.ensureFirstAdmin('eve', 'red kite over hills'),
      async () => verso.login({ username: 'eve', password: 'x' }),
      async () => verso.retryHooks(),
      async () => verso.system.find('embed.Task'),
    ]
    for (const call of calls)
      await expect(verso.system.transaction(async () => call())).rejects.toThrow(
        'must use the records that it gets',
      )
    expect(await verso.findUser('eve')).toBeUndefined()
  })

  test('two services on one database see each other, and never overwrite an edit', async () => {
    const other = await createVerso({ db: location.url, models: MODELS })
    const task = await records.of(Task).create({ title: 'Shared' })
    const theirs = other.records(admin).of(Task)
    expect(await theirs.update(task.id, { version: 0, state: 'doing' })).toMatchObject({ version: 1 })
    expect(await catchError(records.of(Task).update(task.id, { version: 0, state: 'done' }))).toMatchObject({
      kind: 'conflict',
    })
    await other.close()
    expect(await records.of(Task).read(task.id)).toMatchObject({ state: 'doing' })
  })

  test('sessions and keys name their user', async () => {
    const { sessionId, user } = await verso.login({ username: 'reader', password: PASSWORD })
    expect(user).toMatchObject({ id: reader.id })
    expect(await verso.authenticate(sessionId)).toMatchObject({ id: reader.id })
    await verso.logout(sessionId)
    expect(await verso.authenticate(sessionId)).toBeUndefined()
    expect(await verso.authenticate(undefined)).toBeUndefined()
    expect(await verso.authenticateKey('no key')).toBeUndefined()
    expect(await catchError(verso.login({ username: 'reader', password: 'wrong' }))).toMatchObject({
      kind: 'unauthenticated',
    })
    expect(await verso.findUser('nobody')).toBeUndefined()
    expect(await verso.ensureFirstAdmin('another', PASSWORD)).toBe(false)
    expect(() => verso.records(undefined as never)).toThrow('For all permissions, use verso.system')
  })
})

async function findUser(verso: Verso, username: string): Promise<UserIdentity> {
  const user = await verso.findUser(username)
  if (!user) throw new Error(`the user ${username} is missing`)
  return user
}
