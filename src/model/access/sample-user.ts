// A sample user with a value in every readable field, to check conditions of permissions.
import type { Catalog } from '../catalog/catalog.js'
import type { Field, FieldTypeName } from '../values/field.js'
import { isReadByDefault } from '../definition/model.js'
import type { JsonObject } from '../values/value.js'

const SAMPLE_VALUES: Readonly<Partial<Record<FieldTypeName, unknown>>> = {
  string: 'x',
  text: 'x',
  integer: 1,
  long: 1,
  decimal: '1',
  boolean: true,
  date: '2024-01-31',
  time: '13:45:00',
  datetime: '2024-01-31T13:45:00.000Z',
  uuid: '00000000-0000-0000-0000-000000000000',
  // Conditions can use JSON only as a list.
  json: [],
}

/** `others` are further fields of users, for commands that run without model files and so cannot know the extensions of users. */
export function buildSampleUser(catalog: Catalog, others: readonly string[]): JsonObject {
  const user: Record<string, unknown> = Object.fromEntries(others.map((name) => [name, []]))
  for (const field of catalog.user.fields.values())
    if (isReadByDefault(field)) user[field.name] = getSampleValue(field)
  return { ...user, id: 1, version: 0 }
}

function getSampleValue({ type, relation, selection }: Field): unknown {
  if (!relation) return selection?.[0]?.value ?? SAMPLE_VALUES[type] ?? null
  return relation.isList ? [{ id: 1 }] : { id: 1 }
}
