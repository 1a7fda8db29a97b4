// The fields of a form, and their values in a new record.
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import { findTimeOfDay, findToday } from './date-text.js'

/** The fields that a form shows, in order. Who created and changed the record, and when, is shown apart. */
export function listFormFields({ fields }: Pick<ModelInfo, 'fields'>): readonly FieldInfo[] {
  return fields.filter(({ isSystem }) => !isSystem)
}

/** The defaults of the service, so that a person sees what is saved. Fields that the service sets itself have none. */
export function buildInitialValues(
  model: Pick<ModelInfo, 'fields'>,
  now = new Date(),
): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const field of listFormFields(model)) {
    if (field.isReadonly || field.isComputed || field.isSecret) continue
    const value = findInitialValue(field, now)
    if (value !== undefined) values[field.name] = value
  }
  return values
}

function findInitialValue(field: FieldInfo, now: Date): unknown {
  const { kind, defaultValue, isNowByDefault, isRequired } = field
  if (isNowByDefault) return formatNow(kind, now)
  if (defaultValue !== undefined) return defaultValue
  if (kind === 'owned-list' || kind === 'links') return []
  // Shown as a box that is not ticked, which means no.
  return kind === 'boolean' && isRequired ? false : undefined
}

/** Date and time of the person's clock: the day of the service may be another one. */
function formatNow(kind: FieldInfo['kind'], now: Date): string {
  if (kind === 'date') return findToday(now)
  return kind === 'time' ? findTimeOfDay(now) : now.toISOString().replace(/\.\d+Z$/, '.000Z')
}
