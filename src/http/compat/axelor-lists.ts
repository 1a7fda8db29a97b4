// Lists of IN as existing clients send them: null and empty values stand for nothing, and are left out.
import { MAX_TERMS } from '../../model/query/condition.js'
import type { Model } from '../../model/definition/model.js'
import { resolvePath } from '../../model/query/path.js'
import type { Visibility } from '../../model/query/visibility.js'
import { isObject } from '../../model/values/value.js'

type Data = Readonly<Record<string, unknown>>

const IN = /^(not ?)?in$/i
/**
 * A field, IN, and the parameter that holds the list. The time grows with the length of the text and no faster: a match begins only where a name
 * does, and no two parts beside each other take the same characters.
 */
const MEMBERSHIP = /(?<![\w.[\]])([\w.[\]]+)\s+(not\s+)?in\s*(?:\(\s*)?:([\w.$]+)/gi
/** Longer texts are refused anyway. */
const MAX_TEXT = 10_000
const TEXTS: readonly string[] = ['string', 'text', 'enum']

/** A criterion without the empty values of its list. */
export function criterionFrom(sight: Visibility, model: Model, node: Data): Data {
  const { fieldName, operator, value } = node
  const isIn = typeof operator === 'string' && IN.test(operator)
  if (!isIn || typeof fieldName !== 'string' || !Array.isArray(value)) return node
  const isNegated = operator.length > 'in'.length
  return { ...node, value: membersOf(sight, model, { path: fieldName, isNegated }, value) }
}

/** The parameters of a text, without the empty values of the lists that its INs name. */
export function contextFrom(sight: Visibility, model: Model, text: unknown, context: Data): Data {
  if (typeof text !== 'string' || text.length > MAX_TEXT) return context
  let parameters = context
  // Each costs a copy of the parameters, and more conditions are refused anyway.
  for (const [, path = '', not, name = ''] of [...text.matchAll(MEMBERSHIP)].slice(0, MAX_TERMS)) {
    const asked = { path: path.replace(/^self\./, ''), isNegated: not !== undefined }
    parameters = withLists(parameters, name.split(/[.$]/), (list) => membersOf(sight, model, asked, list))
  }
  return parameters
}

interface Asked {
  readonly path: string
  readonly isNegated: boolean
}

/** An empty text is a value of a text alone. All but nothing would be everything: that is left to be refused. */
function membersOf(
  sight: Visibility,
  model: Model,
  { path, isNegated }: Asked,
  list: readonly unknown[],
): readonly unknown[] {
  const found = resolvePath(sight, model, path)
  if (typeof found === 'string') return list
  const isText = TEXTS.includes(found.field.type)
  const members = list.filter((value) => value !== null && (isText || value !== ''))
  return members.length === 0 && isNegated ? list : members
}

/** The object with another list at the end of these names, if a list is there. */
function withLists(
  holder: Data,
  [name = '', ...rest]: readonly string[],
  change: (list: readonly unknown[]) => readonly unknown[],
): Data {
  const held = Object.hasOwn(holder, name) ? holder[name] : undefined
  if (rest.length === 0) return Array.isArray(held) ? { ...holder, [name]: change(held) } : holder
  return isObject(held) ? { ...holder, [name]: withLists(held, rest, change) } : holder
}
