import { VersoError, type ErrorDetails } from '../../errors.js'
import { UniqueViolation } from '../engine/unique-violation.js'
import { toIndexName } from '../engine/names.js'
import type { Table } from '../sql/table.js'

/** A unique index refused a row of a list. */
export class NotUniqueError extends VersoError {
  constructor(
    message: string,
    details: ErrorDetails,
    /** The index of the row in its list; undefined if it is not known. */
    readonly index: number | undefined,
  ) {
    super('not-unique', message, details)
  }
}

/** Translates a violated unique index into an error that names the fields. Returns other errors unchanged. */
export function toNotUniqueError(table: Table, error: unknown, index?: number): unknown {
  if (!(error instanceof UniqueViolation)) return error
  const { name, unique } = table.model
  const fields =
    unique.find((set) => toIndexName(name, true, set) === error.index) ??
    unique.find((set) => set.join() === error.columns.join()) ??
    error.columns
  const errors = Object.fromEntries(fields.map((field) => [field, 'is already used by another record']))
  const details = { errors, data: { entityName: name, fields }, cause: error }
  return new NotUniqueError(
    `Another ${name} has the same ${fields.join(' and ')}; nothing was changed`,
    details,
    index,
  )
}
