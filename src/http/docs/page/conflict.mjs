// Explains a conflict: the fields that both sides know, with the values of each.

/**
 * @typedef {{ field: string, base: string, ours: string, theirs: string, verdict: string }} ConflictRow
 * @typedef {{ message: string, rows: ConflictRow[] }} ConflictReport
 */

/**
 * Returns undefined for a body that is no conflict. With --compat axelor a conflict has the HTTP status 200, so only its kind counts.
 * @param {string} text
 * @returns {ConflictReport | undefined}
 */
export function readConflict(text) {
  let body
  try {
    body = JSON.parse(text)
  } catch {
    return undefined
  }
  const data = body?.data
  if (data?.kind !== 'conflict' && data?.kind !== 'stale-match') return undefined
  const rows = Object.entries(data.fields ?? {}).map(([field, sides]) => {
    const { base, ours, theirs, verdict } = /** @type {Record<string, unknown>} */ (sides)
    return {
      field,
      base: describeValue(base),
      ours: describeValue(ours),
      theirs: describeValue(theirs),
      verdict: String(verdict),
    }
  })
  return { message: String(data.message), rows }
}

/** @param {unknown} value */
function describeValue(value) {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
