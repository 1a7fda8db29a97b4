// The models of the tests of the web application: every kind of field and relation.
import { defineModel } from '../../src/model/definition/define-model.js'

export const PERSON = 'crm.Person'
export const FIRM = 'crm.Firm'

const Person = defineModel({
  name: PERSON,
  fields: {
    fullName: { type: 'string', computed: '{firstName} {lastName}' },
    firstName: { type: 'string' },
    lastName: { type: 'string', help: 'The family name.' },
    email: { type: 'string' },
    phone: { type: 'string', length: 20 },
    birthday: { type: 'date' },
    wakesAt: { type: 'time' },
    metOn: { type: 'datetime' },
    score: { type: 'integer', min: 0, max: 100 },
    big: { type: 'long' },
    balance: { type: 'decimal', precision: 20, scale: 2 },
    vip: { type: 'boolean' },
    stage: { type: 'enum', selection: ['new', 'known', 'lost'] },
    token: { type: 'uuid' },
    extra: { type: 'json' },
    notes: { type: 'text' },
    pin: { type: 'string', secret: true },
    photo: { type: 'binary' },
    firm: { type: 'many-to-one', target: FIRM },
    labels: { type: 'many-to-many', target: 'crm.Label' },
  },
  nameField: 'fullName',
  listFields: ['fullName', 'email', 'birthday', 'firm'],
})

const Firm = defineModel({
  name: FIRM,
  fields: {
    code: { type: 'string', required: true, unique: true, length: 8 },
    name: { type: 'string', required: true },
    addresses: { type: 'one-to-many', target: 'crm.Address', mappedBy: 'firm', owned: true },
    people: { type: 'one-to-many', target: PERSON, mappedBy: 'firm' },
  },
  nameField: 'name',
})

const Address = defineModel({
  name: 'crm.Address',
  fields: {
    street: { type: 'string' },
    city: { type: 'string', required: true },
    firm: { type: 'many-to-one', target: FIRM },
  },
  nameField: 'city',
})

const Label = defineModel({
  name: 'crm.Label',
  fields: { name: { type: 'string', required: true, unique: true } },
})

export const ADMIN_MODELS = [Person, Firm, Address, Label].map((definition) => ({
  file: 'admin',
  definition,
}))
