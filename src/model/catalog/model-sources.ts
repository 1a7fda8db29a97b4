// Definitions as written, and the extensions that are listed with them.
import type { ModelDefinition } from '../definition/define-model.js'
import { applyExtensions, isModelExtension, type ModelExtension } from '../definition/extend-model.js'
import { checkHookSets } from '../definition/hooks.js'
import { USER_MODEL } from '../definition/model.js'
import { didYouMean } from '../values/did-you-mean.js'
import { isObject } from '../values/value.js'

/** A model definition or an extension as written, and the file that it came from, for messages. */
export interface ModelSource {
  readonly file: string
  readonly definition: unknown
}

/**
 * Applies the extensions among the sources to the definitions that they name, in the order of the sources. Extensions of the user model
 * stay: the service itself defines that model. Reports extensions of unknown models.
 */
export function extendSources(
  sources: readonly ModelSource[],
  report: (error: string) => void,
): readonly ModelSource[] {
  const extensions = groupExtensionsByModel(sources.map(({ definition }) => definition))
  if (extensions.size === 0) return sources
  const invalid = findInvalidHooks(sources, report)
  const names = new Set(
    sources.flatMap(({ definition }) => (isExtensible(definition) ? definition.name : [])),
  )
  return sources.flatMap((source) => {
    const { file, definition } = source
    if (isModelExtension(definition)) {
      const { name } = definition
      if (name === USER_MODEL) return source
      if (!names.has(name))
        report(`${file}: extends "${name}"${didYouMean(name, names)}, which is not a model`)
      return []
    }
    const applied = isExtensible(definition) ? extensions.get(definition.name) : undefined
    const valid = applied?.filter((extension) => !invalid.has(extension))
    return valid ? { file, definition: applyExtensions(definition as ModelDefinition, valid) } : source
  })
}

/** Reports invalid hooks with the file of their extension. Those of the user model are reported with the other errors of that model. */
function findInvalidHooks(
  sources: readonly ModelSource[],
  report: (error: string) => void,
): ReadonlySet<ModelExtension> {
  const invalid = new Set<ModelExtension>()
  for (const { file, definition } of sources) {
    if (!isModelExtension(definition) || definition.name === USER_MODEL) continue
    checkHookSets(definition.hooks, (error) => {
      invalid.add(definition)
      report(`${file}: ${definition.name}: ${error}`)
    })
  }
  return invalid
}

/** Groups the extensions among the definitions by the name of the model that they extend. */
export function groupExtensionsByModel(definitions: Iterable<unknown>): Map<string, ModelExtension[]> {
  const groups = new Map<string, ModelExtension[]>()
  for (const extension of definitions)
    if (isModelExtension(extension))
      groups.set(extension.name, [...(groups.get(extension.name) ?? []), extension])
  return groups
}

/** True for a definition with a name and fields. Its other options may be wrong. */
export function isExtensible(definition: unknown): definition is Pick<ModelDefinition, 'name' | 'fields'> {
  return (
    isObject(definition) &&
    !isModelExtension(definition) &&
    typeof definition['name'] === 'string' &&
    isObject(definition['fields'])
  )
}
