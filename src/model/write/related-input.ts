import type { Model } from '../definition/model.js'
import type { Visibility } from '../query/visibility.js'
import { didYouMean, shortenForMessage } from '../values/did-you-mean.js'
import { isId, isVersion, type JsonObject } from '../values/value.js'

export const RECORD_KEYS = new Set(['id', 'version'])
/** Keys of a related record that are not fields. Responses contain `$version` for related records. */
export const RELATED_RECORD_KEYS = new Set([...RECORD_KEYS, '$version'])

/** Checks the id and the version of a related record, and whether it may be updated. Returns an error message. */
export function validateRelatedInput(
  visibility: Visibility,
  input: JsonObject,
  target: Model,
  isChangeable: boolean,
): string | undefined {
  const { id = null, version = null, $version = null } = input
  if (id !== null && !isId(id)) return 'has an invalid id: it must be a whole number from 1'
  if ([version, $version].some((each) => each !== null && !isVersion(each)))
    return 'has an invalid version: it must be a whole number from 0'
  if (id === null && (version ?? $version) !== null) return 'has a version but no id'
  // A related record may be sent back as it was read. A changed value is an error, because it would not be written.
  const otherKeys = Object.keys(input).filter((key) => !RELATED_RECORD_KEYS.has(key))
  const isOnlyKey = otherKeys.length === 0
  if (!isChangeable && (id === null || version !== null || ($version === null && !isOnlyKey)))
    return `can only refer to a ${target.name}, not write it: send only { "id": ${id ?? 1} }`
  const known = [...target.fields.values()]
    .filter((field) => visibility.isVisible(target, field))
    .map(({ name }) => name)
  const unknown = otherKeys.find((key) => !known.includes(key))
  if (id !== null && version === null && unknown !== undefined)
    return `has "${shortenForMessage(unknown)}", which is not a field of ${target.name}${didYouMean(unknown, known)}`
  if (id !== null && version === null && $version === null && !isOnlyKey)
    return `has values for ${target.name} ${id} but no "version": send its "version" to change it, or only its id`
  return undefined
}
