// What a caller may see of a record as it was: decided by the rights of today, as if the record still held what it held then.
import type { Model } from '../../model/definition/model.js'
import { isOwnedList } from '../../model/definition/model.js'
import { buildStep } from '../../model/query/path.js'
import type { Grant, Permissions } from '../../model/access/permissions.js'
import { getReferenceId, isSameValue, type Value, type Values } from '../../model/values/value.js'
import { findOwnFields, evaluateAgainstValues } from '../../store/sql/evaluate-values.js'
import { valueIn, type RecordState } from '../../store/log/past.js'
import { filterVisibleIds } from '../access/visible-records.js'
import type { Context } from '../context/context.js'

export interface PastState {
  readonly id: number
  readonly version: number
  readonly state: RecordState
  /** As it is now: of lists there is only the membership of today. */
  readonly today: RecordState
}

/** The names of the fields that are shown; all of them where it is undefined, and nothing where the record is not seen. */
export type PastVisibility = ReadonlySet<string> | undefined | 'nothing'

/** Of each state, what is shown of it. */
export async function evaluatePastVisibility(
  context: Context,
  model: Model,
  states: readonly PastState[],
): Promise<PastVisibility[]> {
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
  return states.map((past) => {
    if (past.state === 'gone') return 'nothing'
    // Of what is no longer known no condition is said to hold.
    const results = past.state === 'unknown' ? undefined : tested[next++]
    const isHeld = ({ where }: Grant) =>
      !where || (results?.[conditions.indexOf(where)] === true && isTestable(where, past))
    return listReadableFields(permissions, model, grants.filter(isHeld))
  })
}

/** Who was in a list of the record in the past cannot be asked: where it is another one today, the condition is not said to hold. */
function isTestable(where: NonNullable<Grant['where']>, { state, today }: PastState): boolean {
  const lists = findOwnFields(where).filter((field) => isOwnedList(field))
  return lists.every(({ name }) => isSameValue(valueIn(state, name), valueIn(today, name)))
}

function listReadableFields(
  permissions: Permissions,
  model: Model,
  grants: readonly Grant[],
): PastVisibility {
  if (grants.length === 0) return 'nothing'
  const isRead = (name: string) => grants.some(({ readable }) => !readable || readable.has(name))
  const isThere = (name: string, type: string) =>
    type === 'binary' || permissions.findReadable(model, name) !== undefined
  const fields = [...model.fields.values()].filter(({ name, type }) => isRead(name) && isThere(name, type))
  return new Set(fields.map(({ name }) => name))
}

/** The values without neighbours that the caller does not see; a list of all of them, so that each neighbour is looked for once. */
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
    const seen = await filterVisibleIds(context, step.target, [...ids], step.seen)
    for (const values of pruned) {
      const value = values[field.name]
      if (value !== undefined) values[field.name] = keepVisible(value, seen)
    }
  }
  return pruned
}

function toValueList(value: Value): readonly Value[] {
  if (value === null) return []
  return Array.isArray(value) ? (value as readonly Value[]) : [value]
}

function keepVisible(value: Value, seen: ReadonlySet<number>): Value {
  const visible = toValueList(value).filter((related) => seen.has(getReferenceId(related)))
  return Array.isArray(value) ? visible : (visible[0] ?? null)
}
