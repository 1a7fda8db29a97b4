// Mistakes in programs that use the client, one in each line, and what the compiler says about each.

/** Precedes the mistakes. */
export const PRELUDE = `import type { Client } from '../../src/client/client-types.js'
import * as models from '../models.js'
declare const verso: Client<typeof models>
declare const everything: ReturnType<typeof verso.model<'test.Everything'>>
declare const companies: ReturnType<typeof verso.model<'rel.Company'>>
declare const people: ReturnType<typeof verso.model<'rel.Person'>>
declare const doors: ReturnType<typeof verso.model<'rel.Door'>>
declare const papers: ReturnType<typeof verso.model<'doc.Paper'>>
`

/** Each mistake is a statement, the text of its only diagnostic, and for a misspelled name the proposal. */
export const MISTAKES = [
  // Names of fields
  ["people.find({ fields: ['nme'] })", `Type '"nme"' is not assignable to type`, `Did you mean '"name"'?`],
  [
    "people.find({ fields: ['name', 'company.nme'] })",
    `Type '"company.nme"' is not assignable to type`,
    `Did you mean '"company.name"'?`,
  ],
  [
    "people.find({ fields: ['boss.company.seat.cty'] })",
    `Type '"boss.company.seat.cty"' is not assignable to type`,
    `Did you mean '"boss.company.seat.city"'?`,
  ],
  ["people.find({ fields: ['name.first'] })", `Type '"name.first"' is not assignable to type`],
  ["people.find({ fields: ['circles.name'] })", `Type '"circles.name"' is not assignable to type`],
  ["doors.find({ fields: ['pin'] })", `Type '"pin"' is not assignable to type`],
  ["papers.find({ fields: ['scan'] })", `Type '"scan"' is not assignable to type`],
  ["people.search({ fields: ['nme'] })", `Type '"nme"' is not assignable to type`, `Did you mean '"name"'?`],
  ["people.all({ fields: ['nme'] })", `Type '"nme"' is not assignable to type`, `Did you mean '"name"'?`],
  [
    "people.fetch(1, { fields: ['circles.nme'] })",
    `Type '"circles.nme"' is not assignable to type`,
    `Did you mean '"circles.name"'?`,
  ],
  [
    "companies.fetch(1, { related: { addresses: ['cty'] } })",
    `Type '"cty"' is not assignable to type`,
    `Did you mean '"city"'?`,
  ],
  [
    "companies.fetch(1, { related: { adresses: ['city'] } })",
    `Object literal may only specify known properties, but 'adresses' does not exist`,
    `Did you mean to write 'addresses'?`,
  ],
  // Sort keys
  ["people.find({ sortBy: ['nme'] })", `Type '"nme"' is not assignable to type`, `Did you mean '"name"'?`],
  ["people.find({ sortBy: ['-nme'] })", `Type '"-nme"' is not assignable to type`, `Did you mean '"-name"'?`],
  [
    "people.find({ sortBy: ['-boss.company.nme'] })",
    `Type '"-boss.company.nme"' is not assignable to type`,
    `Did you mean '"-boss.company.name"'?`,
  ],
  ["people.find({ sortBy: ['circles'] })", `Type '"circles"' is not assignable to type`],
  ["everything.find({ sortBy: ['extra'] })", `Type '"extra"' is not assignable to type`],
  // Filters
  [
    "people.find({ filter: { nme: 'Ada' } })",
    `Object literal may only specify known properties, but 'nme' does not exist in type 'Filter<`,
    `Did you mean to write 'name'?`,
  ],
  [
    "people.find({ filter: { 'company.nme': 'x' } })",
    `Object literal may only specify known properties, and ''company.nme'' does not exist in type 'Filter<`,
  ],
  [
    "people.find({ filter: { 'boss.company.addresses.cty': 'x' } })",
    `Object literal may only specify known properties, and ''boss.company.addresses.cty'' does not exist`,
  ],
  [
    "people.find({ filter: { or: [{ name: 'Ada' }, { nme: 'Bob' }] } })",
    `Object literal may only specify known properties, but 'nme' does not exist in type 'Filter<`,
    `Did you mean to write 'name'?`,
  ],
  [
    "people.find({ filter: { not: { and: [{ nme: 'Bob' }] } } })",
    `Object literal may only specify known properties, but 'nme' does not exist in type 'Filter<`,
    `Did you mean to write 'name'?`,
  ],
  [
    "everything.find({ filter: { state: 'pid' } })",
    `Type '"pid"' is not assignable to type`,
    `Did you mean '"paid"'?`,
  ],
  ['everything.find({ filter: { label: 5 } })', `Type 'number' is not assignable to type`],
  [
    "everything.find({ filter: { whole: { '>=': 'x' } } })",
    `Type 'string' is not assignable to type 'number'`,
  ],
  [
    "everything.find({ filter: { whole: { lke: '1' } } })",
    `Object literal may only specify known properties, and 'lke' does not exist in type`,
  ],
  ["doors.find({ filter: { pin: '1' } })", `'pin' does not exist in type 'Filter<`],
  // Values of writes
  ['companies.create({})', `Property 'name' is missing in type '{}' but required in type`],
  ["doors.create({ code: 'x' })", `Property 'address' is missing in type`],
  ['companies.create({ name: null })', `Type 'null' is not assignable to type 'string'`],
  [
    "companies.create({ name: 'x', cod: 'y' })",
    `Object literal may only specify known properties, but 'cod' does not exist in type`,
    `Did you mean to write 'code'?`,
  ],
  ["people.create({ createdOn: 'x' })", `'createdOn' does not exist in type`],
  ["verso.model('crm.Contact').create({ fullName: 'x' })", `'fullName' does not exist in type`],
  ["verso.model('rel.Badge').create({ number: 'x' })", `'number' does not exist in type`],
  ["papers.create({ title: 'x', scan: 'y' })", `'scan' does not exist in type`],
  ['companies.create({ name: "x", people: [] })', `'people' does not exist in type`],
  ['people.create({ circles: null })', `Type 'null' is not assignable to type`],
  ['people.create({ company: 5 })', `Type 'number' is not assignable to type`],
  ["everything.create({ state: 'pid' })", `Type '"pid"' is not assignable to type`, `Did you mean '"paid"'?`],
  ['everything.create({ whole: "1" })', `Type 'string' is not assignable to type 'number'`],
  [
    "companies.update(1, { version: 1, nme: 'x' })",
    `Object literal may only specify known properties, but 'nme' does not exist in type`,
    `Did you mean to write 'name'?`,
  ],
  [
    "companies.update(1, { name: 'x' })",
    `Property 'version' is missing in type '{ name: string; }' but required in type`,
  ],
  [
    "companies.update(1, () => ({ code: 'x', nme: 'x' }))",
    `rel.Company has no field nme that an update can change`,
  ],
  [
    "companies.update(1, async () => ({ code: 'x', nme: 'x' }))",
    `rel.Company has no field nme that an update can change`,
  ],
  [
    'companies.update(1, (record) => ({ name: record.nme }))',
    `Property 'nme' does not exist on type`,
    `Did you mean 'name'?`,
  ],
  ['companies.update(1, () => ({ name: null }))', `Type 'null' is not assignable to type 'string'`],
  [
    'companies.update(1, () => ({}), { onConflict: ({ theirs }) => ({ name: theirs.nme }) })',
    `Property 'nme' does not exist on type`,
    `Did you mean 'name'?`,
  ],
  [
    "companies.update(1, () => ({}), { onConflict: () => ({ nme: 'x', code: 'y' }) })",
    `rel.Company has no field nme that an update can change`,
  ],
  // Results
  [
    "people.find({ fields: ['name'] }).then(({ data }) => data[0]?.born)",
    `Property 'born' does not exist on type`,
  ],
  ['companies.find().then(({ data }) => data[0]?.founded)', `Property 'founded' does not exist on type`],
  ['companies.read(1).then((company) => company.people)', `Property 'people' does not exist on type`],
  ['doors.read(1).then((door) => door.pin)', `Property 'pin' does not exist on type`],
  ['papers.read(1).then((paper) => paper.scan)', `Property 'scan' does not exist on type`],
  ["people.find({ count: 'none' }).then(({ total }) => total.toFixed())", `'total' is possibly 'undefined'`],
  ['people.read(1).then(({ company }) => company.id)', `'company' is possibly 'null'`],
  // Models and batches
  ["verso.model('rel.Compny')", `Argument of type '"rel.Compny"' is not assignable to parameter of type`],
  [
    "verso.batch([{ op: 'delete', model: 'rel.Compny', id: 1 }])",
    `Type '"rel.Compny"' is not assignable to type`,
    `Did you mean '"rel.Company"'?`,
  ],
  [
    "verso.batch([{ op: 'delet', model: 'rel.Company', id: 1 }])",
    `Type '"delet"' is not assignable to type`,
    `Did you mean '"delete"'?`,
  ],
  [
    "verso.batch([{ op: 'create', model: 'rel.Company', data: { name: 'x', cod: 'y' } }])",
    `Object literal may only specify known properties, but 'cod' does not exist in type`,
    `Did you mean to write 'code'?`,
  ],
  [
    "verso.batch([{ op: 'create', model: 'rel.Company', data: {} }])",
    `Property 'name' is missing in type '{}'`,
  ],
  [
    "verso.batch([{ op: 'update', model: 'rel.Company', id: 1, data: {} }])",
    `Property 'version' is missing in type`,
  ],
  ["verso.changes({ model: 'rel.Compny' })", `Type '"rel.Compny"' is not assignable to type`],
  ["papers.download(1, 'title')", `Argument of type '"title"' is not assignable to parameter of type`],
  ["papers.clear(1, 'scan', {})", `Property 'version' is missing in type '{}'`],
]
