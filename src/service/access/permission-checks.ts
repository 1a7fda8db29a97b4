// Checks the model, the id and the action of a request: whether the principal may perform the action on some record of the model. Conditions
// on single records are checked where the records are read or written.
import { VersoError } from '../../errors.js'
import { createUnknownModelError } from '../../model/catalog/catalog.js'
import type { Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import { PERMISSION_ACTIONS, type PermissionAction } from '../../model/access/permissions.js'
import * as store from '../../store/records/records.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { isId } from '../../model/values/value.js'

/** Finds a model by name. A model without any permission is reported like an unknown one. */
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

/** Throws `not-found` for a number that cannot be an id: ids are integers from 1. */
export function requireId(model: Model, id: number): number {
  return isId(id) ? id : throwNotFound(model, id)
}

export function throwNotFound(model: Model, id: number): never {
  throw createNotFoundError(model, id)
}

export function createNotFoundError({ name }: Model, id: number): VersoError {
  return new VersoError('not-found', `There is no ${name} with id ${id}`)
}

/** Throws `forbidden` if only the service may write the model. */
export function requireWritableModel(model: Model): Model {
  if (!model.isReadOnly) return model
  throw new VersoError('forbidden', `${model.name} is kept by the service: it can only be read`)
}

/** Refuses a model whose records no create request can create, before it reports errors of their fields. */
export function requireDirectCreate({ createInstruction }: Model): void {
  if (createInstruction !== undefined) throw new VersoError('forbidden', createInstruction)
}

/** Lists the models that the principal has any permission for. */
export function listPermittedModels(
  { catalog }: Pick<App, 'catalog'>,
  { permissions }: Principal,
): readonly Model[] {
  return catalog.storedModels.filter((model) => !permissions || permissions.of(model).isVisible)
}

/** Lists the actions that the principal may perform on some record of the model. */
export function listActions({ permissions }: Principal, model: Model): readonly PermissionAction[] {
  const isPossible = (action: PermissionAction) =>
    action === 'read' || action === 'export' || !model.isReadOnly
  return PERMISSION_ACTIONS.filter(
    (action) => isPossible(action) && (!permissions || permissions.of(model).can(action)),
  )
}

/** Lists the permitted actions on the model, or on one record as it is now. */
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
  const [isVisible, ...holds] = (await store.evaluateCriteria(app.db.queryPool, table, id, conditions)) ?? [
    false,
  ]
  return isVisible === true ? permitted.filter((_, index) => holds[index]) : throwNotFound(model, id)
}

const ALWAYS_TRUE: Criteria = { kind: 'and', criteria: [] }

/** Refuses anyone but an administrator. */
export function requireAdmin({ permissions }: Principal): void {
  if (permissions) throw new VersoError('forbidden', 'This is for administrators')
}
