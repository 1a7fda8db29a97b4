// How one engine keeps the values of a field.
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import { getReferenceId, type Value } from '../../model/values/value.js'
import type { Column, Dialect, SqlValue } from '../engine/database.js'

export function getColumn(dialect: Dialect, field: Field): Column {
  const storage = getStorage(field)
  if (storage === 'none') throw new Error(`${field.name} has no column`)
  return dialect.columns[storage]
}

/** A reference is kept as the id of its target, and so is a file. */
export function encodeValue(dialect: Dialect, field: Field, value: Value): SqlValue {
  return createEncoder(dialect, field)(value)
}

/** The same for many values of one field. */
export function createEncoder(dialect: Dialect, field: Field): Column['encode'] {
  const column = getColumn(dialect, field)
  const isStoredAsId = field.relation !== undefined || field.type === 'binary'
  return isStoredAsId
    ? (value) => column.encode(value === null ? null : getReferenceId(value))
    : column.encode
}
