// Visibility of past states: evaluates the current permissions against the values that a record had then.
import type { Model } from '../../model/definition/model.js'
import { isOwnedList } from '../../model/definition/model.js'
import { buildStep } from '../../model/query/path.js'
import type { Grant, Permissions } from '../../model/access/permissions.js'
import { getReferenceId, isSameValue, type Value, type Values } from '../../model/values/value.js'
import { findOwnFields, evaluateAgainstValues } from '../../store/records/evaluate-values.js'
import { getStateValue, type RecordState } from '../../store/log/rewind.js'
import { filterVisibleIds } from '../access/visible-records.js'
import type { Context } from '../context/context.js'

export interface DatedState {
  readonly id: number
  readonly version: number
  readonly state: RecordState
  /** The current state. Conditions on lists can only be evaluated for the current members. */
  readonly today: RecordState
}

/** The names of the readable fields; undefined means all fields, 'nothing' means that the record is not visible. */
export type StateVisibility = ReadonlySet<string> | undefined | 'nothing'

/** Returns the visibility of each state, in the same order. */
export async function evaluateStateVisibility(
  context: Context,
  model: Model,
  states: readonly DatedState[],
): Promise<StateVisibility[]> {
  const { permissions } = context.principal
  if (!permissions) return states.map(({ state }) => (state === 'gone' ? 'nothing' : undefined))
  const grants = permissions.of(model).grantsFor('read')
  const conditions = [...new Set(grants.flatMap(({ where }) => where ?? []))]
  const known = states.flatMap(({ state, ...rest }) =>
    typeof state === 'string' ? [] : [{ ...rest, values: state }],
  )
  const tested =
    conditions.length === 0
      ? []
      : await evaluateAgainstValues(context.db, context.app.tables.of(model), known, conditions)
  let next = 0
  return states.map((dated) => {
    if (dated.state === 'gone') return 'nothing'
    // No condition holds for values that the Log no longer has.
    const results = dated.state === 'unknown' ? undefined : tested[next++]
    const isHeld = ({ where }: Grant) =>
      !where || (results?.[conditions.indexOf(where)] === true && isTestable(where, dated))
    return listReadableFields(permissions, model, grants.filter(isHeld))
  })
}

/** SQL can only test the current members of a list. If the list has changed since, the condition does not count as fulfilled. */
function isTestable(where: NonNullable<Grant['where']>, { state, today }: DatedState): boolean {
  const lists = findOwnFields(where).filter((field) => isOwnedList(field))
  return lists.every(({ name }) => isSameValue(getStateValue(state, name), getStateValue(today, name)))
}

function listReadableFields(
  permissions: Permissions,
  model: Model,
  grants: readonly Grant[],
): StateVisibility {
  if (grants.length === 0) return 'nothing'
  const isRead = (name: string) => grants.some(({ readable }) => !readable || readable.has(name))
  const isThere = (name: string, type: string) =>
    type === 'binary' || permissions.findReadable(model, name) !== undefined
  const fields = [...model.fields.values()].filter(({ name, type }) => isRead(name) && isThere(name, type))
  return new Set(fields.map(({ name }) => name))
}

/** Removes related records that the principal cannot see. Takes all values together, so that each related record is looked up once. */
export async function removeUnseenRelated(
  context: Context,
  model: Model,
  all: readonly Values[],
): Promise<Values[]> {
  const { permissions } = context.principal
  if (!permissions) return [...all]
  const pruned = all.map((values) => ({ ...values }))
  for (const field of model.fields.values()) {
    if (!field.relation) continue
    const ids = new Set(all.flatMap((values) => toValueList(values[field.name] ?? null).map(getReferenceId)))
    if (ids.size === 0) continue
    const step = buildStep(permissions, model, field)
    const visibleIds = await filterVisibleIds(context, step.target, [...ids], step.visible)
    for (const values of pruned) {
      const value = values[field.name]
      if (value !== undefined) values[field.name] = keepVisible(value, visibleIds)
    }
  }
  return pruned
}

/** The related records of a reference or a list as a list. */
export function toValueList(value: Value): readonly Value[] {
  if (value === null) return []
  return Array.isArray(value) ? (value as readonly Value[]) : [value]
}

function keepVisible(value: Value, visibleIds: ReadonlySet<number>): Value {
  const visible = toValueList(value).filter((related) => visibleIds.has(getReferenceId(related)))
  return Array.isArray(value) ? visible : (visible[0] ?? null)
}
