// Inverse relations that were sent as their sender believes them to be.
import type { Draft } from '../../model/write/draft.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import { describeInverseError, matchesClaim, type ClaimedMember } from '../../model/write/inverse-input.js'
import { parseRecordSelection, reduceToIds } from '../../model/query/selection.js'
import { compileSelection } from '../../store/sql/select.js'
import { getVisibility } from '../context/principal.js'
import { isRecordVisible, readIfFits } from '../access/visible-records.js'
import { createIncomparableError } from './sent-names.js'
import type { WriteContext } from '../context/context.js'

/**
 * Refuses a claim that is not what is stored: whoever has changed it believes that it was written. It is compared with what its sender
 * would be shown, so that nobody learns of others. The transaction reads it before it writes anything. Nothing is locked: a claim writes
 * nothing, so what somebody else commits meanwhile is not undone by it.
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
  // Where nothing is claimed of the records but who they are, their names are not read.
  const entries = selection.entries.map((entry) =>
    Object.hasOwn(fieldSelection.related, entry.key) ? entry : reduceToIds(entry),
  )
  const select = compileSelection(app.db.dialect, { ...selection, entries })
  const shown = await readIfFits(context, { model, id, select })
  if (!shown && (await isRecordVisible(context, { model, id })))
    throw createIncomparableError(context, path, [...inverses.keys()])
  const errors = new FieldErrors()
  for (const [name, members] of inverses) {
    const relation = model.fields.get(name)?.relation
    if (!relation || matchesClaim(visibility.getTarget(relation), members, shown?.[name])) continue
    errors.add(path + name, describeInverseError(relation))
  }
  errors.refuseIfAny(model)
}

function listClaimedFields(members: readonly ClaimedMember[]): string[] {
  return [...new Set(members.flatMap(({ fields }) => [...fields.keys()]))]
}
