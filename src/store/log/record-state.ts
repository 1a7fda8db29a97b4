import type { Value, Values } from '../../model/values/value.js'

/** The known values of a record at one version; `gone` if the record did not exist, `unknown` if the Log no longer contains the version. */
export type RecordState = Values | 'gone' | 'unknown'

/** Returns null if the value is not known. */
export function valueIn(state: RecordState, name: string): Value {
  return typeof state === 'string' ? null : (state[name] ?? null)
}

/** True if the Log contains the value of the field. */
export function isKnownIn(values: Values, name: string): boolean {
  return Object.hasOwn(values, name)
}
