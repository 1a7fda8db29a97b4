// What everybody who is logged in may do, whatever their roles.
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import type { Grant } from '../../model/access/permissions.js'
import { META_MODEL } from '../../model/catalog/system-models.js'

/** Of the models they see those that they may do anything with; nobody is told that there are others. */
export function listBuiltInGrants(
  catalog: Catalog,
  model: Model,
  knows: (model: Model) => boolean,
): readonly Grant[] {
  const field = model.fields.get('fullName')
  if (model !== META_MODEL || !field) return []
  const known = catalog.storedModels.filter((each) => each === META_MODEL || knows(each))
  return [
    {
      actions: new Set(['read', 'export']),
      where: {
        ...{ kind: 'comparison', steps: [], field, operator: 'in' },
        values: known.map(({ name }) => name),
      },
      conditionFields: new Set([field.name]),
      readable: undefined,
      writable: new Set(),
    },
  ]
}
