// Turns the JSON Schema of a route, as Fastify takes it, into a schema of the OpenAPI document.
import { isArray, isObject, type JsonObject } from '../../model/values/value.js'

/** Schemas of `addSchema`, by their `$id`. */
export type SharedSchemas = Readonly<Record<string, unknown>>

/** Schemas that refer to each other several times expand to very many. Those beyond this number accept every value. */
const MAX_SCHEMAS = 10_000

interface Conversion {
  readonly shared: SharedSchemas
  schemaCount: number
}

/**
 * Replaces references to shared schemas by these schemas. A reference back to a schema that contains it becomes the type of that schema. Any
 * other reference has no place in the document, so it becomes a schema that accepts every value.
 */
export function toDocumentSchema(schema: unknown, shared: SharedSchemas): JsonObject {
  return convertSchema(schema, { shared, schemaCount: 0 }, [])
}

/** `path` has the schemas that contain this one. */
function convertSchema(schema: unknown, conversion: Conversion, path: readonly unknown[]): JsonObject {
  if (schema === false) return { not: {} }
  if (!isObject(schema) || ++conversion.schemaCount > MAX_SCHEMAS) return {}
  if (path.includes(schema)) return convertType(schema)
  const { $ref, example, ...own } = schema
  const inner = [...path, schema]
  if (typeof $ref === 'string')
    return convertSchema(conversion.shared[$ref.replace(/#$/, '')], conversion, inner)
  const entries = Object.entries(own)
    .filter(([key]) => key !== '$id' && key !== '$schema' && key !== 'nullable')
    .map(([key, value]) => [key, convertPart(key, value, (part) => convertSchema(part, conversion, inner))])
  const converted = Object.fromEntries(entries) as Record<string, unknown>
  if (example !== undefined) converted['examples'] ??= [example]
  return { ...converted, ...convertType(schema) }
}

function convertType({ type, nullable }: JsonObject): JsonObject {
  if (type === undefined) return {}
  return { type: nullable === true && typeof type === 'string' ? [type, 'null'] : type }
}

/** Keywords whose value is a schema or a list of schemas. */
const SCHEMA_KEYWORDS: ReadonlySet<string> = new Set([
  'additionalProperties',
  'allOf',
  'anyOf',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'oneOf',
  'propertyNames',
  'then',
])
/** Keywords whose value has schemas by name. */
const SCHEMA_MAP_KEYWORDS: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'patternProperties',
  'properties',
])

function convertPart(key: string, value: unknown, convert: (part: unknown) => JsonObject): unknown {
  if (SCHEMA_MAP_KEYWORDS.has(key) && isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, convert(each)]))
  if (!SCHEMA_KEYWORDS.has(key)) return value
  if (isArray(value)) return value.map(convert)
  return typeof value === 'boolean' ? value : convert(value)
}
