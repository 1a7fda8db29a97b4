// Permission rules hold for every way to write a permission.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PERMISSION_MODEL, ROLE_MODEL } from '../../src/model/catalog/auth-models.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { extendModel } from '../../src/model/definition/extend-model.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createApp } from '../../src/service/create-app.js'
import { createRecord } from '../../src/service/records/save.js'
import type { Records } from '../../src/wire.js'
import { models } from '../models.js'
import { enter, newLocation, onEveryTarget, catchError, startService, type Service } from '../targets.js'
import { createContext } from '../../src/service/context/context.js'

const Region = defineModel({ name: 'office.Region', fields: { name: { type: 'string' } } })
const Branch = defineModel({
  name: 'office.Branch',
  fields: {
    name: { type: 'string' },
    size: { type: 'integer' },
    region: { type: 'many-to-one', target: 'office.Region' },
  },
})
const Users = extendModel({
  name: USER_MODEL,
  fields: { grade: { type: 'integer' }, regions: { type: 'many-to-many', target: 'office.Region' } },
})
const MODELS = [
  ...models,
  ...[Region, Branch, Users].map((definition) => ({ file: 'office.ts', definition })),
]

type Faults = Readonly<Record<string, RegExp>> | undefined

const CASES: readonly (readonly [object, Faults])[] = [
  [{ model: '*' }, undefined],
  [{ model: 'office.*' }, undefined],
  [{ model: 'office.*', canRead: false, canRemove: true }, undefined],
  [{ model: 'office.*', canRead: false }, { canRead: /^or another action must be true.*canExport/ }],
  [{ model: '' }, { model: /^must have at least 1 character$/ }],
  [{ model: 'verso.auth.User', readable: ['name', 'grade'] }, undefined],
  [
    { model: 'office.Brunch' },
    { model: /^is an unknown model: office\.Brunch \(did you mean "office\.Branch"\?\)$/ },
  ],
  [{ model: 'offices.*' }, { model: /^matches no model: offices\.\* \(did you mean "office\.\*"\?\)$/ }],
  [{ model: 'verso.auth.*' }, { model: /matches no model/ }],
  [{ model: 'office.B*' }, { model: /^must be the name of a model, a package such as crm\.\*, or \*$/ }],
  [{ model: 'Branch; drop' }, { model: /must be the name/ }],

  [{ model: 'office.Branch', condition: 'createdBy = :user' }, undefined],
  [{ model: 'office.Branch', condition: 'region in :user.regions and size <= :user.grade' }, undefined],
  [{ model: 'office.Branch', condition: "name = :user.name or name = 'all'" }, undefined],
  [{ model: 'office.Branch', condition: '  ' }, undefined],
  [{ model: 'office.*', condition: 'size > 3' }, undefined],
  [{ model: '*', condition: 'createdBy = :user' }, undefined],
  [{ model: 'office.Branch', condition: 'size >' }, { condition: /^is not valid: .*a value/ }],
  [
    { model: 'office.Branch', condition: 'seize > 3' },
    { condition: /^is not valid: .*seize.*did you mean "size"/ },
  ],
  [{ model: 'office.Branch', condition: "size = 'large'" }, { condition: /must be a whole number/ }],
  [{ model: 'office.Branch', condition: 'size = :user.name' }, { condition: /must be a whole number/ }],
  [
    { model: 'office.Branch', condition: 'size = :user.grad' },
    { condition: /:user has no "grad" \(did you mean "grade"\?\)/ },
  ],
  [{ model: 'office.Branch', condition: 'name = :user.password' }, { condition: /:user has no "password"/ }],
  [{ model: 'office.Branch', condition: 'name = :me' }, { condition: /unknown parameter ":me"/ }],
  [{ model: 'office.*', condition: 'nowhere = 1' }, { condition: /^is not valid for any of these models: / }],

  [{ model: 'office.Branch', readable: [], writable: ['name'] }, undefined],
  [{ model: 'office.Branch', readable: ['id', 'version', 'createdOn'] }, undefined],
  [{ model: 'office.*', writable: ['size'] }, undefined],
  [
    { model: 'office.Branch', readable: 'name' },
    { readable: /^must be a list of field names, or null for all fields$/ },
  ],
  [{ model: 'office.Branch', writable: [1] }, { writable: /^must be a list of field names/ }],
  [
    { model: 'office.Branch', readable: ['nmae'] },
    { readable: /^has "nmae", which is not a field of office\.Branch \(did you mean "name"\?\)$/ },
  ],
  [{ model: 'office.*', writable: ['nowhere'] }, { writable: /which is not a field of any of these models/ }],
  [
    { model: 'office.Branch', condition: 'a = 1', readable: ['x'], writable: 'y' },
    { condition: /is not valid/, readable: /not a field/, writable: /must be a list/ },
  ],
]

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  let role: number

  beforeAll(async () => {
    service = await startService(engine, { models: MODELS })
    records = await enter(service, transport)
    role = (await records.create(ROLE_MODEL, { name: 'clerk' })).data.id
  })
  afterAll(() => service.close())

  test.each(CASES)(
    'validation of the permission %j reports the expected field errors',
    async (permission, faults) => {
      const made = records.create(PERMISSION_MODEL, { role: { id: role }, canRead: true, ...permission })
      if (!faults) {
        await made
        return
      }
      const { kind, details } = await catchError(made)
      expect([kind, Object.keys(details.errors ?? {})]).toEqual(['invalid', Object.keys(faults)])
      for (const [name, message] of Object.entries(faults)) expect(details.errors?.[name]).toMatch(message)
    },
  )

  test('errors of permissions inside a role have their paths', async () => {
    const canRead = true
    const permissions = [
      { model: '*', canRead },
      { model: 'office.Brunch', canRead, readable: ['nmae'] },
    ]
    const error = await catchError(records.create(ROLE_MODEL, { name: 'other', permissions }))
    expect(Object.keys(error.details.errors ?? {})).toEqual(['permissions[1].model'])
  })

  test('an update of a permission is validated along with its stored values', async () => {
    const sent = { model: 'office.Branch', condition: 'size > 3', readable: ['size'], canRead: true }
    const { data } = await records.create(PERMISSION_MODEL, { role: { id: role }, ...sent })
    const change = (values: object) => records.update(PERMISSION_MODEL, data.id, { version: 0, ...values })
    expect((await catchError(change({ readable: ['place'] }))).details.errors).toHaveProperty('readable')
    const { errors } = (await catchError(change({ model: 'office.Region' }))).details
    expect(Object.keys(errors ?? {})).toEqual(['condition', 'readable'])
    expect((await catchError(change({ canRead: false }))).details.errors).toHaveProperty('canRead')
    const other = { canRead: false, canExport: true }
    await change({ model: 'office.Region', condition: null, readable: ['name'], ...other })
  })

  test('a mass update cannot set the model or the actions of permissions', async () => {
    const data = { criteria: [{ fieldName: 'id', operator: '>', value: 0 }] }
    for (const values of [{ model: 'office.Brunch' }, { canRead: false }]) {
      const { details } = await catchError(records.updateMass(PERMISSION_MODEL, { data, values }))
      expect(Object.keys(details.errors ?? {})).toEqual(Object.keys(values))
    }
  })
})

test('an app without models validates what it can without them: names, syntax and types', async () => {
  const location = await newLocation('sqlite')
  await (await createApp({ settings: { db: location.url }, models: MODELS })).close()
  const app = await createApp({ settings: { db: location.url }, models: [] })
  try {
    const roles = app.catalog.get(ROLE_MODEL)
    const about = (permission: object) =>
      createRecord(createContext(app, SERVICE_PRINCIPAL), roles, {
        name: JSON.stringify(permission),
        permissions: [{ canRead: true, ...permission }],
      })
    await about({ model: 'office.Branch', condition: 'region in :user.regions', readable: ['anything'] })
    await about({ model: 'office.*', condition: 'size <= :user.grade' })
    const { errors } = (await catchError(about({ model: 'no name', condition: 'size >', readable: 1 })))
      .details
    expect(Object.keys(errors ?? {})).toEqual([
      ...['permissions[0].model', 'permissions[0].condition', 'permissions[0].readable'],
    ])
  } finally {
    await app.close()
    location.remove()
  }
})
