// Names in the database.
import { hash } from 'node:crypto'

const MAX_IDENTIFIER = 63

/** Identifiers come from the catalog, where only letters, digits, `_` and `.` pass; quoting is the second lock. */
export function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

export function tableName(model: string): string {
  return model.length <= MAX_IDENTIFIER ? model : `${model.slice(0, MAX_IDENTIFIER - 13)}_${digest(model)}`
}

export function indexName(model: string, isUnique: boolean, fields: readonly string[]): string {
  return `${isUnique ? 'unique' : 'index'}_${digest([model, ...fields].join('\n'))}`
}

function digest(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 12)
}
