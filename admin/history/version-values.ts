// Compares the values of versions.
import type { FieldInfo, ModelInfo } from '../service/model-info.js'

type PlainRecord = Readonly<Record<string, unknown>>

/** The fields that a version has. The version itself, and who changed it when, are shown above them. */
export function listVersionFields(
  { fields }: ModelInfo,
  ...records: readonly (PlainRecord | undefined)[]
): readonly FieldInfo[] {
  return fields.filter(
    ({ name, isSystem }) =>
      !isSystem && records.some((record) => record !== undefined && record[name] !== undefined),
  )
}

/** Related records are equal if they are the same records: their names are those of today. */
export function areEqualValues(a: unknown, b: unknown): boolean {
  return JSON.stringify(simplify(a)) === JSON.stringify(simplify(b))
}

function simplify(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (Array.isArray(value)) return value.map(simplify)
  if (typeof value !== 'object') return value
  if ('id' in value && ('$version' in value || Object.keys(value).length === 1)) return { id: value.id }
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, simplify(each)]),
  )
}
