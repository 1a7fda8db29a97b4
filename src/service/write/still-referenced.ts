// Refuses a transaction that removes a record to which others still refer.
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { andCriteria } from '../../model/query/criteria.js'
import { findReferringRecords, toReferrer } from '../../store/records/references.js'
import { filterVisibleIds } from '../access/visible-records.js'
import type { WriteContext } from '../context/context.js'

/** Runs after everything is written. `removedPaths` has the removed records, each with its path in the request. */
export async function refuseIfReferenced(
  context: WriteContext,
  removedPaths: ReadonlyMap<Model, ReadonlyMap<number, string>>,
): Promise<void> {
  const { app, tx } = context
  const references: RemainingReference[] = []
  let referenced: ReferencedRecord | undefined
  for (const [model, paths] of removedPaths) {
    const ids = [...paths.keys()]
    const undeclared = app.undeclaredReferrers.filter(({ target }) => target === model.name)
    for (const referrer of [...app.catalog.referencesTo(model).map(toReferrer), ...undeclared]) {
      const found = await findReferringRecords(tx, app.db.dialect, referrer, ids)
      const { total, firstTarget } = found
      if (total === 0) continue
      referenced ??= { model, id: firstTarget, path: paths.get(firstTarget) ?? '' }
      const reference = { entityName: referrer.model, field: referrer.field, total, ids: found.ids }
      references.push(...(await toVisibleReference(context, reference)))
    }
  }
  if (referenced) throw createReferencedError(context, referenced, references)
}

/** A hook may have removed a record of a model that the principal may not see. */
function createReferencedError(
  { principal }: WriteContext,
  referenced: ReferencedRecord,
  references: readonly RemainingReference[],
): VersoError {
  if (principal.permissions?.of(referenced.model).isVisible ?? true)
    return createStillReferencedError(referenced, references)
  const message = 'Other records still refer to a record that this request removes; nothing was changed'
  return new VersoError('still-referenced', message)
}

/** Limits the referring records in the error to those that the principal may see. */
async function toVisibleReference(
  context: WriteContext,
  reference: RemainingReference,
): Promise<RemainingReference[]> {
  const { app, principal } = context
  const { permissions } = principal
  if (!permissions) return [reference]
  const model = app.catalog.storedModels.find(({ name }) => name === reference.entityName)
  const field = model && permissions.findReadable(model, reference.field)
  if (!model || !field) return []
  const visible = andCriteria(permissions.of(model).criteriaFor('read'), permissions.mask(model, field))
  const ids = [...(await filterVisibleIds(context, model, reference.ids, visible))]
  return ids.length > 0 ? [{ ...reference, total: ids.length, ids }] : []
}

interface ReferencedRecord {
  readonly model: Model
  readonly id: number
  readonly path: string
}

interface RemainingReference {
  readonly entityName: string
  readonly field: string
  readonly total: number
  /** The first ids of the referring records. */
  readonly ids: readonly number[]
}

function createStillReferencedError(
  { model, id, path }: ReferencedRecord,
  references: readonly RemainingReference[],
): VersoError {
  const who = references.map(({ entityName, field, total, ids }) => {
    const more = total > ids.length ? ` and ${total - ids.length} more` : ''
    return `${entityName} ${ids.join(', ')}${more} (${field})`
  })
  const referrers = who.length > 0 ? who.join('; ') : 'other records'
  const message = `${model.name} ${id} is still referenced by ${referrers}: change or delete those records first; nothing was changed`
  return new VersoError('still-referenced', message, {
    data: { entityName: model.name, entityId: id, references },
    path,
  })
}
