// The existing record that snippets and forms show. A write through the page changes it, so they follow its version.
import { describeRequest, fillBody } from './request-values.mjs'

/**
 * @typedef {import('./request-values.mjs').ApiDocument} ApiDocument
 * @typedef {import('./request-values.mjs').Sample} Sample
 * @typedef {import('./request-values.mjs').RequestSource} RequestSource
 * @typedef {{ get: (name: string) => unknown }} StoredParameter
 * @typedef {{
 *   specSelectors: { parameterWithMeta: (operation: string[], name: string, place: string) => StoredParameter | undefined },
 *   specActions: { changeParam: (operation: string[], name: string, place: string, value: unknown, isXml: boolean) => void, updateJsonSpec: (spec: object) => void },
 *   oas3Selectors: { requestBodyValue: (path: string, method: string) => unknown },
 *   oas3Actions: { setRequestBodyValue: (change: { value: string, pathMethod: string[] }) => void },
 * }} SwaggerUi
 */

/** @param {() => Promise<Sample>} find */
export async function createSampleStore(find) {
  let sample = await find()
  const listeners = /** @type {Set<() => void>} */ (new Set())
  return {
    get: () => sample,
    subscribe: (/** @type {() => void} */ listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    /** Reads the record again. Returns the one before. */
    refresh: async () => {
      const before = sample
      sample = await find()
      for (const listener of listeners) listener()
      return before
    },
  }
}

/**
 * Replaces the record in the forms. A form whose user has chosen another record or another version stays as it is.
 * @param {SwaggerUi} ui
 * @param {ApiDocument} document
 * @param {{ before: Sample, after: Sample }} samples
 */
export function refreshForms(ui, document, samples) {
  for (const [path, item] of Object.entries(document.paths))
    for (const method of Object.keys(item).filter((name) => name !== 'parameters'))
      refreshForm(ui, { document, path, method }, samples)
}

/**
 * @param {SwaggerUi} ui
 * @param {RequestSource} source
 * @param {{ before: Sample, after: Sample }} samples
 */
function refreshForm(ui, source, { before, after }) {
  const { path, method } = source
  const { parameters: next, body: example } = describeRequest({ ...source, sample: after })
  const changes = describeRequest({ ...source, sample: before }).parameters.map(
    ({ name, in: place, value }) => {
      const stored = ui.specSelectors.parameterWithMeta([path, method], name, place)?.get('value')
      const wanted = next.find((parameter) => parameter.name === name && parameter.in === place)?.value
      return { name, place, wanted, stored, isOwn: stored !== undefined && String(stored) !== String(value) }
    },
  )
  if (changes.some(({ name, isOwn }) => name === 'id' && isOwn)) return
  for (const { name, place, wanted, stored, isOwn } of changes)
    if (stored !== undefined && !isOwn && wanted !== stored)
      ui.specActions.changeParam([path, method], name, place, wanted, false)
  const text = ui.oas3Selectors.requestBodyValue(path, method)
  const filled = typeof text === 'string' ? refillText(text, path, { before, after, example }) : undefined
  if (filled !== undefined && filled !== text)
    ui.oas3Actions.setRequestBodyValue({ value: filled, pathMethod: [path, method] })
}

/**
 * Returns undefined if the text is no JSON, or is about another record.
 * @param {string} text
 * @param {string} path
 * @param {{ before: Sample, after: Sample, example: unknown }} samples
 */
function refillText(text, path, { before, after, example }) {
  let body
  try {
    body = JSON.parse(text)
  } catch {
    return undefined
  }
  const expected = fillBody(body, path, before)
  // Before its first update, a record has no earlier version: the form of a revert has the example of the document.
  if (expected !== undefined && JSON.stringify(expected) !== JSON.stringify(body)) return undefined
  const filled = fillBody(body, path, after) ?? example
  return filled === undefined ? undefined : JSON.stringify(filled, null, 2)
}
