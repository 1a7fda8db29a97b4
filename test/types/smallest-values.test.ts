// The compiler and the service agree on what a create needs: the smallest value that compiles is accepted, and one field less is refused
// by both.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadCatalogSources } from '../../src/cli/models/models.js'
import { connect, InvalidError, type Client } from '../../src/client/index.js'
import { describeModel, type ModelDescription } from '../../src/formats/model-description.js'
import { formatModelTypes } from '../../src/formats/model-types.js'
import type { ModelSource } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { LARGE, writeLargeDomain } from '../large-domain.js'
import { models } from '../models.js'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { compileCreates, listNeededFields, type CreateValue } from './create-types.js'

/** Every type of field that can be required, and the options that lift the requirement. */
const Strict = defineModel({
  name: 'test.Strict',
  fields: {
    label: { type: 'string', required: true },
    note: { type: 'text', required: true },
    whole: { type: 'integer', required: true },
    big: { type: 'long', required: true },
    amount: { type: 'decimal', required: true },
    active: { type: 'boolean', required: true },
    day: { type: 'date', required: true },
    at: { type: 'time', required: true },
    moment: { type: 'datetime', required: true },
    token: { type: 'uuid', required: true },
    state: { type: 'enum', selection: ['open', "won't do"], required: true },
    level: { type: 'integer', selection: [3, 4], required: true },
    extra: { type: 'json', required: true },
    pin: { type: 'string', secret: true, required: true },
    company: { type: 'many-to-one', target: 'rel.Company', required: true },
    badge: { type: 'one-to-one', target: 'rel.Badge', required: true },
    stateBefore: { type: 'enum', selection: ['new', 'old'], required: true, default: 'new' },
    since: { type: 'datetime', required: true, default: 'now' },
    open: { type: 'boolean', required: true, default: false },
    pinBefore: { type: 'string', secret: true, required: true, default: '0000' },
    shown: { type: 'string', computed: '{label}!' },
    number: { type: 'string', sequence: {} },
    circles: { type: 'many-to-many', target: 'rel.Circle' },
    photo: { type: 'binary' },
  },
})

const VALUES: Readonly<Record<string, unknown>> = {
  INTEGER: 1,
  LONG: 1,
  DECIMAL: '1.50',
  BOOLEAN: true,
  DATE: '2024-01-31',
  TIME: '13:45',
  DATETIME: '2024-01-31T13:45:00Z',
  UUID: '5f0c8c1e-6f0a-4a43-9a8c-3b7f6c2d9e10',
}

/** Creates the smallest record of each model, with the related records that it needs. */
class SmallestRecords {
  readonly created: CreateValue[] = []
  readonly #ids = new Map<string, number>()
  #count = 0

  constructor(
    readonly client: Client,
    readonly descriptions: ReadonlyMap<string, ModelDescription>,
    readonly needed: ReadonlyMap<string, readonly string[]>,
  ) {}

  /** Creates a record of the model once. Returns the id; undefined if records that need each other make it impossible. */
  async create(model: string, above: readonly string[] = []): Promise<number | undefined> {
    if (this.#ids.has(model)) return this.#ids.get(model)
    const data = above.includes(model) ? undefined : await this.build(model, above)
    if (!data) return undefined
    const { id } = await this.client.model(model).create(data)
    this.#ids.set(model, id)
    this.created.push({ model, data })
    return id
  }

  async build(model: string, above: readonly string[] = []): Promise<Record<string, unknown> | undefined> {
    const data: Record<string, unknown> = {}
    for (const name of this.needed.get(model) ?? []) {
      const value = await this.#makeValue(model, name, [...above, model])
      if (value === undefined) return undefined
      data[name] = value
    }
    return data
  }

  async #makeValue(model: string, name: string, above: readonly string[]): Promise<unknown> {
    const field = this.descriptions.get(model)?.fields.find((each) => each['name'] === name) ?? {}
    const { type, target, json, selectionList } = field
    if (typeof target === 'string') {
      const id = await this.create(target, above)
      return id === undefined ? undefined : { id }
    }
    if (Array.isArray(selectionList)) {
      const [{ value }] = selectionList as [{ value: string }]
      return type === 'INTEGER' ? Number(value) : value
    }
    if (json === true) return { key: 1 }
    // Short enough for every field, and different for unique ones.
    return VALUES[String(type)] ?? (++this.#count).toString(36).padStart(4, '0')
  }
}

onEngineOfTier((engine) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-smallest-'))
  afterAll(() => {
    rmSync(folder, { recursive: true })
  })

  const domains: readonly (readonly [
    what: string,
    load: () => Promise<readonly ModelSource[]>,
    /** The number of models, all of which can be created. */
    possible: number,
    /** The number of fields that they need in total. */
    needed: number,
  ])[] = [
    ['the models of the tests', async () => [...models, { file: 'strict.ts', definition: Strict }], 14, 23],
    [
      'a domain in XML',
      async () => {
        writeLargeDomain(folder, { ...LARGE, entities: 60, fields: 900, packages: 4, selections: 10 })
        return (await loadCatalogSources(folder)).sources
      },
      60,
      62,
    ],
  ]

  describe.for(domains)('%s', ([, load, possible, needed]) => {
    let service: Service
    let generated: string
    let records: SmallestRecords
    const impossible: string[] = []

    beforeAll(async () => {
      service = await startService(engine, { models: await load() })
      const { catalog } = service.app
      const descriptions = catalog.storedModels.map((model) => describeModel(catalog, model, null))
      generated = formatModelTypes(descriptions)
      const client = connect(service.url, { username: USERNAME, password: PASSWORD })
      const own = new Set(catalog.models.map(({ name }) => name))
      records = new SmallestRecords(
        client,
        new Map(descriptions.map((each) => [each.model, each])),
        listNeededFields(generated),
      )
      for (const name of own) {
        const id = await records.create(name)
        if (id === undefined) impossible.push(name)
      }
    })
    afterAll(() => service.close())

    test('the service accepts the smallest values, and they compile', () => {
      expect([records.created.length, impossible]).toEqual([possible, []])
      expect(compileCreates(generated, records.created)).toEqual(records.created.map(() => true))
    })

    test('without one of their fields, they neither compile nor are accepted', async () => {
      const smaller = records.created.flatMap(({ model, data }) =>
        Object.keys(data).map((omitted) => ({
          model,
          omitted,
          data: Object.fromEntries(Object.entries(data).filter(([name]) => name !== omitted)),
        })),
      )
      expect(smaller.length).toBe(needed)
      expect(compileCreates(generated, smaller)).toEqual(smaller.map(() => false))
      for (const { model, data, omitted } of smaller) {
        const error = await records.client
          .model(model)
          .create(data)
          .catch((reason: unknown) => reason)
        expect(error, `${model} without ${omitted}`).toBeInstanceOf(InvalidError)
        expect((error as InvalidError).fields, `${model} without ${omitted}`).toMatchObject({
          [omitted]: 'is required',
        })
      }
    })
  })
})
