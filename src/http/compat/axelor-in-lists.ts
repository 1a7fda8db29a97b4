// IN lists of existing clients: removes null and empty values, which mean nothing to these clients.
import { MAX_TERMS } from '../../model/query/condition.js'
import type { Model } from '../../model/definition/model.js'
import { resolvePath } from '../../model/query/path.js'
import type { Visibility } from '../../model/query/visibility.js'
import { isObject } from '../../model/values/value.js'

export type AxelorObject = Readonly<Record<string, unknown>>

const IN_OPERATOR = /^(not ?)?in$/i
/**
 * Matches a field, IN, and the parameter that holds the list. Matching takes linear time: a match begins only at the start of a name, and
 * adjacent parts of the pattern match different characters.
 */
const IN_CLAUSE = /(?<![\w.[\]])([\w.[\]]+)\s+(not\s+)?in\s*(?:\(\s*)?:([\w.$]+)/gi
/** The search rejects longer texts. */
const MAX_DOMAIN_CHARACTERS = 10_000
const TEXT_FIELD_TYPES: readonly string[] = ['string', 'text', 'enum']

/** Removes empty values from the list of an IN criterion. */
export function cleanInCriterion(visibility: Visibility, model: Model, node: AxelorObject): AxelorObject {
  const { fieldName, operator, value } = node
  const isIn = typeof operator === 'string' && IN_OPERATOR.test(operator)
  if (!isIn || typeof fieldName !== 'string' || !Array.isArray(value)) return node
  const isNegated = operator.length > 'in'.length
  return { ...node, value: dropEmptyListValues(visibility, model, { path: fieldName, isNegated }, value) }
}

/** Removes empty values from the parameters that a domain text uses as IN lists. */
export function cleanDomainContext(
  visibility: Visibility,
  model: Model,
  text: unknown,
  context: AxelorObject,
): AxelorObject {
  if (typeof text !== 'string' || text.length > MAX_DOMAIN_CHARACTERS) return context
  let parameters = context
  // Each clause copies the parameters. The search rejects texts with more conditions.
  for (const [, path = '', not, name = ''] of [...text.matchAll(IN_CLAUSE)].slice(0, MAX_TERMS)) {
    const condition = { path: path.replace(/^self\./, ''), isNegated: not !== undefined }
    parameters = replaceNestedList(parameters, name.split(/[.$]/), (list) =>
      dropEmptyListValues(visibility, model, condition, list),
    )
  }
  return parameters
}

interface InCondition {
  readonly path: string
  readonly isNegated: boolean
}

/** Keeps empty texts for text fields. Keeps the list of a NOT IN that would become empty: it would match everything, so the search rejects it. */
function dropEmptyListValues(
  visibility: Visibility,
  model: Model,
  { path, isNegated }: InCondition,
  list: readonly unknown[],
): readonly unknown[] {
  const fieldPath = resolvePath(visibility, model, path)
  if (typeof fieldPath === 'string') return list
  const isText = TEXT_FIELD_TYPES.includes(fieldPath.field.type)
  const members = list.filter((value) => value !== null && (isText || value !== ''))
  return members.length === 0 && isNegated ? list : members
}

/** Replaces the list at the end of a path of names, if there is one. */
function replaceNestedList(
  holder: AxelorObject,
  [name = '', ...rest]: readonly string[],
  change: (list: readonly unknown[]) => readonly unknown[],
): AxelorObject {
  const value = Object.hasOwn(holder, name) ? holder[name] : undefined
  if (rest.length === 0) return Array.isArray(value) ? { ...holder, [name]: change(value) } : holder
  return isObject(value) ? { ...holder, [name]: replaceNestedList(value, rest, change) } : holder
}
