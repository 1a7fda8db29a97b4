// Examples of request bodies. Each is valid against the schema of its request.
import type { Field, FieldTypeName } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import type { Visibility } from '../../model/query/visibility.js'
import type { JsonObject } from '../../model/values/value.js'
import type { BodyDocs } from '../route/documentation.js'

/** Optional fields in an example, besides the required ones. */
const MAX_OPTIONAL_FIELDS = 3
const SAMPLE_TEXT = 'Example'
const SAMPLE_PASSWORD = 'correct horse battery'

/** Selects one record, so that a user who runs the example changes no other. */
const ID_CRITERION: JsonObject = { fieldName: 'id', operator: '=', value: 1 }

const SAMPLES: Readonly<Record<FieldTypeName, (field: Field) => unknown>> = {
  string: sampleText,
  text: sampleText,
  enum: sampleText,
  integer: (field) => sampleNumber(field),
  long: (field) => sampleNumber(field),
  decimal: sampleDecimal,
  boolean: () => true,
  date: (field) => sampleWithin(field, '2026-01-31'),
  time: (field) => sampleWithin(field, '13:45:00'),
  datetime: (field) => sampleWithin(field, '2026-01-31T13:45:00.000Z'),
  uuid: () => '0b0f3c1e-6f5a-4f0e-9a51-2f0f5d3c7a10',
  json: () => ({}),
  binary: () => null,
  'many-to-one': () => ({ id: 1 }),
  'one-to-one': () => ({ id: 1 }),
  'one-to-many': () => [],
  'many-to-many': () => [],
}

/** Builds the example of a body, or returns undefined if the user may write no field. */
export function buildBodyExample(
  kind: NonNullable<BodyDocs['example']>,
  visibility: Visibility,
  model: Model,
): JsonObject | undefined {
  const required = model.requiredInputs.filter((field) => visibility.isVisible(model, field))
  const optional = listOptionalFields(visibility, model)
  if (kind === 'create')
    return { data: sampleFields([...required, ...optional.slice(0, MAX_OPTIONAL_FIELDS)]) }
  const [field = required.find((each) => visibility.canWrite(model, each))] = optional
  const values = field ? sampleFields([field]) : {}
  if (kind === 'mass') return { data: { criteria: [ID_CRITERION] }, records: [values] }
  const change = { version: 0, ...values }
  return kind === 'patch' ? change : { data: change }
}

/** Optional fields with plain values that the user may write. Secrets have rules of their own. */
function listOptionalFields(visibility: Visibility, model: Model): readonly Field[] {
  return [...model.fields.values()].filter(
    (field) =>
      model.inputs.get(field.name) === 'value' &&
      field.type !== 'json' &&
      field.secret === undefined &&
      field.name !== 'archived' &&
      !model.requiredInputs.includes(field) &&
      visibility.canWrite(model, field) &&
      visibility.isVisible(model, field),
  )
}

function sampleFields(fields: readonly Field[]): JsonObject {
  return Object.fromEntries(fields.map((field) => [field.name, sampleField(field)]))
}

function sampleField(field: Field): unknown {
  const { default: value, secret, selection } = field
  if (selection?.[0]) return selection[0].value
  if (value !== undefined && value !== null && value !== 'now' && secret === undefined) return value
  return SAMPLES[field.type](field)
}

/** Dates and times are texts that sort chronologically. */
function sampleWithin({ min, max }: Field, sample: string): unknown {
  if (min !== undefined && String(min) > sample) return min
  return max !== undefined && String(max) < sample ? max : sample
}

function sampleText({ minLength, maxLength, title, secret }: Field): string {
  if (secret === 'password') return SAMPLE_PASSWORD.padEnd(minLength, 'x').slice(0, maxLength)
  const text = title.length >= minLength && title.length <= maxLength ? title : SAMPLE_TEXT
  return text.padEnd(minLength, 'x').slice(0, maxLength)
}

function sampleNumber({ min, max }: Field): number {
  return Math.min(Math.max(1, Number(min ?? 1)), Number(max ?? 1))
}

function sampleDecimal({ min, max, precision, scale }: Field): string {
  const one = precision > scale ? '1' : '0'
  if (min !== undefined && Number(min) > Number(one)) return String(min)
  if (max !== undefined && Number(max) < Number(one)) return String(max)
  return one
}
