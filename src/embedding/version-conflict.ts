// The error of an update that was made from an outdated version, with the types of its details.
import { VersoError } from '../errors.js'
import type { ConflictData } from '../wire.js'

export type VersionConflict = VersoError & {
  readonly kind: 'conflict'
  readonly details: { readonly data: ConflictData }
}

/**
 * True if a record is no longer at the version that an update or a removal names.
 *
 * @example
 * await tasks.update(id, { version, state: 'done' }).catch((error) => {
 *   if (!isConflict(error)) throw error
 *   const { theirs, fields, mergeable } = error.details.data
 * })
 */
export function isConflict(error: unknown): error is VersionConflict {
  return (
    error instanceof VersoError && error.kind === 'conflict' && error.details.data?.['theirs'] !== undefined
  )
}
