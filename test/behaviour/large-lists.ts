// Documents whose pages and tags have names that exceed the answer limit, with the calls that read and write them.
import { expect } from 'vitest'
import type { ModelSource } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { buildGrant, type Permission } from '../../src/model/access/permission-record.js'
import { Permissions } from '../../src/model/access/permissions.js'
import type { App } from '../../src/service/context/app.js'
import type { Principal } from '../../src/service/context/principal.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { catchError } from '../targets.js'

const Doc = defineModel({
  name: 'big.Doc',
  fields: {
    title: { type: 'string' },
    pages: { type: 'one-to-many', target: 'big.Page', mappedBy: 'doc', owned: true },
    tags: { type: 'many-to-many', target: 'big.Tag' },
  },
  listFields: ['title'],
})
const Page = defineModel({
  name: 'big.Page',
  fields: {
    doc: { type: 'many-to-one', target: 'big.Doc' },
    text: { type: 'text' },
    done: { type: 'boolean' },
    tag: { type: 'many-to-one', target: 'big.Tag' },
  },
  nameField: 'text',
})
const Tag = defineModel({ name: 'big.Tag', fields: { label: { type: 'text' } }, nameField: 'label' })
export const models: readonly ModelSource[] = [Doc, Page, Tag].map((definition) => ({
  file: `${definition.name}.ts`,
  definition,
}))

export const LIMIT = 64 * 1024
export const NAME = 'p'.repeat(4_000)
const MEMBERS = 20
/** Less than five names, and more than a write needs. */
export const MOST_READ = 16_000

export interface Owner {
  id: number
  version: number
  readonly pages: readonly number[]
  readonly tags: readonly number[]
}

/** Creates a document with `members` pages and as many tags. */
export async function makeOwner(records: Records, members = MEMBERS): Promise<Owner> {
  const pages = Array.from({ length: members }, () => ({ text: NAME }))
  const tags = Array.from({ length: members }, () => ({ label: NAME }))
  const { id } = (await records.create('big.Doc', { title: 'first', pages, tags })).data
  const idsOf = async (filter: string, model: string) =>
    (await records.find(model, { fields: 'id', filter, limit: 100 })).data.map((each) => each.id)
  const of = { pages: `doc = ${id}`, tags: `id > ${await firstTag(records, members)}` }
  return {
    ...{ id, version: 0 },
    pages: await idsOf(of.pages, 'big.Page'),
    tags: await idsOf(of.tags, 'big.Tag'),
  }
}

/** The id before the owner's tags, which are the latest ones. */
async function firstTag(records: Records, members: number): Promise<number> {
  const { data } = await records.find('big.Tag', { fields: 'id', sortBy: '-id', limit: members })
  return (data.at(-1)?.id ?? 0) - 1
}

export type Call = readonly [name: string, call: (owner: Owner, by: Records) => Promise<unknown>]

/** Writes, each with a check of its answer. */
export const WRITES: readonly Call[] = [
  [
    'an update',
    async ({ id, version }, by) => {
      const { data } = await by.update('big.Doc', id, { version, title: 'second' })
      expect(data).toEqual({ id, version: version + 1 })
    },
  ],
  [
    'an update of a list',
    async ({ id, version, pages, tags }, by) => {
      const [, ...rest] = tags
      const sent = {
        version,
        pages: pages.map((page) => ({ id: page })),
        tags: rest.map((tag) => ({ id: tag })),
      }
      expect((await by.update('big.Doc', id, sent)).data).toEqual({ id, version: version + 1 })
    },
  ],
  [
    'an update that requests fields',
    async ({ id, version }, by) => {
      const options = { returning: { fields: ['title', 'pages'] } }
      const { data } = await by.update('big.Doc', id, { version, title: 'second' }, options)
      expect(data).toEqual({ id, version: version + 1 })
    },
  ],
  [
    'a save of several',
    async ({ id, version }, by) => {
      const { data } = await by.save('big.Doc', [{ id, version, title: 'second' }, { title: 'other' }])
      expect(data).toEqual([
        { id, version: version + 1 },
        { id: data[1]?.id, version: 0 },
      ])
    },
  ],
  [
    'a batch that creates and updates an owner',
    async ({ tags }, by) => {
      const { data } = await by.batch([
        { op: 'create', model: 'big.Doc', ref: 'a', data: { tags: tags.map((id) => ({ id })) } },
        { op: 'update', model: 'big.Doc', id: { $ref: 'a' }, data: { version: 0, title: 'second' } },
      ])
      const [made, changed] = data as readonly WireRecord[]
      expect([made, changed]).toEqual([
        { id: made?.id, version: 0 },
        { id: made?.id, version: 1 },
      ])
    },
  ],
  [
    'a mass update',
    async ({ id }, by) => {
      const criteria = [{ fieldName: 'id', operator: '=', value: id }]
      expect((await by.updateMass('big.Doc', { data: { criteria }, values: { title: 'x' } })).data).toBe(1)
    },
  ],
  [
    'a create of a member',
    async ({ id }, by) => {
      const { data } = await by.create('big.Page', { doc: { id }, text: 'short' })
      expect(data['text']).toBe('short')
    },
  ],
  [
    'a delete of a member',
    async ({ pages: [page = 0] }, by) => {
      expect((await by.remove('big.Page', page)).data).toBe(page)
    },
  ],
  [
    'a revert',
    async ({ id, version }, by) => {
      await by.update('big.Doc', id, { version, title: 'second' })
      const { data } = await by.revert('big.Doc', id, { version: version + 1, to: version })
      expect(data).toEqual({ id, version: version + 2 })
    },
  ],
  [
    'a conflict',
    async ({ id, version }, by) => {
      const asked = by.update('big.Doc', id, { version: version + 1, title: 'mine' })
      const error = await catchError(asked)
      expect([error.kind, error.details.data]).toMatchObject([
        'conflict',
        {
          ...{ entityId: id, expected: version + 1, current: version, isShortened: true },
          ...{ theirs: { id, version }, fields: { title: { verdict: expect.any(String) as string } } },
        },
      ])
    },
  ],
  [
    'a delete with a wrong version',
    async ({ id, version }, by) => {
      const error = await catchError(by.remove('big.Doc', id, { version: version + 1 }))
      expect([error.kind, error.details.data]).toMatchObject([
        'conflict',
        { theirs: { id, version }, isShortened: true },
      ])
    },
  ],
]

/** Reads that the service rejects before it reads the names. */
export const READS: readonly Call[] = [
  ['a copy', ({ id }, by) => by.copy('big.Doc', id)],
  ['a read at a version', ({ id, version }, by) => by.readAt('big.Doc', id, version)],
  ['a read with asOf', ({ id }, by) => by.readAt('big.Doc', id, soon())],
  [
    'a list with asOf',
    async ({ id, version }, by) => {
      const asOf = new Date().toISOString()
      await by.update('big.Doc', id, { version, title: 'later' })
      return by.find('big.Doc', { fields: 'pages', filter: `id = ${id}`, asOf })
    },
  ],
]

function soon(): string {
  return new Date(Date.now() + 1_000).toISOString()
}

/** Gives the account permissions with a condition on every record. */
export function asEditor({ catalog }: App, admin: Principal): Principal {
  const permissions = new Permissions(catalog, (model) => {
    const permission: Permission = {
      ...{ model: model.name, actions: new Set(['read', 'create', 'update', 'remove']), condition: 'id > 0' },
      ...{ readable: null, writable: null },
    }
    return [buildGrant(catalog, model, permission, {})].flatMap((grant) => grant ?? [])
  })
  return { ...admin, permissions }
}
