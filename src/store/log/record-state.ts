import type { Value, Values } from '../../model/values/value.js'

/** The values of a record at one version: all that are known, or none because it did not exist or the Log no longer tells. */
export type RecordState = Values | 'gone' | 'unknown'

/** Returns null if the value is not known. */
export function valueIn(state: RecordState, name: string): Value {
  return typeof state === 'string' ? null : (state[name] ?? null)
}

/** True if the Log tells the value of the field. */
export function isKnownIn(values: Values, name: string): boolean {
  return Object.hasOwn(values, name)
}
