// JSON Merge Patch (RFC 7396), for the values of json fields: what is sent for one changes what is there.
import type { Draft } from './draft.js'
import { Faults } from '../definition/field-errors.js'
import { Fault, parseValue } from '../values/field-types.js'
import { isObject, type Json, type Values } from '../values/value.js'

/** An object changes the object that is there, member by member, and null removes a member; all else takes its place. */
export function applyPatch(target: Json, patch: Json): Json {
  if (!isObject(patch)) return patch
  // Not by assignment: a member may be called __proto__.
  const members = new Map(isObject(target) ? Object.entries<Json>(target) : [])
  for (const [name, value] of Object.entries<Json>(patch)) {
    if (value === null) members.delete(name)
    else members.set(name, applyPatch(members.get(name) ?? null, value))
  }
  return Object.fromEntries(members)
}

/** The draft of a patch: it knows which of its values change what is there. */
export function asPatch(draft: Draft): Draft {
  const { model, values } = draft
  const patched = Object.keys(values).filter(
    (name) => model.fields.get(name)?.type === 'json' && isObject(values[name]),
  )
  return { ...draft, patched: new Set(patched) }
}

/** What was sent, made from what the record holds, as far as that is told. */
export function patchValues(
  sent: Values,
  patched: ReadonlySet<string> | undefined,
  record: Readonly<Values>,
): Values {
  if (!patched || patched.size === 0) return sent
  const values = { ...sent }
  for (const name of patched) {
    if (Object.hasOwn(sent, name) && Object.hasOwn(record, name))
      values[name] = applyPatch(record[name] ?? null, values[name] ?? null)
  }
  return values
}

/** The draft with the values that the record is to hold. */
export function patchDraft(draft: Draft, record: Readonly<Values>): Draft {
  const { model, place, patched } = draft
  if (!patched || patched.size === 0) return draft
  const values = patchValues(draft.values, patched, record)
  const faults = new Faults()
  for (const name of patched) {
    const field = model.fields.get(name)
    if (!field) continue
    // Small patches may make a large value.
    const result = parseValue(field, values[name])
    if (result instanceof Fault) faults.add(place + name, result.message)
    else values[name] = result
  }
  faults.refuseIfAny(model)
  return { ...draft, values }
}
