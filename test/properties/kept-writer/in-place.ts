import { VersoError } from '../../../src/errors.js'
import type { Draft } from '../../../src/model/write/draft.js'
import type { Principal } from '../../../src/service/context/principal.js'

/** A field that is not unique is named with its place, as every other fault. */
export async function inPlace<T>(
  { permissions }: Principal,
  { model, path }: Draft,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (!(error instanceof VersoError) || error.kind !== 'not-unique') throw error
    const { errors = {}, ...details } = error.details
    const fields = Object.keys(errors).flatMap((name) => model.fields.get(name) ?? [])
    if (permissions && !fields.every((field) => permissions.isVisible(model, field)))
      throw new VersoError('not-unique', `There is a ${model.name} like this already`, { cause: error })
    const placed = Object.entries(errors).map(([name, message]) => [path + name, message] as const)
    throw new VersoError(error.kind, error.message, { ...details, errors: Object.fromEntries(placed) })
  }
}
