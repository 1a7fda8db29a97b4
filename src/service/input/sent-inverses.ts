// Checks inverse relations that a client sends back as it has read them.
import type { Draft } from '../../model/write/draft.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import { describeInverseError, matchesClaim, type ClaimedMember } from '../../model/write/inverse-input.js'
import { parseRecordSelection, reduceToIds } from '../../model/query/selection.js'
import { compileSelection } from '../../store/sql/select.js'
import { isRecordVisible, readIfFits } from '../access/visible-records.js'
import { createIncomparableError } from './sent-names.js'
import { getVisibility, type WriteContext } from '../context/context.js'

/**
 * Refuses an inverse relation that differs from the stored one, because the client would believe that its change was written. Compares it
 * with what the client can see. Reads it before the first write and takes no lock: nothing is written, so no concurrent commit is lost.
 */
export async function refuseChangedInverses(context: WriteContext, draft: Draft, id: number): Promise<void> {
  const { model, inverses, path } = draft
  if (!inverses) return
  const { app } = context
  const visibility = getVisibility(app, context.principal)
  const related = [...inverses].flatMap(([name, members]) => {
    const fields = listClaimedFields(members)
    return fields.length > 0 ? [[name, fields] as const] : []
  })
  const fieldSelection = { fields: [...inverses.keys()], related: Object.fromEntries(related) }
  const selection = parseRecordSelection(visibility, model, fieldSelection)
  // Reads no names if the client sends only ids.
  const entries = selection.entries.map((entry) =>
    Object.hasOwn(fieldSelection.related, entry.key) ? entry : reduceToIds(entry),
  )
  const select = compileSelection(app.db.dialect, { ...selection, entries })
  const visibleRecord = await readIfFits(context, { model, id, select })
  if (!visibleRecord && (await isRecordVisible(context, { model, id })))
    throw createIncomparableError(context, path, [...inverses.keys()])
  const errors = new FieldErrors()
  for (const [name, members] of inverses) {
    const relation = model.fields.get(name)?.relation
    if (!relation || matchesClaim(visibility.getTarget(relation), members, visibleRecord?.[name])) continue
    errors.add(path + name, describeInverseError(relation))
  }
  errors.refuseIfAny(model)
}

function listClaimedFields(members: readonly ClaimedMember[]): string[] {
  return [...new Set(members.flatMap(({ fields }) => [...fields.keys()]))]
}
