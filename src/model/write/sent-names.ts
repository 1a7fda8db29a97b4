import type { Draft } from './draft.js'
import { FieldErrors } from '../definition/field-errors.js'
import { isObject, isSameValue, type Json, type JsonObject } from '../values/value.js'

/**
 * A related record with `$version` changes nothing, so that a record can be sent back as it was read. If the client changed the name in
 * it, and the stored related record is still the one that was read, this is an error instead of a silent loss.
 */
export function refuseEditedCopies({ model, copies }: Draft, record: JsonObject): void {
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
