import type { Draft } from './draft.js'
import { Faults } from '../definition/field-errors.js'
import { isObject, sameValue, type Json } from '../values/value.js'

/**
 * A neighbour that came along with `$version` changes nothing, so that a record as read can be sent back. But whoever has changed
 * its name in there believes that it was written: if it is still the neighbour that was read, that is told and not lost.
 */
export function refuseEditedCopies(
  { model, copies }: Draft,
  record: Readonly<Record<string, unknown>>,
): void {
  const faults = new Faults()
  for (const [name, sent] of copies) {
    const shown = [record[name]].flat().filter(isObject)
    const stored = new Map(shown.map((neighbour) => [neighbour['id'], neighbour]))
    for (const { id, version, data, place } of sent) {
      const neighbour = stored.get(id)
      if (neighbour?.['$version'] !== version) continue
      for (const [key, value] of Object.entries(neighbour)) {
        if (Object.hasOwn(data, key) && !sameValue(value as Json, data[key] as Json))
          faults.add(
            `${place}.${key}`,
            'was changed in a reference: send "version" instead of "$version" to write it',
          )
      }
    }
  }
  faults.refuseIfAny(model)
}
