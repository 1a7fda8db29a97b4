// Inverse relations that were sent as their sender believes them to be.
import type { Draft } from '../../model/write/draft.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import { describeInverseError, matchesClaim, type ClaimedMember } from '../../model/write/inverse-input.js'
import { parseRecordSelection, reduceToIds } from '../../model/query/selection.js'
import { compileSelection } from '../../store/sql/select.js'
import { sightOf } from '../context/principal.js'
import { isSeen, readToAnswer } from '../access/visible-records.js'
import { incomparable } from './sent-names.js'
import type { Work } from '../context/context.js'

/**
 * Refuses a claim that is not what is stored: whoever has changed it believes that it was written. It is compared with what its sender
 * would be shown, so that nobody learns of others. The transaction reads it before it writes anything. Nothing is locked: a claim writes
 * nothing, so what somebody else commits meanwhile is not undone by it.
 */
export async function refuseChangedInverses(work: Work, draft: Draft, id: number): Promise<void> {
  const { model, inverses, path } = draft
  if (!inverses) return
  const { app, tx } = work
  const sight = sightOf(app, work)
  const related = [...inverses].flatMap(([name, members]) => {
    const fields = fieldsIn(members)
    return fields.length > 0 ? [[name, fields] as const] : []
  })
  const wanted = { fields: [...inverses.keys()], related: Object.fromEntries(related) }
  const selection = parseRecordSelection(sight, model, wanted)
  // Where nothing is claimed of the records but who they are, their names are not read.
  const entries = selection.entries.map((entry) =>
    Object.hasOwn(wanted.related, entry.key) ? entry : reduceToIds(entry),
  )
  const select = compileSelection(app.db.dialect, { ...selection, entries })
  const shown = await readToAnswer(app, work, tx, { model, id, select })
  if (!shown && (await isSeen(app, work, tx, { model, id })))
    throw incomparable(work, path, [...inverses.keys()])
  const faults = new FieldErrors()
  for (const [name, members] of inverses) {
    const relation = model.fields.get(name)?.relation
    if (!relation || matchesClaim(sight.getTarget(relation), members, shown?.[name])) continue
    faults.add(path + name, describeInverseError(relation))
  }
  faults.refuseIfAny(model)
}

function fieldsIn(members: readonly ClaimedMember[]): string[] {
  return [...new Set(members.flatMap(({ fields }) => [...fields.keys()]))]
}
