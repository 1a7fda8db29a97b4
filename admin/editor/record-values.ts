// The values of a form, compared with those of a record and turned into what the service takes.
import { isPendingFile } from '../fields/field-props.js'
import type { FieldInfo } from '../service/model-info.js'

export type RecordValues = Readonly<Record<string, unknown>>

/** A member of an owned list. New ones have no id. */
export type Line = RecordValues

/** Keys that identify a line or say where it comes from. They are not values that somebody edits. */
const LINE_KEYS: readonly string[] = ['id', 'version', '$version', '$key']

export function isObject(value: unknown): value is RecordValues {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function listLines(value: unknown): readonly Line[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** The names of the values of a line. */
export function listLineFields(line: Line): readonly string[] {
  return Object.keys(line).filter((name) => !LINE_KEYS.includes(name))
}

/** Compares two values of a field as a person sees them. */
export function isSameValue(field: FieldInfo, left: unknown, right: unknown): boolean {
  if (isPendingFile(left) || isPendingFile(right)) return left === right
  switch (field.kind) {
    case 'reference':
      return findId(left) === findId(right)
    case 'links':
      return isSameJson(listIds(left).sort(), listIds(right).sort())
    case 'owned-list':
      return isSameJson(listLines(left).map(toComparable), listLines(right).map(toComparable))
    default:
      return isSameJson(left ?? null, right ?? null)
  }
}

/** Values inside of lines are compared without their field: a reference there has an id. */
export function isSameLineValue(left: unknown, right: unknown): boolean {
  return isSameJson(toComparableValue(left), toComparableValue(right))
}

function toComparable(line: Line): unknown {
  const values = listLineFields(line)
    .map((name) => [name, toComparableValue(line[name])] as const)
    .filter(([, value]) => value !== null)
    .sort(([left], [right]) => (left < right ? -1 : 1))
  return [line['id'] ?? null, values]
}

function toComparableValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toComparableValue)
  if (isObject(value) && 'id' in value) return { id: value['id'] }
  return value ?? null
}

export function findId(value: unknown): number | undefined {
  const id = isObject(value) ? value['id'] : undefined
  return typeof id === 'number' ? id : undefined
}

export function listIds(value: unknown): number[] {
  return listLines(value)
    .map(findId)
    .filter((id) => id !== undefined)
}

/** Objects are equal whatever the order of their keys. */
export function isSameJson(left: unknown, right: unknown): boolean {
  return JSON.stringify(sortKeys(left)) === JSON.stringify(sortKeys(right))
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortKeys(value[key])]),
  )
}

/** The fields that a person has changed, in the order of the form. */
export function listChangedFields(
  fields: readonly FieldInfo[],
  values: RecordValues,
  base: RecordValues,
): readonly FieldInfo[] {
  return fields.filter((field) => !isSameValue(field, values[field.name], base[field.name]))
}

/** A value as the service takes it. `base` is the value that the form was filled with. */
export function toWritable(field: FieldInfo, value: unknown, base: unknown): unknown {
  switch (field.kind) {
    case 'reference':
      return toReference(value)
    case 'links':
      return listIds(value).map((id) => ({ id }))
    case 'owned-list':
      return listLines(value).map((line) => toWritableLine(line, listLines(base)))
    default:
      return value === '' ? null : value
  }
}

/** Sends only what the person changed in a line, with the version of the line, so that nobody's change of it is overwritten. */
function toWritableLine(line: Line, bases: readonly Line[]): Line {
  const base = bases.find(({ id }) => id !== undefined && id === line['id'])
  const changed = listLineFields(line).filter((name) => !base || !isSameLineValue(line[name], base[name]))
  const values = Object.fromEntries(changed.map((name) => [name, toWritableLineValue(line[name])]))
  if (!base) return values
  const identity = { id: base['id'] }
  return changed.length === 0 ? identity : { ...identity, version: base['version'], ...values }
}

function toWritableLineValue(value: unknown): unknown {
  if (Array.isArray(value))
    return value.map((member: unknown) => (findId(member) === undefined ? member : toReference(member)))
  if (isObject(value) && 'id' in value) return toReference(value)
  return value === '' ? null : value
}

function toReference(value: unknown): { readonly id: number } | null {
  const id = findId(value)
  return id === undefined ? null : { id }
}

/** The body of an update or a create: the changed fields. Files travel apart. */
export function buildChanges(
  fields: readonly FieldInfo[],
  values: RecordValues,
  base: RecordValues,
): RecordValues {
  const changed = listChangedFields(fields, values, base).filter(({ kind }) => kind !== 'file')
  return Object.fromEntries(
    changed.map((field) => [field.name, toWritable(field, values[field.name], base[field.name])]),
  )
}
