// Drafts that name records by refs: with the ids that those have got, or as they were sent.
import type { Draft, Member } from './draft.js'
import type { Made, Refs } from './refs.js'
import { idOf, type Values } from '../values/value.js'

/** The draft with the ids of what was made by now. */
export function withIds(draft: Draft, refs: Refs, ids: ReadonlyMap<string, number>): Draft {
  return replaced(draft, refs, ({ ref }) => {
    const id = ids.get(ref)
    if (id === undefined) throw new Error(`"${ref}" was to be made before it is referred to`)
    return { id }
  })
}

/** The draft for those who are told of it before anything is made. */
export function withRefs(draft: Draft, refs: Refs): Draft {
  const nothing = { key: undefined, neighbours: new Map(), lists: new Map(), copies: new Map(), place: '' }
  return replaced(draft, refs, ({ ref, model }) => ({
    draft: { ...nothing, model, values: { $ref: ref } },
  }))
}

function replaced(draft: Draft, refs: Refs, memberFor: (made: Made) => Member): Draft {
  if (refs.areNone) return draft
  const replace = (member: Member): Member => {
    if (member.draft) return { draft: replaced(member.draft, refs, memberFor) }
    const made = refs.madeAs(member.id)
    return made ? memberFor(made) : member
  }
  const own = draft.key && replace({ id: draft.key.id })
  const key = draft.key && own && !own.draft ? { ...draft.key, id: own.id } : draft.key
  const values: Values = { ...draft.values }
  for (const [name, value] of Object.entries(values)) {
    if (value === null || !draft.model.fields.get(name)?.relation) continue
    const member = replace({ id: idOf(value) })
    values[name] = member.draft ? member.draft.values : { id: member.id }
  }
  const neighbours = [...draft.neighbours].map(
    ([name, neighbour]) => [name, replaced(neighbour, refs, memberFor)] as const,
  )
  const lists = [...draft.lists].map(([name, members]) => [name, members.map(replace)] as const)
  return { ...draft, key, values, neighbours: new Map(neighbours), lists: new Map(lists) }
}
