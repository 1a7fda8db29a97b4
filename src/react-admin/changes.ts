// Finds what a form changed. Only changed fields are sent, because a whole record would put the values of others back.
import { isJsonObject, isSameJson } from '../client/answer.js'

/** Values of a form by field. */
export type AdminValues = Readonly<Record<string, unknown>>

/** Keys that a form carries along, and that a write names apart from its fields. */
const IDENTITY_KEYS: readonly string[] = ['id', 'version']

/** Returns the fields of `data` that differ from `base`, as the service takes them. */
export function findChanges(data: AdminValues, base: AdminValues): AdminValues {
  const changed = listFields(data)
    .map(([name, value]) => [name, toWritable(value, base[name])] as const)
    .filter(([name, value]) => !isUnchanged(value, base[name]))
  return Object.fromEntries(changed)
}

/** Returns the fields of `data` as the service takes them. */
export function toWritableRecord(data: AdminValues): AdminValues {
  return Object.fromEntries(listFields(data).map(([name, value]) => [name, toWritable(value, undefined)]))
}

function listFields(data: AdminValues): readonly (readonly [name: string, value: unknown])[] {
  return Object.entries(data).filter(([name, value]) => !IDENTITY_KEYS.includes(name) && value !== undefined)
}

/** An id in an address or in a select element is text. Any other value is returned as it is. */
export function toId(value: unknown): unknown {
  const isText = typeof value === 'string' && /^[1-9]\d{0,15}$/.test(value)
  return isText && isRecordId(Number(value)) ? Number(value) : value
}

export function isRecordId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

/**
 * An input for a reference binds `company.id`, so the form keeps the other keys of the former company: `{ id: 5, $version: 0,
 * name: 'Former' }`, or an id that is null after the input was cleared.
 */
function toWritable(value: unknown, base: unknown): unknown {
  if (Array.isArray(value)) return value.map((member) => toWritableMember(member, base))
  return isRelated(value, base) ? toWritableReference(value) : value
}

/** An input for a list of references may hold only their ids. */
function toWritableMember(member: unknown, list: unknown): unknown {
  const isList = Array.isArray(list) && list.some((each) => isJsonObject(each) && '$version' in each)
  if (isList && !isJsonObject(member)) return { id: toId(member) }
  return isJsonObject(member) && '$version' in member ? { id: toId(member['id']) } : member
}

function toWritableReference({ id }: AdminValues): AdminValues | null {
  return id === null || id === undefined || id === '' ? null : { id: toId(id) }
}

/** Only responses have `$version`. A value with `version` also changes the related record, so it is sent as it is. */
function isRelated(value: unknown, base: unknown): value is AdminValues {
  if (!isJsonObject(value) || !('id' in value) || 'version' in value) return false
  const isRead = '$version' in value || (isJsonObject(base) && '$version' in base)
  return isRead || Object.keys(value).length === 1
}

function isUnchanged(value: unknown, base: unknown): boolean {
  // An input that shows nothing has null; a record that was read in part lacks the field.
  if (value === null || base === undefined || base === null) return value === (base ?? null)
  if (Array.isArray(value) && Array.isArray(base)) {
    const members = base.map((member) => toWritableMember(member, base))
    return isSameJson(value, members)
  }
  return isSameJson(value, isRelated(base, base) ? toWritableReference(base) : base)
}
