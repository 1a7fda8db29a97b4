// A model that owns records of its own kind; owners and members that are written concurrently.
import { describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { models } from '../models.js'
import { onEveryTarget, catchError } from '../targets.js'
import { idsOf, inShort, referenceOf, useRelatedService } from './related-service.js'

const Node = defineModel({
  name: 'rel.Node',
  fields: {
    name: { type: 'string' },
    parent: { type: 'many-to-one', target: 'rel.Node' },
    children: { type: 'one-to-many', target: 'rel.Node', mappedBy: 'parent', owned: true },
    after: { type: 'many-to-one', target: 'rel.Node' },
  },
})
const NODE = Node.name

onEveryTarget((engine, transport) => {
  const { service, records, make, change, read, changesOf, expectRolledBack } = useRelatedService(
    engine,
    transport,
    {
      models: [...models, { file: 'node.ts', definition: Node }],
    },
  )

  test('a tree is created in one request and deleted in one request', async () => {
    const leaf = (name: string) => ({ name })
    const root = await make(NODE, {
      name: 'root',
      children: [{ name: 'a', children: [leaf('b'), leaf('c')] }, leaf('d')],
    })
    const [a = { id: 0 }, d = { id: 0 }] = idsOf(root, 'children')
    const [b = { id: 0 }, c = { id: 0 }] = idsOf(await read(NODE, a.id), 'children')
    const changes = await changesOf(() => records().remove(NODE, root.id))
    expect(inShort(changes)).toEqual([root, a, b, c, d].map(({ id }) => `${NODE} ${id} delete 1`))
    expect(changes.map(({ changes: { parent } }) => parent?.before)).toEqual([
      undefined,
      { id: root.id },
      a,
      a,
      { id: root.id },
    ])
  })

  test('the change log contains the references between members that are deleted together', async () => {
    const root = await make(NODE, { children: [{ name: 'a' }, { name: 'b' }] })
    const [a = { id: 0 }, b = { id: 0 }] = idsOf(root, 'children')
    await change(NODE, b.id, { version: 0, after: a })
    const changes = await changesOf(() => records().remove(NODE, root.id))
    expect(changes.find(({ id }) => id === b.id)?.changes).toMatchObject({
      after: { before: a, after: null },
    })
  })

  test('records that own each other are deleted together', async () => {
    const a = await make(NODE, { name: 'a' })
    const b = await make(NODE, { name: 'b', parent: { id: a.id } })
    await change(NODE, a.id, { version: 1, parent: { id: b.id } })
    const changes = await changesOf(() => records().remove(NODE, a.id))
    expect(inShort(changes).toSorted()).toEqual(
      [`${NODE} ${a.id} delete 3`, `${NODE} ${b.id} delete 2`].toSorted(),
    )
  })

  test('a record that is its own member gets one version per update and one delete', async () => {
    const node = await make(NODE, { name: 'own' })
    const changed = await change(NODE, node.id, { version: 0, parent: { id: node.id } })
    expect(changed).toMatchObject({ version: 1, children: [{ id: node.id, $version: 1 }] })
    const list = { version: 1, children: [{ id: node.id }] }
    expect(await change(NODE, node.id, list)).toMatchObject({ version: 2 })
    const other = await make(NODE, { name: 'other' })
    const error = await expectRolledBack(() =>
      change(NODE, other.id, { version: 0, children: [{ id: other.id }] }),
    )
    expect(error.details.errors).toEqual({
      'children[0]': `changes ${NODE} ${other.id}, which this request already changes in another place`,
    })
    const changes = await changesOf(() => records().remove(NODE, node.id))
    expect(inShort(changes)).toEqual([`${NODE} ${node.id} delete 3`])
  })

  test('a moved branch changes its root and both owners, once each', async () => {
    const from = await make(NODE, {
      name: 'from',
      children: [{ name: 'moved', children: [{ name: 'leaf' }] }],
    })
    const to = await make(NODE, { name: 'to' })
    const [moved = { id: 0 }] = idsOf(from, 'children')
    const changes = await changesOf(() => change(NODE, moved.id, { version: 0, parent: { id: to.id } }))
    expect(inShort(changes).toSorted()).toEqual(
      [from, to, moved].map(({ id }) => `${NODE} ${id} update 1`).toSorted(),
    )
    expect(referenceOf(await read(NODE, moved.id), 'parent').id).toBe(to.id)
    await records().remove(NODE, from.id)
    expect(idsOf(await read(NODE, moved.id), 'children')).toHaveLength(1)
  })

  test('an owner deleted while members are created leaves no orphan', async () => {
    const races = [1, 2, 3, 4, 5].map(async () => {
      const company = await make('rel.Company', { name: 'Raced', addresses: [{ city: 'A' }] })
      const results = await Promise.allSettled([
        make('rel.Address', { city: 'B', company: { id: company.id } }),
        records().remove('rel.Company', company.id),
        make('rel.Address', { city: 'C', company: { id: company.id } }),
      ])
      expect(results[1].status).toBe('fulfilled')
      expect((await catchError(read('rel.Company', company.id))).kind).toBe('not-found')
      for (const index of [0, 2] as const) {
        const result = results[index]
        if (result.status === 'rejected') expect(result.reason).toMatchObject({ kind: 'invalid' })
      }
    })
    await Promise.all(races)
    const orphans = await service().app.db.reader.all(
      `select "id" from "rel.Address" where "company" not in (select "id" from "rel.Company")`,
    )
    expect(orphans).toEqual([])
  })

  test('a record deleted while it is being linked leaves no link', async () => {
    const races = [1, 2, 3, 4, 5].map(async () => {
      const circle = await make('rel.Circle', { name: 'Raced' })
      const person = await make('rel.Person', { circles: [] })
      const [linked, removed] = await Promise.allSettled([
        change('rel.Person', person.id, { version: 0, circles: [{ id: circle.id }] }),
        records().remove('rel.Circle', circle.id),
      ])
      expect(removed.status).toBe('fulfilled')
      const now = await read('rel.Person', person.id)
      expect(now).toMatchObject({ version: linked.status === 'fulfilled' ? 2 : 0, circles: [] })
    })
    await Promise.all(races)
    const stray = await service().app.db.reader.all(
      `select "owner" from "rel.Person:circles" where "member" not in (select "id" from "rel.Circle")`,
    )
    expect(stray).toEqual([])
  })
})

// Random races do not reach this: a link is created between the lookup of the owners and the delete.
describe('a delete on postgres during the creation of a link', () => {
  const { service, records, make, read, changesOf } = useRelatedService('postgres', 'direct')

  test('a delete waits for a concurrent link and increments the version of its new owner', async () => {
    const { id } = await make('rel.Circle', { name: 'Awaited' })
    const person = await make('rel.Person', { circles: [] })
    const { db } = service().app
    const [isLinked, release] = [gate(), gate()]
    const linking = db.transaction(async (tx) => {
      await tx.all('select 1 from "rel.Circle" where "id" = ? for key share', [id])
      await tx.run('insert into "rel.Person:circles" ("owner", "member") values (?, ?)', [person.id, id])
      isLinked.open()
      await release.opened
    })
    await isLinked.opened
    const changes = await changesOf(async () => {
      const removing = records().remove('rel.Circle', id)
      const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      while ((await db.reader.all(waiting)).length === 0);
      release.open()
      await Promise.all([linking, removing])
    })
    expect(inShort(changes)).toEqual([`rel.Person ${person.id} update 1`, `rel.Circle ${id} delete 1`])
    expect(changes[0]?.changes).toEqual({ circles: { before: [{ id }], after: [] } })
    expect(await read('rel.Person', person.id)).toMatchObject({ version: 1, circles: [] })
  })
})

interface Gate {
  readonly opened: Promise<unknown>
  open(): void
}

function gate(): Gate {
  const opening = new EventTarget()
  const opened = new Promise((resolve) => {
    opening.addEventListener('open', resolve, { once: true })
  })
  return { opened, open: () => opening.dispatchEvent(new Event('open')) }
}
