import type { FieldTypeName, Relation } from '../values/field.js'

/** Checks the options of a relation. The catalog checks later that the target and its field exist. */
export function checkRelation(
  type: FieldTypeName,
  raw: Readonly<Record<string, unknown>>,
  report: (fault: string) => void,
): Relation | undefined {
  const isList = type === 'one-to-many' || type === 'many-to-many'
  if (!isList && type !== 'many-to-one' && type !== 'one-to-one') return undefined
  const { target, mappedBy, owned } = raw
  if (typeof target !== 'string') report('target must be the name of a model')
  if (mappedBy !== undefined && typeof mappedBy !== 'string') report('mappedBy must be the name of a field')
  if (mappedBy === undefined && type === 'one-to-many')
    report('a one-to-many needs mappedBy: the many-to-one of the target that leads back here')
  if (mappedBy !== undefined && raw['required'] === true)
    report('the other side of a relation cannot be required')
  if (owned !== undefined && typeof owned !== 'boolean') report('owned must be true or false')
  return {
    target: String(target),
    isList,
    mappedBy: typeof mappedBy === 'string' ? mappedBy : undefined,
    owned: owned === true || (type === 'many-to-many' && mappedBy === undefined),
    ...(isList ? checkOrderBy(raw['orderBy'], report) : {}),
  }
}

function checkOrderBy(orderBy: unknown, report: (fault: string) => void): Pick<Relation, 'orderBy'> {
  if (orderBy === undefined) return {}
  if (!Array.isArray(orderBy) || !orderBy.every((key) => typeof key === 'string')) {
    report('orderBy must be a list of field names, such as ["sequence", "-createdOn"]')
    return {}
  }
  return orderBy.length === 0 ? {} : { orderBy }
}
