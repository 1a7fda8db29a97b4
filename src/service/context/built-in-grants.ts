// Grants that every user has, independent of roles.
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import type { Grant } from '../../model/access/permissions.js'
import { META_MODEL } from '../../model/catalog/system-models.js'

/** Users may read the meta records of the models that are visible to them, and of no others. */
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
