// Whether a caller may do something at all; which records it is for is decided where they are.
import { VersoError } from '../../errors.js'
import { createUnknownModelError } from '../../model/catalog/catalog.js'
import type { Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import { PERMISSION_ACTIONS, type PermissionAction } from '../../model/access/permissions.js'
import * as store from '../../store/records/records.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { throwNotFound } from '../context/ids.js'

/** The model of that name. One that the caller may do nothing with is like one that is not there. */
export function requireKnownModel(
  app: Pick<App, 'catalog'>,
  { permissions }: Principal,
  name: string,
): Model {
  const model = app.catalog.get(name)
  if (permissions && !permissions.of(model).isVisible) throw createUnknownModelError(name)
  return model
}

export function requirePermission({ permissions }: Principal, action: PermissionAction, model: Model): void {
  if (!permissions || permissions.of(model).can(action)) return
  throw new VersoError('forbidden', `You may not ${action} records of ${model.name}`)
}

/** Refuses a model whose records no create request can create, before it reports errors of their fields. */
export function requireDirectCreate({ createInstruction }: Model): void {
  if (createInstruction !== undefined) throw new VersoError('forbidden', createInstruction)
}

/** Those that the caller may do anything with. */
export function listPermittedModels(
  { catalog }: Pick<App, 'catalog'>,
  { permissions }: Principal,
): readonly Model[] {
  return catalog.storedModels.filter((model) => !permissions || permissions.of(model).isVisible)
}

/** What may be done with some record of the model. */
export function listActions({ permissions }: Principal, model: Model): readonly PermissionAction[] {
  const isPossible = (action: PermissionAction) =>
    action === 'read' || action === 'export' || !model.isReadOnly
  return PERMISSION_ACTIONS.filter(
    (action) => isPossible(action) && (!permissions || permissions.of(model).can(action)),
  )
}

/** The same, or what may be done with this one as it is now. */
export async function listPermittedActions(
  app: App,
  principal: Principal,
  model: Model,
  id?: number,
): Promise<PermissionAction[]> {
  const permitted = [...listActions(principal, model)]
  if (id === undefined) return permitted
  const permissions = principal.permissions?.of(model)
  const table = app.tables.of(model)
  const rows = permitted.map((action) => permissions?.criteriaFor(action))
  const conditions = [permissions?.criteriaFor('read'), ...rows].map((row) => row ?? ALWAYS_TRUE)
  const [isSeen, ...holds] = (await store.evaluateCriteria(app.db.queryPool, table, id, conditions)) ?? [
    false,
  ]
  return isSeen === true ? permitted.filter((_, index) => holds[index]) : throwNotFound(model, id)
}

const ALWAYS_TRUE: Criteria = { kind: 'and', criteria: [] }

/** For what concerns the accounts of others. */
export function requireAdmin({ permissions }: Principal): void {
  if (permissions) throw new VersoError('forbidden', 'This is for administrators')
}
