import { ConfigError } from '../../src/errors.js'
import { Catalog } from '../../src/model/catalog/catalog.js'

/** The errors of definitions that a start would report. The files are `m1.json`, `m2.json` and so on. */
export function errorsOf(...definitions: readonly unknown[]): readonly string[] {
  try {
    Catalog.from(definitions.map((definition, index) => ({ file: `m${index + 1}.json`, definition })))
  } catch (error) {
    if (error instanceof ConfigError) return error.errors
    throw error
  }
  return []
}
