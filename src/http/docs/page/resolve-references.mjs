// Resolves the references inside a document. They all lead to its components. Swagger UI has a resolver for any document, which takes seconds
// for a model with 150 fields.

/**
 * @typedef {Record<string, unknown>} Json
 */

/**
 * Returns what a value refers to, or the value itself.
 * @param {Json} document
 * @param {unknown} value
 * @returns {unknown}
 */
export function resolveReference(document, value) {
  const reference = isJson(value) ? value['$ref'] : undefined
  if (typeof reference !== 'string') return value
  let found = /** @type {unknown} */ (document)
  for (const part of reference.slice('#/'.length).split('/')) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    found = isJson(found) ? found[name] : undefined
  }
  return found
}

/**
 * Returns the value at a path with the content of its references, and of those inside of them. A schema that contains itself ends there.
 * @param {Json} document
 * @param {readonly string[]} path
 */
export function resolveSubtree(document, path) {
  const start = path.reduce(
    (value, name) => (isJson(value) ? value[name] : undefined),
    /** @type {unknown} */ (document),
  )
  return expandReferences(document, start, [])
}

/**
 * @param {Json} document
 * @param {unknown} value
 * @param {readonly unknown[]} outer References around this value.
 * @returns {unknown}
 */
function expandReferences(document, value, outer) {
  if (Array.isArray(value)) return value.map((item) => expandReferences(document, item, outer))
  if (!isJson(value)) return value
  const { $ref: reference, ...others } = value
  if (typeof reference !== 'string')
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, expandReferences(document, item, outer)]),
    )
  if (outer.includes(reference)) return { type: 'object', description: `See ${reference.split('/').at(-1)}` }
  const target = expandReferences(document, resolveReference(document, value), [...outer, reference])
  return isJson(target) ? { ...target, ...others } : target
}

/**
 * @param {unknown} value
 * @returns {value is Json}
 */
export function isJson(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
