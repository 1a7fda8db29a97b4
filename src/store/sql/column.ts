// Converts values of a field to and from the columns of an engine.
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import { getReferenceId, type Value } from '../../model/values/value.js'
import type { Column, Dialect, JsonColumn, SqlValue } from '../engine/database.js'

export function getColumn(dialect: Dialect, field: Field): Column {
  return dialect.columns[requireStorage(field)]
}

/** References and files are stored as the id of their target. */
export function encodeValue(dialect: Dialect, field: Field, value: Value): SqlValue {
  return createEncoder(dialect, field)(value)
}

/** Prepares `encodeValue` for many values of one field. */
export function createEncoder(dialect: Dialect, field: Field): Column['encode'] {
  const column = getColumn(dialect, field)
  const isStoredAsId = field.relation !== undefined || field.type === 'binary'
  return isStoredAsId
    ? (value) => column.encode(value === null ? null : getReferenceId(value))
    : column.encode
}

export function toJsonColumn(field: Field): JsonColumn {
  return { name: field.name, storage: requireStorage(field) }
}

function requireStorage(field: Field): JsonColumn['storage'] {
  const storage = getStorage(field)
  if (storage === 'none') throw new Error(`${field.name} has no column`)
  return storage
}
