// Parses one field of an NDJSON line, and fills in values that are missing.
import { listUsernameSpellings } from '../model/catalog/auth-models.js'
import { FieldError, type Field } from '../model/values/field.js'
import { parseValue } from '../model/values/field-types.js'
import { parseFileMetadata } from '../model/catalog/file-metadata.js'
import { isId, isObject, type Json, type Value } from '../model/values/value.js'
import { getDefaultValue } from '../model/definition/record-values.js'
import { isFileField, isOwnLink, isUserReference } from './transfer-fields.js'

export type ReportLineError = (path: string, error: string) => void

/** Returns the parser for values other than null. */
export function createFieldParser(field: Field): (input: unknown, report: ReportLineError) => Value {
  if (isOwnLink(field)) return (input, complain) => parseLinkInput(field, input, complain)
  const parse = isFileField(field)
    ? parseFileMetadata
    : (input: unknown) => (field.relation ? parseReferenceInput(field, input) : parseValue(field, input))
  return (input, complain) => {
    const value = parse(input)
    if (!(value instanceof FieldError)) return value
    complain(field.name, value.message)
    return null
  }
}

/** Returns the value for null and for an absent key. */
export function fillMissing(field: Field, input: unknown, now: string, report: ReportLineError): Value {
  const { name } = field
  if (isOwnLink(field)) return []
  const defaultValue = field.isSystem ? (name === 'createdOn' ? now : null) : getDefaultValue(field, now)
  const value = input === undefined ? defaultValue : null
  // The service assigns a missing number of a sequence.
  if (value === null && field.required && !field.sequence) report(name, 'is required')
  return value
}

function parseLinkInput(field: Field, input: unknown, report: ReportLineError): Value {
  if (!Array.isArray(input)) {
    report(field.name, 'must be a list')
    return []
  }
  const members = new Map<string | number, Json>()
  for (const [index, item] of input.entries()) {
    const member = parseReferenceInput(field, item)
    const path = `${field.name}[${index}]`
    if (member instanceof FieldError) report(path, member.message)
    else {
      const key = Object.values(member as object)[0] as string | number
      if (members.has(key)) report(path, 'is in the list twice')
      members.set(key, member)
    }
  }
  const isBefore = ([a]: [string | number, Json], [b]: [string | number, Json]) => (a < b ? -1 : 1)
  return [...members].sort(isBefore).map(([, member]) => member)
}

function parseReferenceInput(field: Field, input: unknown): Value | FieldError {
  const keys = isObject(input) ? Object.keys(input) : []
  if (isUserReference(field)) {
    const name = isObject(input) && keys.length === 1 ? input['username'] : undefined
    const username = typeof name === 'string' ? listUsernameSpellings(name)[0] : undefined
    return username === undefined
      ? new FieldError('must be null or a user such as { "username": "ada" }')
      : { username }
  }
  const id = isObject(input) && keys.length === 1 ? input['id'] : undefined
  if (isId(id)) return { id }
  if (id !== undefined) return new FieldError('must be an id, a whole number from 1')
  return new FieldError('must be null or a reference such as { "id": 1 }')
}
