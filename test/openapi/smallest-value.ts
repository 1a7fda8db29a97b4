// The smallest value that a schema accepts: the required properties alone.
import { toComponentName } from '../../src/formats/component-name.js'
import type { Model } from '../../src/model/definition/model.js'
import type { Records } from '../../src/wire.js'
import type { Schema } from './api-document.js'

let count = 0

/** Creates records from schemas, and the records that they must refer to. */
export class SmallestRecords {
  readonly #models: ReadonlyMap<string, Model>

  constructor(
    models: readonly Model[],
    /** Returns the schema of a create, or undefined if the model has none. */
    private readonly findSchema: (model: Model) => Promise<Schema | undefined>,
    private readonly records: Pick<Records, 'create'>,
  ) {
    this.#models = new Map(models.map((model) => [`${toComponentName(model.name)}Input`, model]))
  }

  /** Returns undefined if no request can create a record of the model. */
  async build(model: Model): Promise<Record<string, unknown> | undefined> {
    const schema = await this.findSchema(model)
    if (!schema) return undefined
    const { properties, required = [] } = schema as {
      properties: Record<string, Schema>
      required?: string[]
    }
    const value: Record<string, unknown> = { ...ADDITIONS[model.name] }
    for (const name of required)
      value[name] = OVERRIDES[`${model.name}.${name}`]?.() ?? (await this.#fill(properties[name] ?? {}))
    return value
  }

  async create(model: Model): Promise<number | undefined> {
    const value = await this.build(model)
    return value && (await this.records.create(model.name, value)).data.id
  }

  async #fill(schema: Schema): Promise<unknown> {
    const { $ref, anyOf } = schema as { $ref?: string; anyOf?: readonly Schema[] }
    const ref = $ref ?? anyOf?.map((each) => each['$ref']).find((each) => typeof each === 'string')
    if (typeof ref !== 'string') return fillPlain(schema)
    const target = this.#models.get(ref.slice(ref.lastIndexOf('/') + 1))
    return { id: target && (await this.create(target)) }
  }
}

/** Rules that JSON Schema cannot express. */
const OVERRIDES: Readonly<Record<string, () => unknown>> = {
  'verso.auth.User.password': () => 'correct horse battery staple',
  'verso.auth.Permission.model': () => 'crm.Contact',
  'verso.feed.Webhook.url': () => 'https://hooks.example.com/',
}

/** A permission without an action is rejected. */
const ADDITIONS: Readonly<Record<string, object>> = { 'verso.auth.Permission': { canRead: true } }

function fillPlain(schema: Schema): unknown {
  const {
    enum: values,
    type,
    format,
    minLength = 0,
    maxLength = 255,
    minimum,
  } = schema as {
    enum?: readonly unknown[]
    type?: string | readonly string[]
    format?: string
    minLength?: number
    maxLength?: number
    minimum?: number
  }
  const [first] = [type].flat()
  if (values) return values[0]
  if (first === 'integer') return Math.max(0, minimum ?? 0)
  if (first === 'boolean') return false
  if (first === 'array') return []
  if (first === 'object') return {}
  if (format === 'date') return '2026-01-31'
  if (format === 'date-time') return '2026-01-31T12:00:00Z'
  if (format === 'uuid') return '0b0f3c1e-6f5a-4f0e-9a51-2f0f5d3c7a10'
  if ([type].flat().includes('number')) return '0'
  // Different texts, because a field may be unique.
  return (++count).toString(36).padStart(Math.max(minLength, 3), 'a').slice(0, maxLength)
}
