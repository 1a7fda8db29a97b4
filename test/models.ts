// Fixture models: one with every field type, one as in the sample, one with unique sets, one that can be archived, and a family
// with every kind of relation.
import { defineModel } from '../src/model/definition/define-model.js'
import type { ModelSource } from '../src/model/catalog/catalog.js'

export const Everything = defineModel({
  name: 'test.Everything',
  fields: {
    label: { type: 'string' },
    note: { type: 'text' },
    whole: { type: 'integer' },
    big: { type: 'long' },
    amount: { type: 'decimal', precision: 38, scale: 10 },
    price: { type: 'decimal', precision: 9, scale: 2 },
    active: { type: 'boolean' },
    day: { type: 'date' },
    at: { type: 'time' },
    moment: { type: 'datetime' },
    token: { type: 'uuid' },
    state: { type: 'enum', selection: ['draft', 'sent', 'paid'] },
    extra: { type: 'json' },
  },
})

export const Contact = defineModel({
  name: 'crm.Contact',
  fields: {
    firstName: { type: 'string' },
    lastName: { type: 'string' },
    fullName: { type: 'string', computed: '{firstName} {lastName}' },
    email: { type: 'string' },
    notes: { type: 'text' },
    phones: { type: 'json' },
    pin: { type: 'string', secret: true },
    password: { type: 'string', secret: 'password' },
  },
  nameField: 'fullName',
  listFields: ['fullName', 'email'],
})

export const Limited = defineModel({
  name: 'test.Limited',
  fields: {
    code: { type: 'string', required: true, unique: true, length: { min: 2, max: 4 } },
    country: { type: 'string', length: 2, default: 'FR' },
    number: { type: 'integer', min: 1, max: 10 },
    rate: { type: 'decimal', precision: 5, scale: 2, min: '-1.50', max: '1.50' },
    since: { type: 'date', min: '2000-01-01', max: '2099-12-31', default: '2001-02-03' },
    level: { type: 'integer', selection: [{ value: 1, title: 'Low' }, 2, 3], default: 1 },
    madeAt: { type: 'datetime', default: 'now' },
  },
  unique: [['country', 'number']],
  indexes: [['country', 'since']],
})

export const Note = defineModel({
  name: 'test.Note',
  fields: { title: { type: 'string', required: true } },
  archived: true,
})

/** Fields called like the words of our own SQL. */
export const Order = defineModel({
  name: 'test.Order',
  fields: {
    total: { type: 'decimal' },
    count: { type: 'string' },
    offset: { type: 'integer' },
    one: { type: 'integer' },
    last: { type: 'integer' },
    select: { type: 'string' },
    t: { type: 'string' },
    p: { type: 'string' },
  },
})

/** Owns its addresses; its people only work there. */
export const Company = defineModel({
  name: 'rel.Company',
  fields: {
    code: { type: 'string', unique: true, length: 16 },
    name: { type: 'string', required: true },
    founded: { type: 'date' },
    addresses: { type: 'one-to-many', target: 'rel.Address', mappedBy: 'company', owned: true },
    people: { type: 'one-to-many', target: 'rel.Person', mappedBy: 'company' },
    seat: { type: 'many-to-one', target: 'rel.Address' },
    parent: { type: 'many-to-one', target: 'rel.Company' },
  },
  listFields: ['code', 'name'],
})

export const Address = defineModel({
  name: 'rel.Address',
  fields: {
    city: { type: 'string', required: true },
    street: { type: 'string' },
    company: { type: 'many-to-one', target: 'rel.Company' },
    doors: { type: 'one-to-many', target: 'rel.Door', mappedBy: 'address', owned: true },
  },
  nameField: 'city',
})

export const Door = defineModel({
  name: 'rel.Door',
  fields: {
    code: { type: 'string', unique: true, length: 40 },
    pin: { type: 'string', secret: true },
    address: { type: 'many-to-one', target: 'rel.Address', required: true },
  },
})

export const Person = defineModel({
  name: 'rel.Person',
  fields: {
    name: { type: 'string' },
    born: { type: 'date' },
    rate: { type: 'decimal', precision: 12, scale: 2 },
    isActive: { type: 'boolean' },
    company: { type: 'many-to-one', target: 'rel.Company' },
    boss: { type: 'many-to-one', target: 'rel.Person' },
    circles: { type: 'many-to-many', target: 'rel.Circle' },
    badge: { type: 'one-to-one', target: 'rel.Badge', mappedBy: 'holder' },
    keeper: { type: 'many-to-one', target: 'verso.auth.User' },
  },
})

export const Circle = defineModel({
  name: 'rel.Circle',
  fields: {
    name: { type: 'string', required: true },
    members: { type: 'many-to-many', target: 'rel.Person', mappedBy: 'circles' },
  },
})

export const Badge = defineModel({
  name: 'rel.Badge',
  fields: {
    number: { type: 'string', sequence: { prefix: 'B-', padding: 4, next: 7 } },
    holder: { type: 'one-to-one', target: 'rel.Person' },
  },
  nameField: 'number',
})

/** Holds a file itself, and papers that hold two each. */
export const Folder = defineModel({
  name: 'doc.Folder',
  fields: {
    title: { type: 'string' },
    cover: { type: 'binary' },
    papers: { type: 'one-to-many', target: 'doc.Paper', mappedBy: 'folder', owned: true },
  },
})

export const Paper = defineModel({
  name: 'doc.Paper',
  fields: {
    title: { type: 'string', required: true },
    note: { type: 'string' },
    scan: { type: 'binary' },
    photo: { type: 'binary' },
    folder: { type: 'many-to-one', target: 'doc.Folder' },
    source: { type: 'many-to-one', target: 'com.axelor.meta.db.MetaFile' },
  },
})

const all = [
  ...[Everything, Contact, Limited, Note, Order],
  ...[Company, Address, Door, Person, Circle, Badge],
  ...[Folder, Paper],
]

export const models: readonly ModelSource[] = all.map((definition) => ({
  file: 'test/models.ts',
  definition,
}))
