import type { Model } from '../definition/model.js'
import { parseFieldNames } from './selection.js'
import type { Visibility } from './visibility.js'
import { MAX_SORT_KEYS, parseSortKey, type SortKey } from './sort-key.js'

export function parseSort(
  visibility: Visibility,
  model: Model,
  sortBy: unknown,
  errors: string[],
): SortKey[] {
  if (sortBy === undefined || sortBy === null) return []
  const keys = parseFieldNames('sortBy', sortBy, errors)
  if (keys.length > MAX_SORT_KEYS) {
    errors.push(`sortBy must have at most ${MAX_SORT_KEYS} keys`)
    return []
  }
  return keys.flatMap((text) => {
    const key = parseSortKey(visibility, model, text)
    if (typeof key !== 'string') return key
    errors.push(`sortBy: ${key}`)
    return []
  })
}
