// The hooks of permissions: the model pattern, the condition and the field lists must match models of the catalog.
import { VersoError } from '../../errors.js'
import { bindCondition } from '../../model/query/bind-condition.js'
import type { Draft } from '../../model/write/draft.js'
import type { FieldErrors } from '../../model/definition/field-errors.js'
import { parseFilter } from '../../model/query/filter.js'
import { KEY_FIELD_NAMES } from '../../model/query/path.js'
import { isReadByDefault, type Model } from '../../model/definition/model.js'
import {
  ACTION_FIELDS,
  coversModel,
  isModelPattern,
  getPackageName,
  validateConditionReach,
} from '../../model/access/permission-record.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Field, FieldTypeName } from '../../model/values/field.js'
import type { JsonObject } from '../../model/values/value.js'
import { didYouMean, shortenForMessage } from '../../model/values/did-you-mean.js'
import { readMergedValues } from './user-hooks.js'
import type { App, Context, ModelHooks } from '../context/app.js'

const FIELD_LISTS = ['readable', 'writable'] as const
const ACTION_FIELD_NAMES = Object.values(ACTION_FIELDS)
/** The validity of each of these fields depends on the others. */
const PERMISSION_DEPENDENT_FIELDS: readonly string[] = [
  'model',
  'condition',
  ...FIELD_LISTS,
  ...ACTION_FIELD_NAMES,
]
/** All models, the models of a package, or one model. */
const MODEL_PATTERN = /^(\*|[A-Za-z]\w*(\.[A-Za-z]\w*)*\.(\*|[A-Za-z]\w*))$/

export const PERMISSION_HOOKS: ModelHooks = {
  prepare: validatePermission,
  preparedFields: PERMISSION_DEPENDENT_FIELDS,
}

/** Validates the stored values, replaced by those of the draft. */
async function validatePermission(
  { app, principal }: Context,
  draft: Draft,
  errors: FieldErrors,
): Promise<Draft> {
  const { values, path } = draft
  // Only administrators may write permissions, and the errors would reveal models and fields to others.
  if (principal.permissions) return draft
  if (!PERMISSION_DEPENDENT_FIELDS.some((name) => Object.hasOwn(values, name))) return draft
  const all = await readMergedValues(app, draft)
  const named = typeof all['model'] === 'string' ? all['model'] : ''
  const models = findModelsMatching(app, named)
  if (models.length === 0) {
    const error = findModelNameError(app, named)
    if (error !== undefined) errors.add(`${path}model`, error)
  }
  // Without a matching model, only the syntax of the condition and of the lists can be checked.
  const isKnown = models.length > 0 && !hasNoModels(app)
  const condition = findConditionError(app, isKnown ? models : [], all['condition'])
  if (condition !== undefined) errors.add(`${path}condition`, condition)
  for (const name of FIELD_LISTS) {
    const error = findFieldListError(isKnown ? models : [], all[name], name)
    if (error !== undefined) errors.add(path + name, error)
  }
  if (!ACTION_FIELD_NAMES.some((name) => all[name] === true))
    errors.add(
      `${path}canRead`,
      `or another action must be true (${ACTION_FIELD_NAMES.join(', ')}): a permission without an action permits nothing`,
    )
  return draft
}

/** True for commands that run without model files. */
function hasNoModels({ catalog }: App): boolean {
  return catalog.models.length === 0
}

function findModelsMatching({ catalog }: App, named: string): readonly Model[] {
  return catalog.storedModels.filter((model) => model.name === named || coversModel(named, model))
}

function findModelNameError(app: App, named: string): string | undefined {
  if (!MODEL_PATTERN.test(named)) return 'must be the name of a model, a package such as crm.*, or *'
  if (hasNoModels(app)) return undefined
  const names = app.catalog.storedModels.map(({ name }) => name)
  const shortened = shortenForMessage(named)
  if (!isModelPattern(named)) return `is an unknown model: ${shortened}${didYouMean(named, names)}`
  const packages = new Set(
    app.catalog.storedModels.filter((model) => coversModel('*', model)).map(getPackageName),
  )
  const suggestion = didYouMean(
    named,
    [...packages].map((each) => `${each}.*`),
  )
  return `matches no model: ${shortened}${suggestion}`
}

/** A condition for several models is valid if it is valid for one of them. */
function findConditionError(app: App, models: readonly Model[], condition: unknown): string | undefined {
  if (typeof condition !== 'string' || condition.trim() === '') return undefined
  const sample = buildSampleUser(app.catalog, hasNoModels(app) ? listUserFieldNames(condition) : [])
  try {
    const parsed = parseFilter(condition, { user: sample }, 'condition')
    const all = models.map((model) => {
      const faults: string[] = []
      const criteria = bindCondition(app.catalog, model, parsed, faults)
      const message = criteria && validateConditionReach(criteria)
      return message === undefined ? faults : [...faults, message]
    })
    const [first] = all
    if (!first || all.some((errors) => errors.length === 0)) return undefined
    const which = models.length > 1 ? ' for any of these models' : ''
    return `is not valid${which}: ${first.join('; ')}`
  } catch (error) {
    if (!(error instanceof VersoError)) throw error
    return `is not valid: ${error.message}`
  }
}

/** Lists the fields of users that the condition names, including those that extensions add. */
function listUserFieldNames(condition: string): string[] {
  return [...condition.matchAll(/:user[.$](\w+)/g)].map(([, name = '']) => name)
}

function findFieldListError(models: readonly Model[], list: unknown, option: string): string | undefined {
  if (list === null || list === undefined) return undefined
  if (!Array.isArray(list) || !list.every((name) => typeof name === 'string'))
    return 'must be a list of field names, or null for all fields'
  if (models.length === 0) return undefined
  const known = new Set(models.flatMap(({ fields }) => [...fields.keys()]))
  const unknown = list.filter(
    (name) => !known.has(name) && !(option === 'readable' && KEY_FIELD_NAMES.includes(name)),
  )
  if (unknown.length === 0) return undefined
  const [only] = models
  const whose = models.length === 1 && only ? only.name : 'any of these models'
  return unknown
    .slice(0, 5)
    .map(
      (name) =>
        `has "${shortenForMessage(name)}", which is not a field of ${whose}${didYouMean(name, known)}`,
    )
    .join(' and ')
}

const SAMPLE_VALUES: Readonly<Partial<Record<FieldTypeName, unknown>>> = {
  string: 'x',
  text: 'x',
  integer: 1,
  long: 1,
  decimal: '1',
  boolean: true,
  date: '2024-01-31',
  time: '13:45:00',
  datetime: '2024-01-31T13:45:00.000Z',
  uuid: '00000000-0000-0000-0000-000000000000',
  // Conditions can use JSON only as a list.
  json: [],
}

/**
 * Returns a user with a value in every readable field, to check conditions. `others` are further fields of users, for commands that run
 * without model files and so cannot know the extensions of users.
 */
function buildSampleUser(catalog: Catalog, others: readonly string[]): JsonObject {
  const user: Record<string, unknown> = Object.fromEntries(others.map((name) => [name, []]))
  for (const field of catalog.user.fields.values())
    if (isReadByDefault(field)) user[field.name] = getSampleValue(field)
  return { ...user, id: 1, version: 0 }
}

function getSampleValue({ type, relation, selection }: Field): unknown {
  if (!relation) return selection?.[0]?.value ?? SAMPLE_VALUES[type] ?? null
  return relation.isList ? [{ id: 1 }] : { id: 1 }
}
