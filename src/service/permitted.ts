// Whether a caller may do something at all; which records it is for is decided where they are.
import { Refusal } from '../errors.js'
import { unknownModel } from '../model/catalog.js'
import type { Model } from '../model/model.js'
import type { PermittedAction } from '../model/rights.js'
import type { App } from './app.js'
import type { Caller } from './caller.js'

/** The model of that name. One that the caller may do nothing with is like one that is not there. */
export function modelFor(app: Pick<App, 'catalog'>, { rights }: Caller, name: string): Model {
  const model = app.catalog.get(name)
  if (rights && !rights.of(model).isKnown) throw unknownModel(name)
  return model
}

export function requirePermitted({ rights }: Caller, action: PermittedAction, model: Model): void {
  if (!rights || rights.of(model).may(action)) return
  throw new Refusal('forbidden', `You may not ${action} records of ${model.name}`)
}
