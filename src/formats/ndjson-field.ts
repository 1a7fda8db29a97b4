// One field of a line: what stands there as the value of a record, and what stands for it where nothing does.
import { usernameSpellings } from '../model/catalog/auth-models.js'
import { Fault, parseValue, type Field } from '../model/values/field-types.js'
import { parseFacts } from '../model/catalog/file-facts.js'
import { isId, isObject, type Json, type Value } from '../model/values/value.js'
import { defaultOf } from '../model/definition/record-values.js'
import { isFile, isLink, isUser } from './transfer-fields.js'

export type Report = (place: string, fault: string) => void

/** How a field is read where it is given. */
export function parserOf(field: Field): (input: unknown, complain: Report) => Value {
  if (isLink(field)) return (input, complain) => readLink(field, input, complain)
  const parse = isFile(field)
    ? parseFacts
    : (input: unknown) => (field.relation ? readReference(field, input) : parseValue(field, input))
  return (input, complain) => {
    const value = parse(input)
    if (!(value instanceof Fault)) return value
    complain(field.name, value.message)
    return null
  }
}

/** What stands for null, and for what is not there. */
export function missing(field: Field, input: unknown, now: string, complain: Report): Value {
  const { name } = field
  if (isLink(field)) return []
  const usual = field.kept ? (name === 'createdOn' ? now : null) : defaultOf(field, now)
  const value = input === undefined ? usual : null
  // A number that is missing is given by the service.
  if (value === null && field.required && !field.sequence) complain(name, 'is required')
  return value
}

function readLink(field: Field, input: unknown, complain: Report): Value {
  if (!Array.isArray(input)) {
    complain(field.name, 'must be a list')
    return []
  }
  const members = new Map<string | number, Json>()
  for (const [index, item] of input.entries()) {
    const member = readReference(field, item)
    const place = `${field.name}[${index}]`
    if (member instanceof Fault) complain(place, member.message)
    else {
      const key = Object.values(member as object)[0] as string | number
      if (members.has(key)) complain(place, 'is in the list twice')
      members.set(key, member)
    }
  }
  const isBefore = ([a]: [string | number, Json], [b]: [string | number, Json]) => (a < b ? -1 : 1)
  return [...members].sort(isBefore).map(([, member]) => member)
}

function readReference(field: Field, input: unknown): Value | Fault {
  const keys = isObject(input) ? Object.keys(input) : []
  if (isUser(field)) {
    const given = isObject(input) && keys.length === 1 ? input['username'] : undefined
    const username = typeof given === 'string' ? usernameSpellings(given)[0] : undefined
    return username === undefined
      ? new Fault('must be null or a user such as { "username": "ada" }')
      : { username }
  }
  const id = isObject(input) && keys.length === 1 ? input['id'] : undefined
  if (isId(id)) return { id }
  if (id !== undefined) return new Fault('must be an id, a whole number from 1')
  return new Fault('must be null or a reference such as { "id": 1 }')
}
