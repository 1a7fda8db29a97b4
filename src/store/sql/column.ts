// Converts values of a field to and from the columns of an engine.
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import { getReferenceId, type Json, type Value } from '../../model/values/value.js'
import type { Column, JsonColumn } from '../engine/columns.js'
import type { Dialect, SqlValue } from '../engine/database.js'

export function getColumn(dialect: Dialect, field: Field): Column {
  return dialect.columns[requireStorage(field)]
}

/** References and files are stored as the id of their target. */
export function encodeValue(dialect: Dialect, field: Field, value: Value): SqlValue {
  return getColumn(dialect, field).encode(
    isStoredAsId(field) && value !== null ? getReferenceId(value) : value,
  )
}

export function isStoredAsId(field: Field): boolean {
  return field.relation !== undefined || field.type === 'binary'
}

/** The `encode` of columns that store values as they are. */
export function encodeAsIs(value: Value): SqlValue {
  return value as SqlValue
}

export function toJsonColumn(field: Field): JsonColumn {
  return { name: field.name, storage: requireStorage(field) }
}

function requireStorage(field: Field): JsonColumn['storage'] {
  const storage = getStorage(field)
  if (storage === 'none') throw new Error(`${field.name} has no column`)
  return storage
}

export type ValueDecoder = (stored: SqlValue | Json) => Value

/** Decodes a value from its column, or from JSON. Decimals get all digits of their scale. */
export function createDecoder(dialect: Dialect, field: Field): ValueDecoder {
  const decode = getColumn(dialect, field).decode as ValueDecoder
  if (field.type !== 'decimal') return decode
  return (stored) => {
    const value = decode(stored)
    return value === null ? null : padScale(value as string, field.scale)
  }
}

export function padScale(decimal: string, scale: number): string {
  const [integer = '', fraction = ''] = decimal.split('.')
  return scale === 0 ? integer : `${integer}.${fraction.padEnd(scale, '0')}`
}
