// Replaces the temporary ids of refs in drafts.
import type { Draft, DraftMember } from './draft.js'
import type { PendingRecord, Refs } from './refs.js'
import { getReferenceId, type Values } from '../values/value.js'

/** Replaces them with the ids of the records that the batch has created. */
export function replaceRefsWithIds(draft: Draft, refs: Refs, ids: ReadonlyMap<string, number>): Draft {
  return replaceRefs(draft, refs, ({ ref }) => {
    const id = ids.get(ref)
    if (id === undefined) throw new Error(`the record of ref "${ref}" does not exist yet`)
    return { id }
  })
}

/** Replaces them with `{ $ref }` as the client sent it, for validation before the batch creates anything. */
export function replaceRefsWithDrafts(draft: Draft, refs: Refs): Draft {
  const nothing = { key: undefined, related: new Map(), lists: new Map(), copies: new Map(), path: '' }
  return replaceRefs(draft, refs, ({ ref, model }) => ({
    draft: { ...nothing, model, values: { $ref: ref } },
  }))
}

function replaceRefs(draft: Draft, refs: Refs, createMember: (pending: PendingRecord) => DraftMember): Draft {
  if (refs.isEmpty) return draft
  const replace = (member: DraftMember): DraftMember => {
    if (member.draft) return { draft: replaceRefs(member.draft, refs, createMember) }
    const made = refs.findPending(member.id)
    return made ? createMember(made) : member
  }
  const own = draft.key && replace({ id: draft.key.id })
  const key = draft.key && own && !own.draft ? { ...draft.key, id: own.id } : draft.key
  const values: Values = { ...draft.values }
  for (const [name, value] of Object.entries(values)) {
    if (value === null || !draft.model.fields.get(name)?.relation) continue
    const member = replace({ id: getReferenceId(value) })
    values[name] = member.draft ? member.draft.values : { id: member.id }
  }
  const related = [...draft.related].map(
    ([name, relatedRecord]) => [name, replaceRefs(relatedRecord, refs, createMember)] as const,
  )
  const lists = [...draft.lists].map(([name, members]) => [name, members.map(replace)] as const)
  return { ...draft, key, values, related: new Map(related), lists: new Map(lists) }
}
