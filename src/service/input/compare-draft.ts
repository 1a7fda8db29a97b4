// Compares a draft with the stored record before anything of it is written.
import { toValues } from '../../model/definition/record-values.js'
import { applyPatchToDraft } from '../../model/write/merge-patch.js'
import type { Draft } from '../../model/write/draft.js'
import type { WireRecord } from '../../wire.js'
import { keepHiddenMembers, refuseHiddenReferences } from '../access/unseen-references.js'
import type { WritePlan } from '../context/app.js'
import type { WriteContext } from '../context/context.js'
import { refuseChangedInverses } from './sent-inverses.js'
import { refuseChangedCopies } from './sent-names.js'

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
