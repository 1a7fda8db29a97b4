/** Values as JSON bodies and the log contain them, in one canonical spelling for each type. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
export type Value = Json
export type Values = Record<string, Value>

const MAX_JSON_VALUE_DEPTH = 64

/** A parsed JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Narrows to unknown items, where `Array.isArray` narrows to any. */
export function isArray(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

export function isNonNegativeInteger(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0
}

export function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0
}

export function isVersion(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** Returns the id of a reference `{ id }` as the log stores it. */
export function getReferenceId(reference: Value): number {
  return (reference as { readonly id: number }).id
}

/** Returns the id of a reference; undefined if there is none. */
export function findReferenceId(reference: unknown): number | undefined {
  return isObject(reference) ? Number(reference['id']) : undefined
}

/** Compares as JSON: the order of keys does not matter, the order of a list does. */
export function isSameValue(a: Value, b: Value): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b)) return false
    return a.length === b.length && a.every((item: Json, index) => isSameValue(item, b[index] as Json))
  }
  const [left, right] = [a as Readonly<Record<string, Json>>, b as Readonly<Record<string, Json>>]
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  return keys.every((key) => Object.hasOwn(right, key) && isSameValue(left[key] as Json, right[key] as Json))
}

/** Counts code points; length limits use this number. */
export function countCharacters(text: string): number {
  let count = text.length
  for (const point of text) count -= point.length - 1
  return count
}

/** Returns an error message if the engines would not store this text alike. */
export function validateText(text: string): string | undefined {
  if (text.includes('\0')) return 'must not contain the NUL character'
  if (!text.isWellFormed()) return 'must not contain half of a surrogate pair'
  return undefined
}

/** Returns an error message if this parsed JSON cannot be stored and serialized exactly. */
export function validateJson(value: unknown, depth = 0): string | undefined {
  if (depth > MAX_JSON_VALUE_DEPTH) return `must not be nested deeper than ${MAX_JSON_VALUE_DEPTH} levels`
  if (typeof value === 'string') return validateText(value)
  if (typeof value === 'number')
    return Number.isFinite(value) ? undefined : 'contains a number that is too large'
  if (typeof value === 'boolean' || value === null) return undefined
  if (Array.isArray(value)) return findFirstError(value, (item) => validateJson(item, depth + 1))
  if (isObject(value)) {
    return findFirstError(
      Object.entries(value),
      ([key, item]) => validateText(key) ?? validateJson(item, depth + 1),
    )
  }
  return 'must be a JSON value'
}

function findFirstError<T>(items: readonly T[], check: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const error = check(item)
    if (error !== undefined) return error
  }
  return undefined
}

/** Lists the ids of related records. */
export function listIds(list: unknown): number[] {
  return Array.isArray(list) ? list.filter(isObject).map(({ id }) => Number(id)) : []
}
