// JSON Merge Patch (RFC 7396), for the values of json fields: what is sent for one changes what is there.
import type { Draft } from './draft.js'
import { FieldErrors } from '../definition/field-errors.js'
import { FieldError, parseValue } from '../values/field-types.js'
import { isObject, type Json, type Values } from '../values/value.js'

/** An object changes the object that is there, member by member, and null removes a member; all else takes its place. */
export function applyMergePatch(target: Json, patch: Json): Json {
  if (!isObject(patch)) return patch
  // Not by assignment: a member may be called __proto__.
  const members = new Map(isObject(target) ? Object.entries<Json>(target) : [])
  for (const [name, value] of Object.entries<Json>(patch)) {
    if (value === null) members.delete(name)
    else members.set(name, applyMergePatch(members.get(name) ?? null, value))
  }
  return Object.fromEntries(members)
}

/** The draft of a patch: it knows which of its values change what is there. */
export function markPatchedFields(draft: Draft): Draft {
  const { model, values } = draft
  const patched = Object.keys(values).filter(
    (name) => model.fields.get(name)?.type === 'json' && isObject(values[name]),
  )
  return { ...draft, patched: new Set(patched) }
}

/** What was sent, made from what the record holds, as far as that is told. */
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

/** The draft with the values that the record is to hold. */
export function applyPatchToDraft(draft: Draft, record: Readonly<Values>): Draft {
  const { model, path, patched } = draft
  if (!patched || patched.size === 0) return draft
  const values = applyPatchToValues(draft.values, patched, record)
  const errors = new FieldErrors()
  for (const name of patched) {
    const field = model.fields.get(name)
    if (!field) continue
    // Small patches may make a large value.
    const result = parseValue(field, values[name])
    if (result instanceof FieldError) errors.add(path + name, result.message)
    else values[name] = result
  }
  errors.refuseIfAny(model)
  return { ...draft, values }
}
