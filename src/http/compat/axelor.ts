// Turns what existing clients send into what the contract asks for. Lists of IN are in axelor-lists.ts. An `InverseClaim` is compared later, in the
// transaction. An edit that would be lost without a word stays refused, except where those clients rely on it.
import { MAX_TERMS } from '../../model/query/condition.js'
import type { Field, FieldTypeName } from '../../model/values/field-types.js'
import { InverseClaim } from '../../model/write/inverse-input.js'
import { isInverse, type Model } from '../../model/definition/model.js'
import { parseDatetime } from '../../model/values/date-time.js'
import { pickKnownParameters } from '../../model/query/parameters.js'
import { isOverList, resolvePath } from '../../model/query/path.js'
import { MAX_SELECTED_FIELDS, type FieldSelection } from '../../model/query/selection.js'
import { isRef } from '../../model/write/refs.js'
import type { Visibility } from '../../model/query/visibility.js'
import { META_FILE } from '../../model/catalog/system-models.js'
import { isObject } from '../../model/values/value.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { getVisibility } from '../../service/context/principal.js'
import { getTimestamp } from '../../service/context/context.js'
import { cleanDomainContext, cleanInCriterion } from './axelor-lists.js'
import { STRICT, type ProtocolSearch, type Compatibility, type Protocol } from './protocol.js'

/** Whose habits are served, by the name of the setting. */
export const PROTOCOLS: Readonly<Record<Compatibility, (app: App) => Protocol>> = {
  none: () => STRICT,
  axelor: createAxelorProtocol,
}

/** What a search without a limit answers at most. */
const UNLIMITED_SEARCH_ROWS = 10_000

type AxelorData = Readonly<Record<string, unknown>>

function createAxelorProtocol(app: App): Protocol {
  return {
    convertRecord: (principal, model, data) => convertRecord(getVisibility(app, principal), model, data),
    convertFields: (principal, model, wanted) =>
      dropUnknownFields(getVisibility(app, principal), model, wanted),
    filterParameters: pickKnownParameters,
    convertSearch: (principal, model, request) =>
      convertSearch(
        getVisibility(app, principal),
        model,
        request,
        buildDomainVariables(principal.user, getTimestamp(app)),
      ),
    // A file that stands for itself has one content, whatever a form calls it.
    chooseUploadField: (model, fieldName) => (model === META_FILE ? undefined : fieldName),
    createMayUpdate: true,
    sendsErrorsAs200: true,
  }
}

/** Unknown fields are left out, an id below 1 makes a new record, values may be spelled as texts. Any other id is left to be refused. */
function convertRecord(visibility: Visibility, model: Model, data: unknown): unknown {
  if (!isObject(data)) return data
  const record: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(data)) {
    const field = model.fields.get(name)
    if (field && visibility.isVisible(model, field)) record[name] = convertValue(visibility, field, value)
    else if (name === 'id' ? !isNewRecordId(value) : name === 'version' && value !== null)
      record[name] = value
  }
  return record
}

/** What stands for the id of a record that has none yet. */
function isNewRecordId(id: unknown): boolean {
  return id === null || id === undefined || (typeof id === 'number' && id <= 0)
}

function convertValue(visibility: Visibility, field: Field, value: unknown): unknown {
  const { relation, type } = field
  if (!relation) return coerceValue(type, value)
  const target = visibility.getTarget(relation)
  const sent = relation.isList
    ? convertRelatedList(visibility, target, value)
    : convertRelatedRecord(visibility, target, value)
  // Such clients send a record as they have read it, with the other sides of relations in it.
  return isInverse(field) ? new InverseClaim(sent) : sent
}

function convertRelatedList(visibility: Visibility, target: Model, value: unknown): unknown {
  if (value === null) return []
  return [value].flat().map((item: unknown) => convertRelatedRecord(visibility, target, item))
}

/** Without a version only who it is counts; with one it is changed too. */
function convertRelatedRecord(visibility: Visibility, target: Model, value: unknown): unknown {
  if (typeof value === 'number' && value > 0) return { id: value }
  // What a batch calls by a ref is no new record.
  if (!isObject(value) || isRef(value)) return value
  const { id, version = null } = value
  return !isNewRecordId(id) && version === null ? { id } : convertRecord(visibility, target, value)
}

const TEXT_COERCIONS: Readonly<Partial<Record<FieldTypeName, (text: string) => unknown>>> = {
  integer: parseWholeNumber,
  long: parseWholeNumber,
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  date: (text) => (parseDatetime(text) === undefined ? text : text.slice(0, 10)),
  datetime: (text) => (/T[\d:.]+$/.test(text) ? `${text}Z` : text),
  decimal: (text) => text,
  time: (text) => text,
  uuid: (text) => text,
  enum: (text) => text,
}

function parseWholeNumber(text: string): unknown {
  return /^[+-]?\d{1,16}$/.test(text) ? Number(text) : text
}

function coerceValue(type: FieldTypeName, value: unknown): unknown {
  if (typeof value === 'string') {
    const coerce = TEXT_COERCIONS[type]
    // No text at all is no value, but for texts.
    return coerce ? (value === '' ? null : coerce(value)) : value
  }
  const isText = type === 'string' || type === 'text' || type === 'enum'
  // A number that has lost digits already is not to look like a text that somebody typed.
  const isExact = typeof value === 'boolean' || Number.isSafeInteger(value)
  return isText && isExact ? String(value) : value
}

/** Names that the model does not have are left out. */
function dropUnknownFields(
  visibility: Visibility,
  model: Model,
  { fields, related }: FieldSelection,
): FieldSelection {
  const isKnown = (name: unknown) =>
    typeof name !== 'string' || typeof resolvePath(visibility, model, name) !== 'string'
  return {
    fields: isWithinFieldLimit(fields) ? fields.filter(isKnown) : fields,
    related:
      isObject(related) && isWithinFieldLimit(Object.keys(related))
        ? dropUnknownRelated(visibility, model, related)
        : related,
  }
}

/** More are refused anyway, and each is looked up. */
function isWithinFieldLimit(names: unknown): names is unknown[] {
  return Array.isArray(names) && names.length <= MAX_SELECTED_FIELDS
}

function dropUnknownRelated(visibility: Visibility, model: Model, related: AxelorData): AxelorData {
  const known: Record<string, unknown> = {}
  for (const [name, fields] of Object.entries(related)) {
    const relation = visibility.findReadable(model, name)?.relation
    if (!relation) continue
    known[name] = dropUnknownFields(visibility, visibility.getTarget(relation), { fields }).fields
  }
  return known
}

/** Criteria are joined by `or` unless they say otherwise, empty groups ask for nothing, and no limit means all. */
function convertSearch(
  visibility: Visibility,
  model: Model,
  request: unknown,
  variables: AxelorData,
): ProtocolSearch {
  const options = { maxLimit: UNLIMITED_SEARCH_ROWS }
  if (!isObject(request)) return { request: undefined, options }
  const { offset, limit, fields, sortBy, data } = request
  return {
    request: {
      offset: parsePositiveNumber(offset) ?? 0,
      limit: parsePositiveNumber(limit) ?? UNLIMITED_SEARCH_ROWS,
      fields: isWithinFieldLimit(fields)
        ? fields.filter((name) => isSelectable(visibility, model, name))
        : fields,
      sortBy,
      data: isObject(data) ? convertSearchData(visibility, model, data, variables) : data,
    },
    options,
  }
}

/** A page shows no field behind a list. */
function isSelectable(visibility: Visibility, model: Model, name: unknown): boolean {
  if (typeof name !== 'string') return true
  const path = resolvePath(visibility, model, name)
  return typeof path !== 'string' && !isOverList(path)
}

/** Undefined for nothing, 0 and less; what is no number at all is left to be refused. */
function parsePositiveNumber(value: unknown): unknown {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  if (typeof number !== 'number' || Number.isNaN(number)) return value ?? undefined
  return number >= 1 ? Math.trunc(number) : undefined
}

function convertSearchData(
  visibility: Visibility,
  model: Model,
  data: AxelorData,
  variables: AxelorData,
): AxelorData {
  const { operator, criteria, _domain, _domains, _domainContext, _archived } = data
  const buildParameters = (text: unknown, context: AxelorData) =>
    cleanDomainContext(visibility, model, text, { ...variables, ...context })
  const unchanged = { _domain, _domains: convertDomains(_domains, buildParameters), _archived }
  const isSimple = criteria === undefined || criteria === null
  const convertedCriteria = isSimple
    ? buildSimpleCriteria(data)
    : convertCriteria(criteria, (node) => cleanInCriterion(visibility, model, node))
  return {
    // Beside criteria they would be conditions without an effect: they are left to be refused.
    ...(isSimple ? {} : Object.fromEntries(listFieldKeys(data).map((name) => [name, data[name]]))),
    ...Object.fromEntries(Object.entries(unchanged).filter(([, value]) => value !== undefined)),
    _domainContext: isObject(_domainContext ?? {})
      ? buildParameters(_domain, (_domainContext ?? {}) as AxelorData)
      : _domainContext,
    operator: operator ?? 'or',
    criteria: convertedCriteria,
  }
}

function convertDomains(
  domains: unknown,
  buildParameters: (text: unknown, context: AxelorData) => AxelorData,
): unknown {
  if (!Array.isArray(domains)) return domains
  // One more than a search may have: it is refused for that.
  return domains
    .slice(0, MAX_TERMS + 1)
    .map((each: unknown) =>
      isObject(each) && isObject(each['context'] ?? {})
        ? { ...each, context: buildParameters(each['domain'], (each['context'] ?? {}) as AxelorData) }
        : each,
    )
}

/** What a simple search may say besides fields. */
const NON_FIELD_KEYS = new Set(['context', 'criteria', 'operator'])

function listFieldKeys(data: AxelorData): string[] {
  return Object.keys(data).filter((name) => /^[a-z]/i.test(name) && !NON_FIELD_KEYS.has(name))
}

/** `{name: "x"}` asks for names like x. */
function buildSimpleCriteria(data: AxelorData): unknown {
  return listFieldKeys(data).map((fieldName) => {
    const value = data[fieldName]
    return { fieldName, operator: typeof value === 'string' ? 'like' : '=', value }
  })
}

/** Without empty groups. */
function convertCriteria(criteria: unknown, convertCriterion: (node: AxelorData) => AxelorData): unknown {
  if (!Array.isArray(criteria)) return criteria
  return criteria.flatMap((node: unknown) => {
    if (!isObject(node)) return [node]
    if (!Array.isArray(node['criteria'])) return [convertCriterion(node)]
    const inner = convertCriteria(node['criteria'], convertCriterion)
    return Array.isArray(inner) && inner.length === 0 ? [] : [{ ...node, criteria: inner }]
  })
}

/** What a `_domain` may name without sending it. */
function buildDomainVariables(user: UserIdentity | null, now: string): AxelorData {
  return {
    ...(user ? { __user__: { id: user.id } } : {}),
    __date__: now.slice(0, 10),
    __time__: now.slice(11, 19),
    __datetime__: now,
  }
}
