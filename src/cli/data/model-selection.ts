// Chooses the models that the commands export and import name.
import { ConfigError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import { listTransferredModels } from '../../formats/transfer-fields.js'

export function selectModels(catalog: Catalog, names: readonly string[] | undefined): readonly Model[] {
  const models = listTransferredModels(catalog)
  if (!names) return models
  const knownNames = models.map(({ name }) => name)
  const unknownNames = names.filter((name) => !knownNames.includes(name))
  if (unknownNames.length > 0)
    throw new ConfigError(
      'Unknown model; nothing was exported or imported',
      unknownNames.map((name) => `there is no model "${name}"${suggestModel(name, knownNames)}`),
    )
  return models.filter(({ name }) => names.includes(name))
}

/** Suggests the full name if only the package is missing, or else the most similar name. */
export function suggestModel(name: string, knownNames: readonly string[]): string {
  const whole = knownNames.filter((each) => each.toLowerCase().endsWith(`.${name.toLowerCase()}`))
  return whole.length === 1 ? ` (did you mean "${whole.join('')}"?)` : didYouMean(name, knownNames)
}
