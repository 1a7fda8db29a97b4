// Names of schemas, in documents and in code that is generated from them.
import { createHash } from 'node:crypto'

/** The schemas of a model besides that of the record itself. */
export const SCHEMA_SUFFIXES = [
  'Create',
  'Update',
  'Item',
  'Page',
  'Result',
  'Saved',
  'Reference',
  'Input',
] as const
export type SchemaSuffix = (typeof SCHEMA_SUFFIXES)[number]

const PACKAGE_SEGMENT = /^[a-z][a-z0-9]*$/
const NAME_SEGMENT = /^[A-Z][A-Za-z0-9]*$/
const RESERVED_ENDING = new RegExp(`(${SCHEMA_SUFFIXES.join('|')})$`)
const HASH_CHARACTERS = 8

/**
 * Returns an identifier for a model: `crm.SalesOrder` is `CrmSalesOrder`, `crm.sales.Order` is `CrmSales_Order`. Different models get different
 * names. The name depends on the model alone: a suffix against clashes would reveal models that the user may not see.
 */
export function toComponentName(modelName: string): string {
  const known = knownNames.get(modelName) ?? buildComponentName(modelName)
  knownNames.set(modelName, known)
  return known
}

/** A document contains each name many times. Names come from models, so there are few. */
const knownNames = new Map<string, string>()

function buildComponentName(modelName: string): string {
  const segments = modelName.split('.')
  const packages = segments.slice(0, -1)
  const name = segments.at(-1) ?? ''
  const isUsual =
    packages.every((segment) => PACKAGE_SEGMENT.test(segment)) &&
    NAME_SEGMENT.test(name) &&
    !RESERVED_ENDING.test(name)
  if (isUsual) return `${packages.map(capitalize).join('')}${packages.length > 1 ? '_' : ''}${name}`
  const digest = createHash('sha256').update(modelName).digest('hex').slice(0, HASH_CHARACTERS)
  return `${segments.map(capitalize).join('_')}_${digest}`
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
