import { Refusal } from '../errors.js'
import type { Model } from '../model/model.js'

/** Ids are whole numbers from 1: what is no id has no record. */
export function checkId(model: Model, id: number): number {
  return Number.isSafeInteger(id) && id > 0 ? id : missing(model, id)
}

export function missing(model: Model, id: number): never {
  throw new Refusal('not-found', `There is no ${model.name} with id ${id}`)
}
