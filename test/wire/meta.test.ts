// Metadata: the models, and the attributes of each field that a form needs.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { models } from '../models.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { asUser, json, openSession, type User } from './exchange.js'

const Form = defineModel({
  name: 'test.Form',
  title: 'A form',
  fields: {
    label: {
      type: 'string',
      title: 'Label',
      help: 'What it is called',
      required: true,
      length: { min: 2, max: 9 },
    },
    note: { type: 'text' },
    count: { type: 'integer', min: 0, max: 9, default: 0 },
    big: { type: 'long', min: -1, max: 0 },
    price: { type: 'decimal', precision: 9, scale: 2, min: '0', max: '10.5', default: '0' },
    open: { type: 'boolean', default: false },
    day: { type: 'date', min: '2000-01-01', default: 'now' },
    at: { type: 'time', default: '12:00' },
    moment: { type: 'datetime', default: 'now' },
    word: { type: 'string', default: 'now' },
    token: { type: 'uuid', unique: true },
    state: { type: 'enum', selection: ['a', { value: 'b', title: 'Bee' }], default: 'a' },
    level: { type: 'integer', selection: [1, 2] },
    extra: { type: 'json', default: {} },
    file: { type: 'binary' },
    hidden: { type: 'string', secret: true, default: 'the default of a secret' },
    password: { type: 'string', secret: 'password' },
    shown: { type: 'string', computed: '{label}!' },
    number: { type: 'string', sequence: { prefix: 'F' } },
    company: { type: 'many-to-one', target: 'rel.Company', required: true },
    keeper: { type: 'many-to-one', target: 'verso.auth.User' },
  },
  nameField: 'shown',
})

interface Described {
  readonly name: string
  readonly [attribute: string]: unknown
}

onEveryEngine((engine) => {
  let service: Service
  let user: User
  beforeAll(async () => {
    service = await startService(engine, { models: [...models, { file: 'form.ts', definition: Form }] })
    user = asUser(service.url, await openSession(service.url))
  })
  afterAll(() => service.close())

  const describe = async (model: string) => {
    const answer = await user.get(`/ws/meta/fields/${model}`)
    expect(answer.status, answer.text).toBe(200)
    const { data } = json(answer) as { data: { fields: Described[] } & Record<string, unknown> }
    const fields = Object.fromEntries(data.fields.map(({ name, ...rest }) => [name, rest]))
    return { data, fields, text: answer.text }
  }

  test('/ws/meta/models lists all models, sorted', async () => {
    const body = json(await user.get('/ws/meta/models')) as { data: string[] }
    const names = [...models.map(({ definition }) => (definition as { name: string }).name), Form.name]
    const auth = ['User', 'Role', 'Permission', 'ApiKey', 'Event'].map((name) => `verso.auth.${name}`)
    const own = [...auth, 'verso.feed.Webhook', 'com.axelor.meta.db.MetaFile', 'com.axelor.meta.db.MetaModel']
    const data = [...names, ...own].sort()
    expect(body).toEqual({ status: 0, total: data.length, data })
  })

  test('/ws/meta/fields describes every type of field, with its relevant attributes only', async () => {
    const { data, fields, text } = await describe(Form.name)
    expect(data).toMatchObject({ model: Form.name, title: 'A form', jsonFields: {}, perms: null })
    const listed = ['note', 'extra', 'file', 'hidden', 'password', 'id', 'version']
    expect(data['listFields']).toEqual(
      data.fields
        .map(({ name }) => name)
        .filter((name) => !listed.includes(name) && !/^(cre|upd)ated/.test(name)),
    )
    expect(fields).toMatchObject({ createdOn: { type: 'DATETIME', readonly: true } })
    const kept = ['createdOn', 'createdBy', 'updatedOn', 'updatedBy']
    const own = Object.entries(fields).filter(([name]) => !kept.includes(name))
    expect(Object.fromEntries(own)).toEqual({
      id: { type: 'LONG', title: 'Id', readonly: true, primary: true },
      version: { type: 'LONG', title: 'Version', readonly: true },
      label: {
        ...{ type: 'STRING', title: 'Label', help: 'What it is called', required: true },
        ...{ minSize: 2, maxSize: 9 },
      },
      note: { type: 'TEXT', title: 'Note', maxSize: expect.any(Number) },
      count: { type: 'INTEGER', title: 'Count', minSize: 0, maxSize: 9, defaultValue: 0 },
      big: { type: 'LONG', title: 'Big', minSize: -1, maxSize: 0 },
      price: {
        ...{ type: 'DECIMAL', title: 'Price', precision: 9, scale: 2 },
        ...{ minSize: '0.00', maxSize: '10.50', defaultValue: '0.00' },
      },
      open: { type: 'BOOLEAN', title: 'Open', defaultValue: false },
      day: { type: 'DATE', title: 'Day', minSize: '2000-01-01', defaultNow: true },
      at: { type: 'TIME', title: 'At', defaultValue: '12:00:00' },
      moment: { type: 'DATETIME', title: 'Moment', defaultNow: true },
      word: { type: 'STRING', title: 'Word', maxSize: 255, defaultValue: 'now' },
      token: { type: 'UUID', title: 'Token', unique: true },
      state: {
        ...{ type: 'ENUM', title: 'State', defaultValue: 'a' },
        selectionList: [
          { value: 'a', title: 'a', order: 0 },
          { value: 'b', title: 'Bee', order: 1 },
        ],
      },
      level: {
        ...{ type: 'INTEGER', title: 'Level' },
        selectionList: [
          { value: '1', title: '1', order: 0 },
          { value: '2', title: '2', order: 1 },
        ],
      },
      extra: { type: 'TEXT', title: 'Extra', json: true, defaultValue: {} },
      file: { type: 'BINARY', title: 'File' },
      hidden: { type: 'STRING', title: 'Hidden', maxSize: 255, password: true, hidden: true },
      password: { type: 'STRING', title: 'Password', maxSize: 255, password: true, hidden: true },
      shown: {
        ...{
          type: 'STRING',
          title: 'Shown',
          maxSize: expect.any(Number),
          readonly: true,
          virtual: true,
          nameColumn: true,
        },
      },
      number: {
        type: 'STRING',
        title: 'Number',
        maxSize: expect.any(Number),
        readonly: true,
        unique: true,
        sequence: true,
      },
      company: {
        type: 'MANY_TO_ONE',
        title: 'Company',
        target: 'rel.Company',
        targetName: 'name',
        required: true,
      },
      keeper: { type: 'MANY_TO_ONE', title: 'Keeper', target: 'verso.auth.User', targetName: 'name' },
    })
    expect(text).not.toContain('the default of a secret')
  })

  test('/ws/meta/fields describes the target and the owning side of relations', async () => {
    const { fields } = await describe('rel.Company')
    expect(fields['addresses']).toEqual({
      ...{ type: 'ONE_TO_MANY', title: 'Addresses' },
      ...{ target: 'rel.Address', targetName: 'city', mappedBy: 'company' },
    })
    expect(fields['people']).toMatchObject({ type: 'ONE_TO_MANY', view: true, readonly: true })
    const { fields: person } = await describe('rel.Person')
    expect(person['circles']).toMatchObject({ type: 'MANY_TO_MANY', target: 'rel.Circle' })
    expect(person['badge']).toMatchObject({ type: 'ONE_TO_ONE', mappedBy: 'holder', readonly: true })
  })

  test('every field of a model that only the service writes is read-only', async () => {
    const { data } = await describe('com.axelor.meta.db.MetaModel')
    expect(data.fields.map(({ readonly }) => readonly)).toEqual(data.fields.map(() => true))
  })
})
