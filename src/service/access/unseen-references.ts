// Handles related records that the sender of a draft cannot see. A draft cannot refer to them, and it does not remove them from lists.
import { getMemberId, type Draft, type DraftMember } from '../../model/write/draft.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import type { Field } from '../../model/values/field.js'
import { buildStep } from '../../model/query/path.js'
import { getReferenceId, type Value } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import { filterVisibleIds } from './visible-records.js'
import type { WriteContext } from '../context/context.js'

/** Refuses references to hidden records, also if they change nothing. Otherwise a client could probe which record a reference points to. */
export async function refuseHiddenReferences(
  context: WriteContext,
  { model, path, values, related, lists }: Draft,
): Promise<void> {
  if (!context.principal.permissions) return
  const errors = new FieldErrors()
  for (const field of model.fields.values()) {
    const { name } = field
    const value = values[name] ?? null
    if (!field.relation) continue
    if (value !== null && !related.has(name))
      await check(field, [{ at: path + name, id: getReferenceId(value) }])
    const members = (lists.get(name) ?? []).map((member, index) => ({
      member,
      at: `${path}${name}[${index}]`,
    }))
    await check(
      field,
      members.flatMap(({ member, at }) => (member.draft ? [] : [{ at, id: member.id }])),
    )
  }
  errors.refuseIfAny(model)
  async function check(field: Field, named: readonly { at: string; id: number }[]): Promise<void> {
    if (!context.principal.permissions || named.length === 0) return
    const step = buildStep(context.principal.permissions, model, field)
    const { target } = step
    const ids = named.map(({ id }) => id)
    const visibleIds = await filterVisibleIds(context, target, ids, step.visible)
    for (const { at, id } of named)
      if (!visibleIds.has(id)) errors.add(at, `refers to ${target.name} ${id}, which does not exist`)
  }
}

/** Adds the hidden members to the lists of a draft. A client that cannot see a member does not remove it by leaving it out. */
export async function keepHiddenMembers(
  context: WriteContext,
  draft: Draft,
  before: WireRecord,
): Promise<Draft> {
  if (!context.principal.permissions || draft.lists.size === 0) return draft
  const lists = new Map<string, readonly DraftMember[]>()
  for (const [name, members] of draft.lists) {
    const field = draft.model.fields.get(name)
    const currentMembers = before[name]
    if (!field || !Array.isArray(currentMembers)) continue
    const ids = currentMembers.map((member: Value) => getReferenceId(member))
    const step = buildStep(context.principal.permissions, draft.model, field)
    const visibleIds = await filterVisibleIds(context, step.target, ids, step.visible)
    const sentIds = new Set(members.map(getMemberId))
    const unseen = ids.filter((id) => !visibleIds.has(id) && !sentIds.has(id))
    lists.set(name, [...members, ...unseen.map((id) => ({ id }))])
  }
  return { ...draft, lists }
}
