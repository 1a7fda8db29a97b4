// Compatibility with existing Axelor clients: converts their requests to strict ones. axelor-in-lists.ts converts IN lists. The transaction
// compares an `InverseClaim` with the stored relation later. Edits that would be lost silently are still rejected, except where these
// clients rely on it.
import { MAX_TERMS } from '../../model/query/condition.js'
import type { Field, FieldTypeName } from '../../model/values/field.js'
import { InverseClaim } from '../../model/write/inverse-input.js'
import { isInverse, type Model } from '../../model/definition/model.js'
import { parseDatetime } from '../../model/values/date-time.js'
import { pickKnownParameters } from '../../model/query/parameters.js'
import { isOverList, MAX_SELECTED_FIELDS, resolvePath } from '../../model/query/path.js'
import type { FieldSelection } from '../../model/query/selection.js'
import { isRef } from '../../model/write/refs.js'
import type { Visibility } from '../../model/query/visibility.js'
import { isObject } from '../../model/values/value.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { getVisibility, getTimestamp } from '../../service/context/context.js'
import { cleanDomainContext, cleanInCriterion, type AxelorObject } from './axelor-in-lists.js'
import { STRICT, type ProtocolSearch, type Compatibility, type Protocol } from './protocol.js'

/** The protocol of each value of the setting `compat`. */
export const PROTOCOLS: Readonly<Record<Compatibility, (app: App) => Protocol>> = {
  none: () => STRICT,
  axelor: createAxelorProtocol,
}

/** Maximum number of rows of a search without a limit. */
const UNLIMITED_SEARCH_ROWS = 10_000

function createAxelorProtocol(app: App): Protocol {
  return {
    convertRecord: (principal, model, data) =>
      convertAxelorRecord(getVisibility(app, principal), model, data),
    convertFields: (principal, model, fields) =>
      dropUnknownFields(getVisibility(app, principal), model, fields),
    filterParameters: (query, parameters) => dropOtherCount(pickKnownParameters(query, parameters)),
    convertSearch: (principal, model, request) =>
      convertSearch(
        getVisibility(app, principal),
        model,
        request,
        buildDomainVariables(principal.user, getTimestamp(app)),
      ),
    // A model of files has one binary field, so the name in the form does not matter.
    chooseUploadField: (model, fieldName) => (model.fileFields ? undefined : fieldName),
    createMayUpdate: true,
    sendsErrorsAs200: true,
  }
}

/** These clients know no parameter `count`, so other values than this service's own are ignored like an unknown parameter. */
function dropOtherCount<T extends { readonly count?: unknown }>(parameters: T): T {
  if (parameters.count === undefined || parameters.count === 'none') return parameters
  return { ...parameters, count: undefined }
}

/** Drops unknown fields, drops ids below 1 (they mean a new record) and converts values from text. The writer rejects other bad ids. */
function convertAxelorRecord(visibility: Visibility, model: Model, data: unknown): unknown {
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

/** Clients send null or a number below 1 as the id of a new record. */
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
  // These clients send back a record as they read it, including its inverse relations.
  return isInverse(field) ? new InverseClaim(sent) : sent
}

function convertRelatedList(visibility: Visibility, target: Model, value: unknown): unknown {
  if (value === null) return []
  return [value].flat().map((item: unknown) => convertRelatedRecord(visibility, target, item))
}

/** A related record without a version is a reference by id. With a version it is also updated. */
function convertRelatedRecord(visibility: Visibility, target: Model, value: unknown): unknown {
  if (typeof value === 'number' && value > 0) return { id: value }
  // A ref names another record of the batch.
  if (!isObject(value) || isRef(value)) return value
  const { id, version = null } = value
  return !isNewRecordId(id) && version === null ? { id } : convertAxelorRecord(visibility, target, value)
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
    // An empty text means null, except for text fields.
    return coerce ? (value === '' ? null : coerce(value)) : value
  }
  const isText = type === 'string' || type === 'text' || type === 'enum'
  // A number that lost digits in JSON is not converted: as a text it would look exact.
  const isExact = typeof value === 'boolean' || Number.isSafeInteger(value)
  return isText && isExact ? String(value) : value
}

/** Drops fields that the model does not have. */
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

/** The search rejects longer selections, so the names of those are not looked up. */
function isWithinFieldLimit(names: unknown): names is unknown[] {
  return Array.isArray(names) && names.length <= MAX_SELECTED_FIELDS
}

function dropUnknownRelated(visibility: Visibility, model: Model, related: AxelorObject): AxelorObject {
  const visibleRelated: Record<string, unknown> = {}
  for (const [name, fields] of Object.entries(related)) {
    const relation = visibility.findReadable(model, name)?.relation
    if (!relation) continue
    visibleRelated[name] = dropUnknownFields(visibility, visibility.getTarget(relation), { fields }).fields
  }
  return visibleRelated
}

/** Joins criteria by `or` by default, drops empty groups, and treats a missing limit as `UNLIMITED_SEARCH_ROWS`. */
function convertSearch(
  visibility: Visibility,
  model: Model,
  request: unknown,
  variables: AxelorObject,
): ProtocolSearch {
  const options = { maxPageSize: UNLIMITED_SEARCH_ROWS }
  if (!isObject(request)) return { request: undefined, options }
  const { offset, limit, fields, sortBy, count, data } = request
  return {
    request: {
      ...dropOtherCount({ count }),
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

/** A page cannot contain fields of list members. */
function isSelectable(visibility: Visibility, model: Model, name: unknown): boolean {
  if (typeof name !== 'string') return true
  const path = resolvePath(visibility, model, name)
  return typeof path !== 'string' && !isOverList(path)
}

/** Returns undefined for a missing value and numbers below 1. Returns other values unchanged, so the search rejects them. */
function parsePositiveNumber(value: unknown): unknown {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  if (typeof number !== 'number' || Number.isNaN(number)) return value ?? undefined
  return number >= 1 ? Math.trunc(number) : undefined
}

function convertSearchData(
  visibility: Visibility,
  model: Model,
  data: AxelorObject,
  variables: AxelorObject,
): AxelorObject {
  const { operator, criteria, _domain, _domains, _domainContext, _archived } = data
  const buildParameters = (text: unknown, context: AxelorObject) =>
    cleanDomainContext(visibility, model, text, { ...variables, ...context })
  const unchanged = { _domain, _domains: convertDomains(_domains, buildParameters), _archived }
  const isSimple = criteria === undefined || criteria === null
  const convertedCriteria = isSimple
    ? buildSimpleCriteria(data)
    : convertCriteria(criteria, (node) => cleanInCriterion(visibility, model, node))
  return {
    // Beside `criteria`, field values would have no effect. They are kept, so the search rejects them.
    ...(isSimple ? {} : Object.fromEntries(listFieldKeys(data).map((name) => [name, data[name]]))),
    ...Object.fromEntries(Object.entries(unchanged).filter(([, value]) => value !== undefined)),
    _domainContext: isObject(_domainContext ?? {})
      ? buildParameters(_domain, (_domainContext ?? {}) as AxelorObject)
      : _domainContext,
    operator: operator ?? 'or',
    criteria: convertedCriteria,
  }
}

function convertDomains(
  domains: unknown,
  buildParameters: (text: unknown, context: AxelorObject) => AxelorObject,
): unknown {
  if (!Array.isArray(domains)) return domains
  // Keeps one more than the limit, so the search rejects the request.
  return domains
    .slice(0, MAX_TERMS + 1)
    .map((each: unknown) =>
      isObject(each) && isObject(each['context'] ?? {})
        ? { ...each, context: buildParameters(each['domain'], (each['context'] ?? {}) as AxelorObject) }
        : each,
    )
}

/** Keys of a simple search that are not fields. */
const NON_FIELD_KEYS = new Set(['context', 'criteria', 'operator'])

function listFieldKeys(data: AxelorObject): string[] {
  return Object.keys(data).filter((name) => /^[a-z]/i.test(name) && !NON_FIELD_KEYS.has(name))
}

/** `{name: "x"}` matches names like x. */
function buildSimpleCriteria(data: AxelorObject): unknown {
  return listFieldKeys(data).map((fieldName) => {
    const value = data[fieldName]
    return { fieldName, operator: typeof value === 'string' ? 'like' : '=', value }
  })
}

/** Drops empty groups. */
function convertCriteria(criteria: unknown, convertCriterion: (node: AxelorObject) => AxelorObject): unknown {
  if (!Array.isArray(criteria)) return criteria
  return criteria.flatMap((node: unknown) => {
    if (!isObject(node)) return [node]
    if (!Array.isArray(node['criteria'])) return [convertCriterion(node)]
    const inner = convertCriteria(node['criteria'], convertCriterion)
    return Array.isArray(inner) && inner.length === 0 ? [] : [{ ...node, criteria: inner }]
  })
}

/** The variables that a `_domain` may use without sending their values. */
function buildDomainVariables(user: UserIdentity | null, now: string): AxelorObject {
  return {
    ...(user ? { __user__: { id: user.id } } : {}),
    __date__: now.slice(0, 10),
    __time__: now.slice(11, 19),
    __datetime__: now,
  }
}
