// Permissions as they are stored → grants for a model.
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

/** A permission as it is read. */
export interface Permission {
  readonly model: string
  readonly actions: ReadonlySet<PermissionAction>
  readonly condition: string | null
  readonly readable: readonly string[] | null
  readonly writable: readonly string[] | null
}

const ALL_MODELS = '*'
const PACKAGE_SUFFIX = '.*'

/** The fields of a record of `verso.auth.Permission` that say what is permitted. */
export const ACTION_FIELDS: Readonly<Record<PermissionAction, string>> = {
  read: 'canRead',
  create: 'canCreate',
  update: 'canUpdate',
  remove: 'canRemove',
  export: 'canExport',
}

export function parsePermission(record: Readonly<Record<string, unknown>>): Permission {
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

/** Null where nothing is said; what is no list of names permits nothing. */
function parseNameList(value: unknown): readonly string[] | null {
  if (value === undefined || value === null) return null
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}

/** Whether a permission that names this is about the model. `*` is about what people declare: who may do what is named in full. */
export function coversModel(pattern: string, model: Model): boolean {
  // Which models there are is known to everybody as far as they may do something with them.
  if (model === META_MODEL) return false
  if (pattern === model.name) return true
  if (isServiceModel(model)) return false
  if (pattern === ALL_MODELS) return true
  return (
    pattern.endsWith(PACKAGE_SUFFIX) && getPackageName(model) === pattern.slice(0, -PACKAGE_SUFFIX.length)
  )
}

/** Whether it speaks of several models. */
export function isModelPattern(pattern: string): boolean {
  return pattern === ALL_MODELS || pattern.endsWith(PACKAGE_SUFFIX)
}

export function getPackageName({ name }: Model): string {
  return name.slice(0, name.lastIndexOf('.'))
}

/**
 * What the permission grants for a model; undefined if it is not about it. A condition that cannot be understood for this model, since
 * it lacks a field of it, grants nothing.
 */
export function buildGrant(
  catalog: Catalog,
  model: Model,
  permission: Permission,
  user: Readonly<Record<string, unknown>>,
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

/** Whoever decides what others may do could do everything: that is for administrators. */
function limitActions(
  { name }: Model,
  actions: ReadonlySet<PermissionAction>,
): ReadonlySet<PermissionAction> {
  const possible: readonly PermissionAction[] =
    name === USER_MODEL ? ['read', 'update', 'export'] : ['read', 'export']
  return new Set(possible.filter((action) => actions.has(action)))
}

/** Of a user never what decides who they are and what they may do; what was added to users, since conditions may look at it, only by name. */
function limitUserFields({ fields }: Model, writable: readonly string[] = ['name']): readonly string[] {
  const possible = [...fields.keys()].filter((name) => name === 'name' || !USER_SYSTEM_MODEL.fields.has(name))
  return possible.filter((name) => writable.includes(name))
}

function parseGrantCondition(text: string, user: Readonly<Record<string, unknown>>): Condition | undefined {
  try {
    return parseFilter(text, { user }, 'condition')
  } catch (error) {
    // It was checked when it was written; a field of users may be gone since.
    if (error instanceof VersoError) return undefined
    throw error
  }
}

/** It is asked of every record, also where others wait for a write. */
const MAX_CONDITION_STEPS = 4
const MAX_CONDITION_LISTS = 2

/** Why a condition goes too far; undefined if it does not. */
export function validateConditionReach(criteria: Criteria): string | undefined {
  if (criteria.kind !== 'comparison')
    return [criteria.criteria]
      .flat()
      .map(validateConditionReach)
      .find((error) => error !== undefined)
  const { steps } = criteria
  const lists = steps.filter(({ field }) => field.relation?.isList).length
  if (steps.length <= MAX_CONDITION_STEPS && lists <= MAX_CONDITION_LISTS) return undefined
  return `a path has at most ${MAX_CONDITION_STEPS} steps, ${MAX_CONDITION_LISTS} of them over lists`
}

/** `:user` is who somebody is, which never changes; what else their record holds may. */
const USER_FIELD_PARAMETER = /:user[.$]/

/** Of what the service keeps itself the Log tells no past; these have none. */
const IMMUTABLE_SYSTEM_FIELDS = ['id', 'createdOn', 'createdBy']

function listConditionFields(criteria: Criteria): ReadonlySet<string> | undefined {
  if (criteria.kind === 'comparison') {
    const { steps, field } = criteria
    const [step, ...others] = steps
    const isFurther = step && (others.length > 0 || field !== ID_FIELD || !isReference(step.field))
    const own = step?.field ?? field
    return isFurther || (own.kept && !IMMUTABLE_SYSTEM_FIELDS.includes(own.name))
      ? undefined
      : new Set([own.name])
  }
  const parts = [criteria.criteria].flat().map(listConditionFields)
  const known = parts.filter((part) => part !== undefined)
  return known.length < parts.length ? undefined : new Set(known.flatMap((names) => [...names]))
}
