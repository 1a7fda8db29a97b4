// JSON Schema and the service agree: about the records that the service answers, and about the values that it accepts.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { FIELD_SCHEMAS } from '../../src/formats/field-schemas.js'
import { FIELD_TYPES } from '../../src/model/values/field-types.js'
import type { Model } from '../../src/model/definition/model.js'
import type { ValidateFunction } from 'ajv/dist/2020.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { rootOf } from '../permissions/office-fixture.js'
import { createAjv, type Schema } from './api-document.js'
import { SmallestRecords } from './smallest-value.js'

let service: Service
let client: HttpClient

beforeAll(async () => {
  service = await startService('sqlite')
  client = await HttpClient.login(service.url, USERNAME, PASSWORD)
})

afterAll(async () => {
  await service.close()
})

interface SchemaDocument extends Schema {
  readonly $id: string
  readonly $defs: Readonly<Record<string, Schema>>
}

async function readSchema(model: string): Promise<SchemaDocument> {
  const response = await client.request('GET', `/ws/meta/schema/${model}`)
  expect(response.status).toBe(200)
  return (await response.json()) as SchemaDocument
}

type Part = 'read' | 'list' | 'create' | 'update'

/** Returns the validators of the parts that the document has. */
function compileParts(document: SchemaDocument): Partial<Record<Part, ValidateFunction>> {
  const ajv = createAjv()
  const parts: Partial<Record<Part, ValidateFunction>> = { read: ajv.compile(document) }
  for (const part of ['list', 'create', 'update'] as const)
    if (document.$defs[part]) parts[part] = ajv.compile({ $ref: `${document.$id}#/$defs/${part}` })
  return parts
}

test('each field type has a schema', () => {
  expect(Object.keys(FIELD_SCHEMAS).sort()).toEqual(Object.keys(FIELD_TYPES).sort())
})

describe('the JSON Schema of a model', () => {
  test('has an id, the dialect and the parts that the user may use', async () => {
    const document = await readSchema('rel.Person')
    expect(document).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: `${service.url}/ws/meta/schema/rel.Person`,
      title: 'Person',
    })
    expect(Object.keys(document.$defs)).toEqual(expect.arrayContaining(['list', 'create', 'update']))
    expect(Object.keys((await readSchema('verso.auth.Event')).$defs)).not.toContain('create')
  })

  test('says formats, limits, choices, defaults and secrets', async () => {
    const { $defs } = await readSchema('test.Limited')
    const { properties } = $defs['create'] as { properties: Record<string, Schema> }
    expect(properties['code']).toMatchObject({ type: 'string', minLength: 2, maxLength: 4 })
    expect(properties['country']).toMatchObject({ type: ['string', 'null'], maxLength: 2, default: 'FR' })
    expect(properties['number']).toMatchObject({ type: ['integer', 'null'], minimum: 1, maximum: 10 })
    expect(properties['rate']).toMatchObject({
      type: ['string', 'number', 'null'],
      minimum: -1.5,
      maximum: 1.5,
    })
    expect(properties['level']).toMatchObject({ enum: [1, 2, 3, null], default: 1 })
    expect(properties['createdOn']).toEqual({ $ref: '#/$defs/VersoIgnored' })
    expect($defs['create']?.['required']).toEqual(['code'])
    const contact = (await readSchema('crm.Contact')).$defs['create'] as {
      properties: Record<string, Schema>
    }
    expect(contact.properties['password']).toMatchObject({ writeOnly: true, format: 'password' })
    expect(contact.properties['fullName']).toEqual({ $ref: '#/$defs/VersoIgnored' })
  })

  test('accepts the smallest record of every model, which the service accepts, and refuses one field less', async () => {
    const { storedModels } = service.app.catalog
    const findSchema = async ({ name }: Model) => (await readSchema(name)).$defs['create']
    const root = rootOf(service)
    const smallest = new SmallestRecords(storedModels, findSchema, root)
    let created = 0
    for (const model of storedModels) {
      const value = await smallest.build(model)
      const document = await readSchema(model.name)
      const { read, list, create } = compileParts(document)
      if (!value || !create) continue
      expect([model.name, create(value), create.errors]).toEqual([model.name, true, null])
      const { id } = (await root.create(model.name, value)).data
      created++
      expect([model.name, read?.(await client.read(model.name, id)), read?.errors]).toEqual([
        model.name,
        true,
        null,
      ])
      const page = await client.find(model.name, { filter: `id = ${id}` })
      expect([list?.(page.data[0]), list?.errors]).toEqual([true, null])
      for (const name of (document.$defs['create']?.['required'] ?? []) as readonly string[]) {
        const less = Object.fromEntries(Object.entries(value).filter(([key]) => key !== name))
        expect(create(less)).toBe(false)
        await expect(root.create(model.name, less)).rejects.toMatchObject({ kind: 'invalid' })
      }
    }
    expect(created).toBeGreaterThan(15)
  })
})

const text = fc
  .string({ unit: 'binary', maxLength: 12 })
  .filter((value) => value.isWellFormed() && !value.includes('\0'))
const digits = fc.stringMatching(/^[+-]?[0-9]{0,31}(\.[0-9]{0,12})?$/)
const clock = fc.stringMatching(/^[0-2][0-9]:[0-6][0-9](:[0-6][0-9])?$/)
const day = fc.stringMatching(/^(1|2)[0-9]{3}-[01][0-9]-[0-3][0-9]$/)
const zone = fc.constantFrom('Z', 'z', '+02:00', '-23:59', '+24:00', '+01', '')
const nothing = fc.constant(null)
const anything = fc.oneof(
  fc.constantFrom(
    null,
    true,
    false,
    '',
    'draft',
    'paid',
    'other',
    [],
    {},
    0,
    -0,
    1.5,
    2 ** 31,
    -(2 ** 31),
    2 ** 53,
    1e300,
  ),
  fc.integer(),
  text,
)
const VALUES: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  'test.Everything.label': fc.oneof(anything, fc.string({ minLength: 250, maxLength: 258 })),
  'test.Everything.note': anything,
  'test.Everything.whole': fc.oneof(anything, fc.maxSafeInteger()),
  'test.Everything.big': fc.oneof(anything, fc.maxSafeInteger(), fc.double()),
  'test.Everything.amount': fc.oneof(anything, digits),
  'test.Everything.price': fc.oneof(digits, fc.integer({ min: -99_999_999, max: 99_999_999 })),
  'test.Everything.active': anything,
  'test.Everything.day': fc.oneof(anything, day, clock),
  'test.Everything.at': fc.oneof(anything, clock, day),
  'test.Everything.moment': fc.oneof(
    anything,
    fc
      .tuple(day, fc.constantFrom('T', 't'), clock, fc.constantFrom('', '.5', '.123456789'), zone)
      .map((parts) => parts.join('')),
  ),
  'test.Everything.token': fc.oneof(
    anything,
    fc.uuid(),
    fc.uuid().map((id) => id.toUpperCase()),
    fc.uuid().map((id) => `urn:uuid:${id}`),
  ),
  'test.Everything.state': anything,
  'test.Everything.extra': fc.oneof(anything, fc.jsonValue()),
  'test.Limited.country': fc.oneof(anything, text),
  'test.Limited.number': fc.oneof(anything, fc.integer({ min: -2, max: 13 })),
  'test.Limited.level': fc.oneof(anything, fc.integer({ min: 0, max: 4 })),
  'test.Limited.since': fc.oneof(anything, day, nothing),
  'rel.Person.company': fc.oneof(
    anything,
    fc.constant({ id: 1 }),
    fc.constant({ id: 'x' }),
    fc.constant({ id: 1, $version: 0 }),
  ),
  'rel.Person.circles': fc.oneof(anything, fc.constant([{ id: 1 }]), fc.constant([1])),
  'doc.Folder.cover': fc.oneof(anything, nothing),
  'crm.Contact.fullName': anything,
}

/** Values about which JSON Schema cannot say what the service does, or says less on purpose. */
const EXCEPTIONS: Readonly<Record<string, (value: unknown) => boolean>> = {
  // A number may have more digits than the field; bounds of dates are not expressed.
  'test.Everything.amount': (value) => typeof value === 'number',
  'test.Limited.since': (value) => typeof value === 'string',
  // An object without an id creates a company, which needs a name.
  'rel.Person.company': (value) => typeof value === 'object' && value !== null && !('id' in value),
  // The service also accepts times without seconds.
  'test.Everything.moment': (value) => typeof value === 'string' && /[Tt]\d\d:\d\d(?!:)/.test(value),
}

describe('the schema of a create and the service agree on each value', () => {
  let count = 0
  test.each(Object.keys(VALUES))('%s', async (path) => {
    const [, model = '', name = ''] = /^(.*)\.(\w+)$/.exec(path) ?? []
    const parts = compileParts(await readSchema(model))
    const root = rootOf(service)
    await root.create('rel.Company', { name: 'one' })
    await root.create('rel.Circle', { name: 'one' })
    const verdicts = { accepted: 0, refused: 0 }
    await fc.assert(
      fc.asyncProperty(VALUES[path] as fc.Arbitrary<unknown>, async (value) => {
        if (EXCEPTIONS[path]?.(value)) return
        // JSON has no other way to write these.
        const sent = JSON.parse(JSON.stringify({ [name]: value })) as Record<string, unknown>
        const data =
          model === 'test.Limited'
            ? { code: (++count).toString(36).padStart(2, '0').slice(-4), ...sent }
            : sent
        const isValid = parts.create?.(data) === true
        const record = await root.create(model, data).then(
          (result) => result.data,
          (error: unknown) => {
            if (error instanceof VersoError && ['invalid', 'not-unique'].includes(error.kind)) return error
            throw error
          },
        )
        // Two records may not have the same values in a unique set; the schema cannot know that.
        if (record instanceof VersoError && record.kind === 'not-unique') return
        const isAccepted = !(record instanceof VersoError)
        verdicts[isAccepted ? 'accepted' : 'refused']++
        expect([value, isValid]).toEqual([value, isAccepted])
        if (isAccepted)
          expect([parts.read?.(await root.read(model, record.id)), parts.read?.errors]).toEqual([true, null])
      }),
      { numRuns: 40, examples: [[name === 'circles' ? [] : null]] },
    )
    expect(verdicts.accepted).toBeGreaterThan(0)
  })
})
