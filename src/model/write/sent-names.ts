import type { Draft } from './draft.js'
import { FieldErrors } from '../definition/field-errors.js'
import { isObject, isSameValue, type Json } from '../values/value.js'

/**
 * A neighbour that came along with `$version` changes nothing, so that a record as read can be sent back. But whoever has changed
 * its name in there believes that it was written: if it is still the neighbour that was read, that is told and not lost.
 */
export function refuseEditedCopies(
  { model, copies }: Draft,
  record: Readonly<Record<string, unknown>>,
): void {
  const errors = new FieldErrors()
  for (const [name, sent] of copies) {
    const records = [record[name]].flat().filter(isObject)
    const stored = new Map(records.map((neighbour) => [neighbour['id'], neighbour]))
    for (const { id, version, data, path } of sent) {
      const related = stored.get(id)
      if (related?.['$version'] !== version) continue
      for (const [key, value] of Object.entries(related)) {
        if (Object.hasOwn(data, key) && !isSameValue(value as Json, data[key] as Json))
          errors.add(
            `${path}.${key}`,
            'was changed in a reference: send "version" instead of "$version" to write it',
          )
      }
    }
  }
  errors.refuseIfAny(model)
}
