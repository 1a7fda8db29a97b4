// Drafts that name records by refs: with the ids that those have got, or as they were sent.
import type { Draft, DraftMember } from './draft.js'
import type { PendingRecord, Refs } from './refs.js'
import { getReferenceId, type Values } from '../values/value.js'

/** The draft with the ids of what was made by now. */
export function replaceRefsWithIds(draft: Draft, refs: Refs, ids: ReadonlyMap<string, number>): Draft {
  return replaceRefs(draft, refs, ({ ref }) => {
    const id = ids.get(ref)
    if (id === undefined) throw new Error(`"${ref}" was to be made before it is referred to`)
    return { id }
  })
}

/** The draft for those who are told of it before anything is made. */
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
