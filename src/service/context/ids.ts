import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { isId } from '../../model/values/value.js'

/** Throws `not-found` for a number that cannot be an id: ids are integers from 1. */
export function requireId(model: Model, id: number): number {
  return isId(id) ? id : throwNotFound(model, id)
}

export function throwNotFound(model: Model, id: number): never {
  throw new VersoError('not-found', `There is no ${model.name} with id ${id}`)
}

/** Throws `forbidden` if only the service may write the model. */
export function requireWritableModel(model: Model): Model {
  if (!model.isReadOnly) return model
  throw new VersoError('forbidden', `${model.name} is kept by the service: it can only be read`)
}
