// Compares a draft with the stored record before anything of it is written.
import { FieldErrors } from '../../model/definition/field-errors.js'
import { toValues } from '../../model/definition/record-values.js'
import { parseRecordSelection, reduceToIds } from '../../model/query/selection.js'
import { applyPatchToDraft } from '../../model/write/merge-patch.js'
import type { Draft } from '../../model/write/draft.js'
import { describeInverseError, matchesClaim, type ClaimedMember } from '../../model/write/inverse-input.js'
import { compileSelection } from '../../store/sql/select.js'
import type { WireRecord } from '../../wire.js'
import { keepHiddenMembers, refuseHiddenReferences } from '../access/unseen-references.js'
import { isRecordVisible, readIfFits } from '../access/visible-records.js'
import type { WritePlan } from '../context/app.js'
import { getVisibility, type WriteContext } from '../context/context.js'
import { createIncomparableError, refuseChangedCopies } from './sent-names.js'

/** Returns the draft to write: with patches applied, and with the list members that the principal cannot see. */
export async function compareWithStored(
  context: WriteContext,
  plan: WritePlan,
  draft: Draft,
  before: WireRecord,
): Promise<Draft> {
  if (plan.sentBack) await refuseChangedCopies(context, draft, before)
  if (plan.references || plan.lists) await refuseHiddenReferences(context, draft)
  if (plan.sentBack) await refuseChangedInverses(context, draft, before.id)
  const patched = plan.patches ? applyPatchToDraft(draft, toValues(draft.model, before)) : draft
  return plan.lists ? keepHiddenMembers(context, patched, before) : patched
}

/**
 * Refuses an inverse relation that differs from the stored one, because the client would believe that its change was written. Compares it
 * with what the client can see. Reads it before the first write and takes no lock: nothing is written, so no concurrent commit is lost.
 */
async function refuseChangedInverses(context: WriteContext, draft: Draft, id: number): Promise<void> {
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
