// Checks related records that a client sends back as it has read them: a changed name is refused.
import { VersoError } from '../../errors.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import { isObject, isSameValue, type Json, type JsonObject } from '../../model/values/value.js'
import type { Draft } from '../../model/write/draft.js'
import { selectFullRecord, type Selection } from '../../model/query/selection.js'
import { compileSelection } from '../../store/sql/select.js'
import type { WireRecord } from '../../wire.js'
import { throwNotFound } from '../access/request-checks.js'
import { formatBytes } from '../context/answer-limits.js'
import { isRecordVisible, readIfFits } from '../access/visible-records.js'
import { getVisibility, type WriteContext } from '../context/context.js'

/** Compares with the names that the client can see. A client cannot have changed a hidden name, and must not be able to guess it. */
export async function refuseChangedCopies(
  context: WriteContext,
  draft: Draft,
  before: WireRecord,
): Promise<void> {
  if (draft.copies.size === 0) return
  const compared = findNamedCopies(context, draft)
  if (compared.length === 0) return
  // The record was read with the names of its references and without those of list members.
  const isKnown = (name: string) => draft.model.fields.get(name)?.relation?.isList !== true
  const isRead = !context.principal.permissions && compared.every(isKnown)
  refuseEditedCopies(draft, isRead ? before : await readVisibleNames(context, draft, before.id, compared))
}

/**
 * A related record with `$version` changes nothing, so that a record can be sent back as it was read. If the client changed the name in
 * it, and the stored related record is still the one that was read, this is an error instead of a silent loss.
 */
function refuseEditedCopies({ model, copies }: Draft, record: JsonObject): void {
  const errors = new FieldErrors()
  for (const [name, sent] of copies) {
    const records = [record[name]].flat().filter(isObject)
    const stored = new Map(records.map((relatedRecord) => [relatedRecord['id'], relatedRecord]))
    for (const { id, version, data, path } of sent) {
      const related = stored.get(id)
      if (related?.['$version'] !== version) continue
      for (const [key, value] of Object.entries(related)) {
        if (Object.hasOwn(data, key) && !isSameValue(value as Json, data[key] as Json))
          errors.add(
            `${path}.${key}`,
            'was changed in a reference: send "version" instead of "$version" to update the related record',
          )
      }
    }
  }
  errors.refuseIfAny(model)
}

/** Lists the relations in which the client sent a name. Nothing else of a copy can be changed. */
function findNamedCopies({ app }: WriteContext, { model, copies }: Draft): string[] {
  return [...copies].flatMap(([name, sent]) => {
    const relation = model.fields.get(name)?.relation
    const { nameField = '' } = relation ? app.catalog.getTarget(relation) : {}
    return sent.some(({ data }) => Object.hasOwn(data, nameField)) ? [name] : []
  })
}

/** Reads the record as the client sees it; only these relations if the whole does not fit an answer. */
async function readVisibleNames(
  context: WriteContext,
  { model, path }: Draft,
  id: number,
  names: readonly string[],
): Promise<WireRecord> {
  const { app } = context
  const whole = await readIfFits(context, { model, id })
  if (whole) return whole
  const full = selectFullRecord(getVisibility(app, context.principal), model)
  const selection: Selection = { ...full, entries: full.entries.filter((entry) => names.includes(entry.key)) }
  const select = compileSelection(app.db.dialect, selection)
  const relations = await readIfFits(context, { model, id, select })
  if (relations) return relations
  if (!(await isRecordVisible(context, { model, id }))) throwNotFound(model, id)
  throw createIncomparableError(context, path, names)
}

/** Builds the error for relations whose stored names do not fit an answer. */
export function createIncomparableError(
  { app }: WriteContext,
  path: string,
  names: readonly string[],
): VersoError {
  const fields = names.map((name) => `"${path}${name}"`).join(', ')
  const limit = formatBytes(app.settings.responseLimitBytes)
  const message =
    `The stored names in ${fields} take more than ${limit} and cannot be compared with the names that were sent. ` +
    'Omit the relation, or send the "id" of each of its records without the name; nothing was changed'
  return new VersoError('too-large', message)
}
