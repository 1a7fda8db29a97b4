// Converts a record from another service with the same protocol to an NDJSON line. Accepts variations; the check of the line is strict.
import type { Field } from '../model/values/field.js'
import { isOwnLink, isUserReference, listTransferFields } from './transfer-fields.js'
import type { Model } from '../model/definition/model.js'
import { isObject, type JsonObject } from '../model/values/value.js'

/** Excludes references to users, which come without user names, and computed fields, which this service computes itself. */
export function listRemoteFields(model: Model): readonly Field[] {
  return listTransferFields(model).filter((field) => !field.computed && !isUserReference(field))
}

export function convertRemoteRecord(
  fields: readonly Field[],
  record: JsonObject,
  isJsonText: boolean,
): JsonObject {
  const line: Record<string, unknown> = { id: record['id'], version: record['version'] ?? 0 }
  for (const field of fields) {
    const value = record[field.name]
    // Fields that the other service does not have get their defaults.
    const isUnknown = value === undefined || (field.name === 'archived' && value === null)
    if (!isUnknown) line[field.name] = convertRemoteValue(field, value, isJsonText)
  }
  return line
}

function convertRemoteValue(field: Field, value: unknown, isJsonText: boolean): unknown {
  if (isOwnLink(field)) return Array.isArray(value) ? value.map(toIdReference) : []
  if (value === null) return null
  if (field.relation) return toIdReference(value)
  if (typeof value !== 'string') return value
  if (field.type === 'json') return isJsonText ? parseJsonOrKeepText(value) : value
  if (field.type === 'decimal') return trimToScale(value, field.scale)
  return field.type === 'datetime' ? addUtcOffset(value) : value
}

function toIdReference(related: unknown): unknown {
  return isObject(related) ? { id: related['id'] } : related
}

function parseJsonOrKeepText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Removes zeros beyond the scale of the field. */
function trimToScale(text: string, scale: number): string {
  const [integer = '', fraction = ''] = text.split('.')
  const spare = fraction.slice(scale)
  if (spare === '' || /[^0]/.test(spare)) return text
  return scale === 0 ? integer : `${integer}.${fraction.slice(0, scale)}`
}

/** A time without an offset is UTC. */
function addUtcOffset(text: string): string {
  return /([Zz]|[+-]\d{2}:?\d{2})$/.test(text) ? text : `${text}Z`
}
