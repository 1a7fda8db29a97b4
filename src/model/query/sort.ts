// The order of a find or a search.
import type { Model } from '../definition/model.js'
import { namesFrom } from './selection.js'
import type { Sight } from './visibility.js'
import { MAX_SORT_KEYS, sortKeyFrom, type SortKey } from './sort-key.js'

export function sortFrom(sight: Sight, model: Model, sortBy: unknown, faults: string[]): SortKey[] {
  if (sortBy === undefined || sortBy === null) return []
  const keys = namesFrom('sortBy', sortBy, faults)
  if (keys.length > MAX_SORT_KEYS) {
    faults.push(`sortBy must have at most ${MAX_SORT_KEYS} keys`)
    return []
  }
  return keys.flatMap((text) => {
    const key = sortKeyFrom(sight, model, text)
    if (typeof key !== 'string') return key
    faults.push(`sortBy: ${key}`)
    return []
  })
}
