// Converts records of `verso.auth.Permission` to grants for a model.
import { VersoError } from '../../errors.js'
import { bindCondition } from '../query/bind-condition.js'
import type { Catalog } from '../catalog/catalog.js'
import type { Condition } from '../query/condition.js'
import type { Criteria } from '../query/criteria.js'
import { parseFilter } from '../query/filter.js'
import { isReference, USER_MODEL, type Model } from '../definition/model.js'
import { ID_FIELD } from '../query/path.js'
import { PERMISSION_ACTIONS, type Grant, type PermissionAction } from './permissions.js'
import { isServiceModel, META_MODEL, USER_SYSTEM_MODEL } from '../catalog/system-models.js'
import type { JsonObject } from '../values/value.js'

/** A parsed permission record. */
export interface Permission {
  readonly model: string
  readonly actions: ReadonlySet<PermissionAction>
  readonly condition: string | null
  readonly readable: readonly string[] | null
  readonly writable: readonly string[] | null
}

const ALL_MODELS = '*'
const PACKAGE_SUFFIX = '.*'

/** The field of a permission record for each action. */
export const ACTION_FIELDS: Readonly<Record<PermissionAction, string>> = {
  read: 'canRead',
  create: 'canCreate',
  update: 'canUpdate',
  remove: 'canRemove',
  export: 'canExport',
}

export function parsePermission(record: JsonObject): Permission {
  const { model, condition, readable, writable } = record
  const actions = PERMISSION_ACTIONS.filter((action) => record[ACTION_FIELDS[action]] === true)
  return {
    model: String(model),
    actions: new Set(actions),
    condition: typeof condition === 'string' && condition.trim() !== '' ? condition : null,
    readable: parseNameList(readable),
    writable: parseNameList(writable),
  }
}

/** Returns null if there is no value. An invalid list permits nothing. */
function parseNameList(value: unknown): readonly string[] | null {
  if (value === undefined || value === null) return null
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}

/** True if a permission with this pattern applies to the model. `*` does not cover service models; a permission must name those in full. */
export function coversModel(pattern: string, model: Model): boolean {
  // Visibility of MetaModel records follows from the permissions for the models that they describe.
  if (model === META_MODEL) return false
  if (pattern === model.name) return true
  if (isServiceModel(model)) return false
  if (pattern === ALL_MODELS) return true
  return (
    pattern.endsWith(PACKAGE_SUFFIX) && getPackageName(model) === pattern.slice(0, -PACKAGE_SUFFIX.length)
  )
}

/** True if the pattern may match several models. */
export function isModelPattern(pattern: string): boolean {
  return pattern === ALL_MODELS || pattern.endsWith(PACKAGE_SUFFIX)
}

export function getPackageName({ name }: Model): string {
  return name.slice(0, name.lastIndexOf('.'))
}

/**
 * Returns undefined if the permission does not apply to the model. A condition that is invalid for this model, for example because the
 * model lacks a field, grants nothing.
 */
export function buildGrant(
  catalog: Catalog,
  model: Model,
  permission: Permission,
  user: JsonObject,
): Grant | undefined {
  if (!coversModel(permission.model, model) || permission.actions.size === 0) return undefined
  const actions = isServiceModel(model) ? limitActions(model, permission.actions) : permission.actions
  if (actions.size === 0) return undefined
  const { readable } = permission
  const writable =
    model.name === USER_MODEL ? limitUserFields(model, permission.writable ?? undefined) : permission.writable
  const lists = {
    readable: readable ? new Set(readable) : undefined,
    writable: writable ? new Set(writable) : undefined,
  }
  if (permission.condition === null)
    return { actions, where: undefined, conditionFields: new Set(), ...lists }
  const condition = parseGrantCondition(permission.condition, user)
  if (!condition) return undefined
  const where = bindCondition(catalog, model, condition, [])
  if (!where || validateConditionReach(where) !== undefined) return undefined
  const conditionFields = USER_FIELD_PARAMETER.test(permission.condition)
    ? undefined
    : listConditionFields(where)
  return { actions, where, conditionFields, ...lists }
}

/** Service models control permissions, so only administrators may write them. Users may be updated in part. */
function limitActions(
  { name }: Model,
  actions: ReadonlySet<PermissionAction>,
): ReadonlySet<PermissionAction> {
  const possible: readonly PermissionAction[] =
    name === USER_MODEL ? ['read', 'update', 'export'] : ['read', 'export']
  return new Set(possible.filter((action) => actions.has(action)))
}

/** Excludes fields of users that control access. Fields added by extensions must be named, because conditions may depend on them. */
function limitUserFields({ fields }: Model, writable: readonly string[] = ['name']): readonly string[] {
  const possible = [...fields.keys()].filter((name) => name === 'name' || !USER_SYSTEM_MODEL.fields.has(name))
  return possible.filter((name) => writable.includes(name))
}

function parseGrantCondition(text: string, user: JsonObject): Condition | undefined {
  try {
    return parseFilter(text, { user }, 'condition')
  } catch (error) {
    // The condition was valid when it was written; an extension of users may have lost a field since.
    if (error instanceof VersoError) return undefined
    throw error
  }
}

/** The database evaluates conditions for every record, also inside write transactions. */
const MAX_CONDITION_STEPS = 4
const MAX_CONDITION_LISTS = 2

/** Returns an error message if a path of the condition follows too many relations. */
export function validateConditionReach(criteria: Criteria): string | undefined {
  if (criteria.kind !== 'comparison')
    return [criteria.criteria]
      .flat()
      .map(validateConditionReach)
      .find((error) => error !== undefined)
  const { steps } = criteria
  const lists = steps.filter(({ field }) => field.relation?.isList).length
  if (steps.length <= MAX_CONDITION_STEPS && lists <= MAX_CONDITION_LISTS) return undefined
  return `a path can follow at most ${MAX_CONDITION_STEPS} relations, and at most ${MAX_CONDITION_LISTS} lists among them`
}

/** Matches conditions that depend on the user's record. `:user` alone is the id, which never changes. */
const USER_FIELD_PARAMETER = /:user[.$]/

/** The log has no former values of system fields. These never change. */
const IMMUTABLE_SYSTEM_FIELDS = ['id', 'createdOn', 'createdBy']

function listConditionFields(criteria: Criteria): ReadonlySet<string> | undefined {
  if (criteria.kind === 'comparison') {
    const { steps, field } = criteria
    const [step, ...others] = steps
    const isFurther = step && (others.length > 0 || field !== ID_FIELD || !isReference(step.field))
    const own = step?.field ?? field
    return isFurther || (own.isSystem && !IMMUTABLE_SYSTEM_FIELDS.includes(own.name))
      ? undefined
      : new Set([own.name])
  }
  const parts = [criteria.criteria].flat().map(listConditionFields)
  const known = parts.filter((part) => part !== undefined)
  return known.length < parts.length ? undefined : new Set(known.flatMap((names) => [...names]))
}
