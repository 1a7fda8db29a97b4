// Names of tables and indexes in the database.
import { hash } from 'node:crypto'

const MAX_IDENTIFIER_LENGTH = 63

/** The catalog permits only letters, digits, `_` and `.` in identifiers; quoting is a second line of defence. */
export function quoteIdentifier(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

export function toTableName(model: string): string {
  return model.length <= MAX_IDENTIFIER_LENGTH
    ? model
    : `${model.slice(0, MAX_IDENTIFIER_LENGTH - 13)}_${hashName(model)}`
}

export function toIndexName(model: string, isUnique: boolean, fields: readonly string[]): string {
  return `${isUnique ? 'unique' : 'index'}_${hashName([model, ...fields].join('\n'))}`
}

function hashName(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 12)
}
