// Lists of IN as existing clients send them: null and empty values stand for nothing, and are left out.
import { MAX_TERMS } from '../../model/query/condition.js'
import type { Model } from '../../model/definition/model.js'
import { resolvePath } from '../../model/query/path.js'
import type { Visibility } from '../../model/query/visibility.js'
import { isObject } from '../../model/values/value.js'

type AxelorObject = Readonly<Record<string, unknown>>

const IN_OPERATOR = /^(not ?)?in$/i
/**
 * A field, IN, and the parameter that holds the list. The time grows with the length of the text and no faster: a match begins only where a name
 * does, and no two parts beside each other take the same characters.
 */
const IN_CLAUSE = /(?<![\w.[\]])([\w.[\]]+)\s+(not\s+)?in\s*(?:\(\s*)?:([\w.$]+)/gi
/** Longer texts are refused anyway. */
const MAX_DOMAIN_CHARACTERS = 10_000
const TEXT_FIELD_TYPES: readonly string[] = ['string', 'text', 'enum']

/** A criterion without the empty values of its list. */
export function cleanInCriterion(visibility: Visibility, model: Model, node: AxelorObject): AxelorObject {
  const { fieldName, operator, value } = node
  const isIn = typeof operator === 'string' && IN_OPERATOR.test(operator)
  if (!isIn || typeof fieldName !== 'string' || !Array.isArray(value)) return node
  const isNegated = operator.length > 'in'.length
  return { ...node, value: dropEmptyListValues(visibility, model, { path: fieldName, isNegated }, value) }
}

/** The parameters of a text, without the empty values of the lists that its INs name. */
export function cleanDomainContext(
  visibility: Visibility,
  model: Model,
  text: unknown,
  context: AxelorObject,
): AxelorObject {
  if (typeof text !== 'string' || text.length > MAX_DOMAIN_CHARACTERS) return context
  let parameters = context
  // Each costs a copy of the parameters, and more conditions are refused anyway.
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

/** An empty text is a value of a text alone. All but nothing would be everything: that is left to be refused. */
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

/** The object with another list at the end of these names, if a list is there. */
function replaceNestedList(
  holder: AxelorObject,
  [name = '', ...rest]: readonly string[],
  change: (list: readonly unknown[]) => readonly unknown[],
): AxelorObject {
  const value = Object.hasOwn(holder, name) ? holder[name] : undefined
  if (rest.length === 0) return Array.isArray(value) ? { ...holder, [name]: change(value) } : holder
  return isObject(value) ? { ...holder, [name]: replaceNestedList(value, rest, change) } : holder
}
