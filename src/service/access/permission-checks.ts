// Whether a caller may do something at all; which records it is for is decided where they are.
import { VersoError } from '../../errors.js'
import { createUnknownModelError } from '../../model/catalog/catalog.js'
import type { Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import { PERMISSION_ACTIONS, type PermissionAction } from '../../model/access/permissions.js'
import { isReadOnly } from '../../model/catalog/system-models.js'
import * as store from '../../store/records/records.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { missing } from '../context/ids.js'

/** The model of that name. One that the caller may do nothing with is like one that is not there. */
export function modelFor(app: Pick<App, 'catalog'>, { rights }: Caller, name: string): Model {
  const model = app.catalog.get(name)
  if (rights && !rights.of(model).isVisible) throw createUnknownModelError(name)
  return model
}

export function requirePermitted({ rights }: Caller, action: PermissionAction, model: Model): void {
  if (!rights || rights.of(model).can(action)) return
  throw new VersoError('forbidden', `You may not ${action} records of ${model.name}`)
}

/** Those that the caller may do anything with. */
export function modelsKnownTo({ catalog }: Pick<App, 'catalog'>, { rights }: Caller): readonly Model[] {
  return catalog.storedModels.filter((model) => !rights || rights.of(model).isVisible)
}

/** What may be done with some record of the model. */
export function actionsOf({ rights }: Caller, model: Model): readonly PermissionAction[] {
  const isPossible = (action: PermissionAction) =>
    action === 'read' || action === 'export' || !isReadOnly(model)
  return PERMISSION_ACTIONS.filter(
    (action) => isPossible(action) && (!rights || rights.of(model).can(action)),
  )
}

/** The same, or what may be done with this one as it is now. */
export async function permittedActions(
  app: App,
  by: Caller,
  model: Model,
  id?: number,
): Promise<PermissionAction[]> {
  const permitted = [...actionsOf(by, model)]
  if (id === undefined) return permitted
  const rights = by.rights?.of(model)
  const table = app.tables.of(model)
  const rows = permitted.map((action) => rights?.criteriaFor(action))
  const asked = [rights?.criteriaFor('read'), ...rows].map((row) => row ?? EVERYTHING)
  const [isSeen, ...holds] = (await store.evaluateCriteria(app.db.queryPool, table, id, asked)) ?? [false]
  return isSeen === true ? permitted.filter((_, index) => holds[index]) : missing(model, id)
}

const EVERYTHING: Criteria = { kind: 'and', criteria: [] }

/** For what concerns the accounts of others. */
export function requireAdmin({ rights }: Caller): void {
  if (rights) throw new VersoError('forbidden', 'This is for administrators')
}
