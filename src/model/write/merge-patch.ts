// JSON Merge Patch (RFC 7396) for the values of JSON fields.
import type { Draft } from './draft.js'
import { FieldErrors } from '../definition/field-errors.js'
import { FieldError } from '../values/field.js'
import { parseValue } from '../values/field-types.js'
import { isObject, type Json, type Values } from '../values/value.js'

/** Merges an object into the target key by key; null removes a key. Any other value replaces the target. */
function applyMergePatch(target: Json, patch: Json): Json {
  if (!isObject(patch)) return patch
  // Uses a map instead of assignment because a key may be `__proto__`.
  const members = new Map(isObject(target) ? Object.entries<Json>(target) : [])
  for (const [name, value] of Object.entries<Json>(patch)) {
    if (value === null) members.delete(name)
    else members.set(name, applyMergePatch(members.get(name) ?? null, value))
  }
  return Object.fromEntries(members)
}

/** Marks the JSON fields of a patch request whose values are merge patches. */
export function markPatchedFields(draft: Draft): Draft {
  const { model, values } = draft
  const patched = Object.keys(values).filter(
    (name) => model.fields.get(name)?.type === 'json' && isObject(values[name]),
  )
  return { ...draft, patched: new Set(patched) }
}

/** Applies the sent merge patches to the values of the record, for the fields that the record contains. */
export function applyPatchToValues(
  sent: Values,
  patched: ReadonlySet<string> | undefined,
  record: Readonly<Values>,
): Values {
  if (!patched || patched.size === 0) return sent
  const values = { ...sent }
  for (const name of patched) {
    if (Object.hasOwn(sent, name) && Object.hasOwn(record, name))
      values[name] = applyMergePatch(record[name] ?? null, values[name] ?? null)
  }
  return values
}

/** Replaces the merge patches of the draft with the resulting values. */
export function applyPatchToDraft(draft: Draft, record: Readonly<Values>): Draft {
  const { model, path, patched } = draft
  if (!patched || patched.size === 0) return draft
  const values = applyPatchToValues(draft.values, patched, record)
  const errors = new FieldErrors()
  for (const name of patched) {
    const field = model.fields.get(name)
    if (!field) continue
    // Small patches may add up to a value that is too large.
    const result = parseValue(field, values[name])
    if (result instanceof FieldError) errors.add(path + name, result.message)
    else values[name] = result
  }
  errors.refuseIfAny(model)
  return { ...draft, values }
}
