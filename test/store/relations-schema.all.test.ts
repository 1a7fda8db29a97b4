import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { openDatabase } from '../../src/store/open.js'
import { describeStep as describeStep, type SchemaPlan } from '../../src/store/schema/plan.js'
import { applySchema, previewSchema } from '../../src/store/schema/apply.js'
import type { Records } from '../../src/wire.js'
import {
  enter,
  newLocation,
  onEveryEngine,
  catchError,
  startService,
  type DatabaseLocation,
} from '../targets.js'
import { faultsOf, text } from './lead-fixture.js'

const TASK = 'a.Task'
const toPerson = { type: 'many-to-one', target: 'a.Person' }
const toTeam = { type: 'many-to-one', target: 'a.Team' }
const people = { type: 'many-to-many', target: 'a.Person' }

/** A task with these fields, along with a person and a team. */
const sources = (fields: object, person: object = {}) =>
  [
    { name: TASK, fields: { title: text, ...fields } },
    { name: 'a.Person', fields: { name: text, ...person } },
    { name: 'a.Team', fields: { name: text } },
  ].map((definition) => ({ file: 'models.json', definition }))

onEveryEngine((engine) => {
  let location: DatabaseLocation
  beforeEach(async () => {
    location = await newLocation(engine)
  })
  afterEach(() => {
    location.remove()
  })

  const withModels = async <T>(
    fields: object,
    use: (records: Records) => Promise<T>,
    person?: object,
  ): Promise<T> => {
    const service = await startService(engine, { location, models: sources(fields, person) })
    try {
      return await use(await enter(service, 'direct'))
    } finally {
      await service.close()
    }
  }
  const plan = async (fields: object, drops: readonly string[] = [], apply = false): Promise<SchemaPlan> => {
    const db = await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 })
    try {
      return await (apply ? applySchema : previewSchema)(db, Catalog.from(sources(fields)), drops)
    } finally {
      await db.close()
    }
  }
  const stepsOf = ({ steps }: SchemaPlan) => steps.map(describeStep)
  /** Creates task 1 with persons 1 and 2 in a list of this name. */
  const linkTwo = (name: string) =>
    withModels({ [name]: people }, (records) =>
      records.create(TASK, { title: 'T', [name]: [{ name: 'P' }, { name: 'Q' }] }),
    )
  const read = (fields: object, person?: object) =>
    withModels(fields, (records) => records.read(TASK, 1), person)

  describe('growth of relations', () => {
    test('new relations of a model with records keep the versions of the records', async () => {
      await withModels({}, async (records) => {
        await records.create(TASK, { title: 'T' })
        await records.create('a.Person', { name: 'P' })
      })
      const fields = {
        owner: toPerson,
        helpers: people,
        parent: { type: 'many-to-one', target: TASK },
        parts: { type: 'one-to-many', target: TASK, mappedBy: 'parent', owned: true },
      }
      expect(stepsOf(await plan(fields)).toSorted()).toEqual([
        '+ a.Task.helpers: new table of links',
        '+ a.Task.owner: new column (many-to-one)',
        '+ a.Task.parent: new column (many-to-one)',
        '+ a.Task: index on owner',
        '+ a.Task: index on parent',
        '~ a.Task: its records are counted',
      ])
      const person = { tasks: { type: 'one-to-many', target: TASK, mappedBy: 'owner' } }
      await withModels(
        fields,
        async (records) => {
          const task = await records.read(TASK, 1)
          expect(task).toMatchObject({ version: 0, owner: null, helpers: [], parent: null, parts: [] })
          const sent = { version: 0, owner: { id: 1 }, helpers: [{ id: 1 }], parts: [{ title: 'Part' }] }
          const { data } = await records.update(TASK, 1, sent)
          expect(data).toMatchObject({
            owner: { id: 1, name: 'P' },
            helpers: [{ id: 1 }],
            parts: [{ id: 2 }],
          })
          const { tasks } = await records.fetch('a.Person', 1, { fields: ['tasks'] })
          expect(tasks).toMatchObject([{ id: 1 }])
        },
        person,
      )
      expect(stepsOf(await plan(fields))).toEqual([])
    })

    test('a renamed reference keeps its values and its history', async () => {
      await withModels({ owner: toPerson }, async (records) => {
        await records.create(TASK, { owner: { name: 'P' } })
        await records.update(TASK, 1, { version: 0, owner: { name: 'Q' } })
      })
      await withModels({ keeper: { ...toPerson, renamedFrom: 'owner' } }, async (records) => {
        expect(await records.read(TASK, 1)).toMatchObject({ keeper: { id: 2, name: 'Q' } })
        const stale = await catchError(records.update(TASK, 1, { version: 0, keeper: null }))
        expect(stale.details.data).toMatchObject({
          fields: { keeper: { base: { id: 1 }, theirs: { id: 2 } } },
        })
      })
    })

    test('a renamed many-to-many keeps its links and its history', async () => {
      await linkTwo('helpers')
      const friends = { friends: { ...people, renamedFrom: 'helpers' } }
      expect(stepsOf(await plan(friends))).toEqual(['~ a.Task.helpers: its links renamed to friends'])
      await withModels(friends, async (records) => {
        expect(await records.read(TASK, 1)).toMatchObject({ version: 0, friends: [{ id: 1 }, { id: 2 }] })
        await records.update(TASK, 1, { version: 0, friends: [{ id: 2 }] })
        await records.remove('a.Person', 2)
        const stale = await catchError(records.update(TASK, 1, { version: 0, friends: [] }))
        expect(stale.details.data).toMatchObject({
          fields: { friends: { base: [{ id: 1 }, { id: 2 }], theirs: [], verdict: 'same' } },
        })
      })
      expect(stepsOf(await plan(friends))).toEqual([])
      const again = { friends: people, helpers: people }
      expect(await read(again)).toMatchObject({ version: 2, friends: [], helpers: [] })
    })

    test('a renamed many-to-many may take the name of an empty one', async () => {
      await withModels({ helpers: people, friends: people }, (records) =>
        records.create(TASK, { helpers: [{ name: 'P' }] }),
      )
      await withModels({ helpers: people }, (records) => records.read(TASK, 1))
      const friends = { friends: { ...people, renamedFrom: 'helpers' } }
      expect(await read(friends)).toMatchObject({ friends: [{ id: 1 }] })
      expect(stepsOf(await plan(friends))).toEqual([])
    })

    test('a many-to-one becomes a one-to-one only if no two records hold the same reference', async () => {
      await withModels({ owner: toPerson }, async (records) => {
        await records.create(TASK, { owner: { name: 'P' } })
        await records.create(TASK, { owner: { id: 1 } })
      })
      const oneToOne = { owner: { type: 'one-to-one', target: 'a.Person' } }
      expect(await faultsOf(read(oneToOne))).toMatch(/a\.Task: owner cannot be unique/)
      await withModels({ owner: toPerson }, (records) => records.remove(TASK, 2))
      await withModels(oneToOne, async (records) => {
        expect(await records.read(TASK, 1)).toMatchObject({ owner: { id: 1, name: 'P' } })
        expect((await catchError(records.create(TASK, { owner: { id: 1 } }))).kind).toBe('not-unique')
      })
    })
  })

  describe('schema changes that would lose links or references', () => {
    test('a removed many-to-many with links stops the start, and is dropped if named', async () => {
      await linkTwo('helpers')
      const faults = await faultsOf(read({}))
      expect(faults).toMatch(/a\.Task\.helpers is no longer declared, but it has 2 links\./)
      expect(faults).toMatch(/write renamedFrom: "helpers" in the field/)
      expect(faults).toMatch(/verso schema --apply --drop a\.Task\.helpers/)
      expect(await read({ helpers: people })).toMatchObject({ helpers: [{ id: 1 }, { id: 2 }] })
      expect(stepsOf(await plan({}, ['a.Task.helpers'], true))).toEqual(['- a.Task.helpers: links dropped'])
      expect(await read({})).not.toHaveProperty('helpers')
      expect(await read({ helpers: people })).toMatchObject({ helpers: [] })
    })

    test('a removed many-to-many without links is noted, and can be declared again', async () => {
      await withModels({ helpers: people }, (records) => records.create(TASK, { title: 'T' }))
      for (let start = 0; start < 2; start++) {
        const { notes, errors } = await plan({}, [], true)
        expect({ notes, faults: errors }).toEqual({
          notes: ['a.Task.helpers is no longer declared; it has no links, and its table is kept'],
          faults: [],
        })
      }
      const back = await withModels({ helpers: people }, async (records) => {
        return (await records.update(TASK, 1, { version: 0, helpers: [{ name: 'P' }] })).data
      })
      expect(back).toMatchObject({ helpers: [{ name: 'P' }] })
    })

    test('a many-to-many with links cannot change its target', async () => {
      await linkTwo('helpers')
      const other = { helpers: { type: 'many-to-many', target: 'a.Team' } }
      const faults = await faultsOf(read(other))
      expect(faults).toMatch(/a\.Task\.helpers cannot refer to a\.Team, but it has 2 links/)
      await withModels({ helpers: people }, (records) => records.update(TASK, 1, { version: 0, helpers: [] }))
      const linked = await withModels(other, async (records) => {
        return (await records.update(TASK, 1, { version: 1, helpers: [{ name: 'Team' }] })).data
      })
      expect(linked).toMatchObject({ helpers: [{ id: 1, name: 'Team' }] })
    })

    test('a many-to-many to another target is emptied if named', async () => {
      await linkTwo('helpers')
      const other = { helpers: { type: 'many-to-many', target: 'a.Team' } }
      expect(stepsOf(await plan(other, ['a.Task.helpers'], true))).toEqual([
        '- a.Task.helpers: links dropped',
        '+ a.Task.helpers: new table of links',
      ])
      expect(await read(other)).toMatchObject({ helpers: [] })
    })

    test('a many-to-many with links cannot become an inverse relation or another type', async () => {
      await linkTwo('helpers')
      const person = { tasks: people, helped: { type: 'many-to-many', target: TASK } }
      const view = { helpers: { ...people, mappedBy: 'helped' } }
      expect(await faultsOf(read(view, person))).toMatch(
        /a\.Task\.helpers is no longer declared, but it has 2/,
      )
      expect(await faultsOf(read({ helpers: text }))).toMatch(/a\.Task\.helpers is no longer declared/)
      expect(await faultsOf(read({ helpers: toPerson }))).toMatch(/a\.Task\.helpers is no longer declared/)
      expect(await read({ helpers: people })).toMatchObject({ helpers: [{ id: 1 }, { id: 2 }] })
    })

    test('a many-to-many whose name differs from a stored one only in case stops the start', async () => {
      await withModels({ helpers: people }, (records) => records.create(TASK, { title: 'T' }))
      for (const Helpers of [people, { ...people, renamedFrom: 'helpers' }]) {
        const faults = await faultsOf(read({ Helpers }))
        expect(faults).toBe(
          'a.Task.Helpers: links with the name "helpers" already exist: use that name, or a third name with renamedFrom: "helpers"',
        )
      }
      expect(await read({ assistants: { ...people, renamedFrom: 'helpers' } })).toMatchObject({
        assistants: [],
      })
      expect(await read({ Helpers: { ...people, renamedFrom: 'assistants' } })).toMatchObject({ Helpers: [] })
    })

    test('a reference with values cannot change its target, unless it is dropped by name', async () => {
      await withModels({ owner: toPerson }, (records) => records.create(TASK, { owner: { name: 'P' } }))
      const faults = await faultsOf(read({ owner: toTeam }))
      expect(faults).toMatch(/a\.Task\.owner cannot become many-to-one/)
      expect(faults).toMatch(/verso schema --apply --drop a\.Task\.owner/)
      expect(await read({ owner: toPerson })).toMatchObject({ owner: { id: 1, name: 'P' } })
      await plan({ owner: toTeam }, ['a.Task.owner'], true)
      expect(await read({ owner: toTeam })).toMatchObject({ owner: null })
    })

    test('a reference without values may change its target', async () => {
      await withModels({ owner: toPerson }, (records) => records.create(TASK, { title: 'T' }))
      const changed = await withModels({ owner: toTeam }, async (records) => {
        return (await records.update(TASK, 1, { version: 0, owner: { name: 'Team' } })).data
      })
      expect(changed).toMatchObject({ owner: { id: 1, name: 'Team' } })
    })

    test('a number with values cannot become a reference, nor a reference a number', async () => {
      const number = { owner: { type: 'integer' } }
      await withModels(number, (records) => records.create(TASK, { owner: 1 }))
      expect(await faultsOf(read({ owner: toPerson }))).toMatch(/a\.Task\.owner cannot become many-to-one/)
      expect(await read(number)).toMatchObject({ owner: 1 })
      await withModels(number, (records) => records.update(TASK, 1, { version: 0, owner: null }))
      await withModels({ owner: toPerson }, (records) =>
        records.update(TASK, 1, { version: 1, owner: { name: 'P' } }),
      )
      expect(await faultsOf(read({ owner: { type: 'long' } }))).toMatch(/a\.Task\.owner cannot become long/)
    })

    test('a removed reference with values stops the start', async () => {
      await withModels({ owner: toPerson }, (records) => records.create(TASK, { owner: { name: 'P' } }))
      const faults = await faultsOf(read({}))
      expect(faults).toMatch(/a\.Task\.owner is no longer declared, but 1 record has a value in it/)
    })
  })
})
