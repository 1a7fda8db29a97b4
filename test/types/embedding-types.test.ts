// The types of an embedded service. The compiler checks this file: each line after `@ts-expect-error` must be an error.
import { describe, expect, expectTypeOf, test } from 'vitest'
import {
  createTestVerso,
  defineHooks,
  defineModel,
  type AnyRecord,
  type Reference,
  type UserReference,
  type VersoRecords,
} from 'verso-records'

const Project = defineModel({ name: 'types.Project', fields: { name: { type: 'string', required: true } } })

const Task = defineModel({
  name: 'types.Task',
  fields: {
    title: { type: 'string', required: true },
    state: { type: 'enum', selection: ['open', 'done'], required: true, default: 'open' },
    cost: { type: 'decimal' },
    due: { type: 'datetime' },
    project: { type: 'many-to-one', target: 'types.Project' },
    notes: { type: 'text' },
    double: { type: 'integer', computed: () => 2 },
  },
  hooks: {
    beforeSave: ({ after, before, changed }) => {
      expectTypeOf(after.state).toEqualTypeOf<'open' | 'done' | null>()
      expectTypeOf(after.project).toEqualTypeOf<{ readonly id: number } | null>()
      expectTypeOf(before?.title).toEqualTypeOf<string | null | undefined>()
      expectTypeOf(changed.has('title')).toEqualTypeOf<boolean>()
      return { state: 'open' }
    },
    validate: ({ after }) => (after.title === 'x' ? { title: 'must be longer' } : undefined),
    afterCommit: {
      notify: async ({ after, records }) => {
        expectTypeOf(after?.notes).toEqualTypeOf<string | null | undefined>()
        await records.of('types.Task').find()
      },
    },
  },
})

const rules = defineHooks(Task, {
  beforeSave: ({ after }) => ({ notes: after.title }),
  afterSave: async ({ records, id }) => {
    expectTypeOf(id).toEqualTypeOf<number>()
    const locked = await records.of(Task).lock(id)
    expectTypeOf(locked.title).toEqualTypeOf<string>()
  },
})

/** Never runs. The compiler checks it. */
async function checkRecords(records: VersoRecords): Promise<void> {
  const tasks = records.of(Task)
  const task = await tasks.create({ title: 'a', cost: 12.5, project: { id: 1 }, due: null })
  expectTypeOf(task.title).toEqualTypeOf<string>()
  expectTypeOf(task.state).toEqualTypeOf<'open' | 'done'>()
  expectTypeOf(task.cost).toEqualTypeOf<string | null>()
  expectTypeOf(task.project).toEqualTypeOf<Reference | null>()
  expectTypeOf(task.createdBy).toEqualTypeOf<UserReference | null>()
  expectTypeOf(await tasks.read(1)).toEqualTypeOf(task)
  expectTypeOf(await tasks.update(1, { version: 0, notes: null })).toEqualTypeOf(task)

  // @ts-expect-error: the required title is missing
  await tasks.create({ notes: 'a' })
  // @ts-expect-error: the state has other values
  await tasks.create({ title: 'a', state: 'opne' })
  // @ts-expect-error: the model has no such field
  await tasks.create({ title: 'a', titel: 'b' })
  // @ts-expect-error: the service computes the field
  await tasks.create({ title: 'a', double: 4 })
  // @ts-expect-error: an update names its version
  await tasks.update(1, { title: 'a' })
  // @ts-expect-error: a required field is never null
  await tasks.update(1, { version: 0, title: null })
  // @ts-expect-error: the model has no such field
  expect(task.titel).toBeUndefined()

  await checkTransaction(records)
}

async function checkFind(records: VersoRecords): Promise<void> {
  const tasks = records.of(Task)
  const [listed] = (await tasks.find()).data
  expectTypeOf(listed?.title).toEqualTypeOf<string | undefined>()
  // @ts-expect-error: a text is not among the list fields
  expect(listed?.notes).toBeUndefined()

  const found = await tasks.find({
    filter: { state: ['open', null], cost: { '>': 5 }, project: 1, 'project.name': 'x', id: [1, 2] },
    fields: ['notes', 'project.name', 'createdOn'],
    sortBy: ['-due'],
  })
  const [first] = found.data
  expectTypeOf(first?.notes).toEqualTypeOf<string | null | undefined>()
  expectTypeOf(first?.createdOn).toEqualTypeOf<string | undefined>()
  expectTypeOf(first?.['project.name']).toEqualTypeOf<unknown>()
  expectTypeOf(first?.version).toEqualTypeOf<number | undefined>()
  // @ts-expect-error: the field was not selected
  expect(first?.title).toBeUndefined()

  await tasks.find({ filter: { or: [{ title: 'a' }, "self.title = 'b'"], not: { due: new Date() } } })
  // @ts-expect-error: the model has no such field
  await tasks.find({ fields: ['titel'] })
  // @ts-expect-error: the model has no such field
  await tasks.find({ filter: { titel: 'a' } })
  // @ts-expect-error: the state has other values
  await tasks.find({ filter: { state: 'opne' } })
  // @ts-expect-error: there is no such operator
  await tasks.find({ filter: { cost: { '=>': 5 } } })
  // @ts-expect-error: there is no such parameter
  await tasks.find({ where: 'a' })
}

async function checkTransaction(records: VersoRecords): Promise<void> {
  const title = await records.transaction(async (inside) => {
    const locked = await inside.of(Task).lock(1)
    // @ts-expect-error: a transaction reads no history
    expect(inside.of(Task).history).toBeUndefined()
    return locked.title
  })
  expectTypeOf(title).toEqualTypeOf<string>()
  expectTypeOf(records.asSystem()).toEqualTypeOf<VersoRecords>()
}

async function checkUntyped(records: VersoRecords): Promise<void> {
  const tasks = records.of('types.Task')
  expectTypeOf(await tasks.read(1)).toEqualTypeOf<AnyRecord>()
  expectTypeOf((await tasks.find({ filter: { anything: 1 }, fields: ['any.path'] })).data).toEqualTypeOf<
    readonly AnyRecord[]
  >()
  await tasks.create({ anything: 1 })
  // @ts-expect-error: an update names its version
  await tasks.update(1, { anything: 1 })
}

describe('hooks', () => {
  test('are checked with the fields of their model', () => {
    // @ts-expect-error: the model has no such field
    defineHooks(Task, { beforeSave: () => ({ titel: 'a' }) })
    // @ts-expect-error: the state has other values
    defineHooks(Task, { beforeSave: () => ({ state: 'opne' }) })
    // @ts-expect-error: the model has no such field
    defineHooks(Task, { validate: () => ({ titel: 'is wrong' }) })
    // @ts-expect-error: there is no such hook
    defineHooks(Task, { beforeSve: () => undefined })
    // @ts-expect-error: the model has no such field
    defineHooks(Task, { afterSave: ({ changed }) => void changed.has('titel') })
    // @ts-expect-error: the state has other values
    defineHooks(Task, { beforeSave: ({ after }) => (after.state === 'opne' ? { notes: 'a' } : undefined) })
    defineModel({
      name: 'types.Wrong',
      fields: { a: { type: 'string' } },
      // @ts-expect-error: a message is a text
      hooks: { validate: () => ({ a: 5 }) },
    })
    expect(rules.name).toBe('types.Task')
  })
})

test('the models of the types are the models of a service', async () => {
  await using verso = await createTestVerso({ models: [Project, Task], hooks: [rules] })
  const task = await verso.my.of(Task).create({ title: 'a' })
  expect(task).toMatchObject({ notes: 'a', state: 'open', double: 2 })
  expect([checkRecords, checkFind, checkTransaction, checkUntyped]).toHaveLength(4)
  // @ts-expect-error: there is no such option
  await expect(createTestVerso({ models: [Project], hook: [] })).rejects.toThrow('did you mean "hooks"')
  // @ts-expect-error: an extension comes from extendModel
  await expect(createTestVerso({ models: [{ name: 'types.Task' }] })).rejects.toThrow('types.Task')
})
