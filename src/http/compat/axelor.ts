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
import { contextFrom, criterionFrom } from './axelor-lists.js'
import { CONTRACT, type Asked, type Compatibility, type Habits } from './protocol.js'

/** Whose habits are served, by the name of the setting. */
export const HABITS: Readonly<Record<Compatibility, (app: App) => Habits>> = {
  none: () => CONTRACT,
  axelor: axelorHabits,
}

/** What a search without a limit answers at most. */
const UNLIMITED = 10_000

type Data = Readonly<Record<string, unknown>>

function axelorHabits(app: App): Habits {
  return {
    record: (by, model, data) => recordFrom(getVisibility(app, by), model, data),
    wanted: (by, model, wanted) => wantedFrom(getVisibility(app, by), model, wanted),
    parameters: pickKnownParameters,
    search: (by, model, request) =>
      searchFrom(getVisibility(app, by), model, request, magicOf(by.user, getTimestamp(app))),
    // A file that stands for itself has one content, whatever a form calls it.
    uploadField: (model, named) => (model === META_FILE ? undefined : named),
    createsSave: true,
    refusalsAreAnswers: true,
  }
}

/** Unknown fields are left out, an id below 1 makes a new record, values may be spelled as texts. Any other id is left to be refused. */
function recordFrom(sight: Visibility, model: Model, data: unknown): unknown {
  if (!isObject(data)) return data
  const record: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(data)) {
    const field = model.fields.get(name)
    if (field && sight.isVisible(model, field)) record[name] = valueFrom(sight, field, value)
    else if (name === 'id' ? !isOfNew(value) : name === 'version' && value !== null) record[name] = value
  }
  return record
}

/** What stands for the id of a record that has none yet. */
function isOfNew(id: unknown): boolean {
  return id === null || id === undefined || (typeof id === 'number' && id <= 0)
}

function valueFrom(sight: Visibility, field: Field, value: unknown): unknown {
  const { relation, type } = field
  if (!relation) return looselySpelled(type, value)
  const target = sight.getTarget(relation)
  const sent = relation.isList ? listFrom(sight, target, value) : neighbourFrom(sight, target, value)
  // Such clients send a record as they have read it, with the other sides of relations in it.
  return isInverse(field) ? new InverseClaim(sent) : sent
}

function listFrom(sight: Visibility, target: Model, value: unknown): unknown {
  if (value === null) return []
  return [value].flat().map((item: unknown) => neighbourFrom(sight, target, item))
}

/** Without a version only who it is counts; with one it is changed too. */
function neighbourFrom(sight: Visibility, target: Model, value: unknown): unknown {
  if (typeof value === 'number' && value > 0) return { id: value }
  // What a batch calls by a ref is no new record.
  if (!isObject(value) || isRef(value)) return value
  const { id, version = null } = value
  return !isOfNew(id) && version === null ? { id } : recordFrom(sight, target, value)
}

const SPELLINGS: Readonly<Partial<Record<FieldTypeName, (text: string) => unknown>>> = {
  integer: asWhole,
  long: asWhole,
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  date: (text) => (parseDatetime(text) === undefined ? text : text.slice(0, 10)),
  datetime: (text) => (/T[\d:.]+$/.test(text) ? `${text}Z` : text),
  decimal: (text) => text,
  time: (text) => text,
  uuid: (text) => text,
  enum: (text) => text,
}

function asWhole(text: string): unknown {
  return /^[+-]?\d{1,16}$/.test(text) ? Number(text) : text
}

function looselySpelled(type: FieldTypeName, value: unknown): unknown {
  if (typeof value === 'string') {
    const spelled = SPELLINGS[type]
    // No text at all is no value, but for texts.
    return spelled ? (value === '' ? null : spelled(value)) : value
  }
  const isText = type === 'string' || type === 'text' || type === 'enum'
  // A number that has lost digits already is not to look like a text that somebody typed.
  const isExact = typeof value === 'boolean' || Number.isSafeInteger(value)
  return isText && isExact ? String(value) : value
}

/** Names that the model does not have are left out. */
function wantedFrom(sight: Visibility, model: Model, { fields, related }: FieldSelection): FieldSelection {
  const isKnown = (name: unknown) =>
    typeof name !== 'string' || typeof resolvePath(sight, model, name) !== 'string'
  return {
    fields: isFew(fields) ? fields.filter(isKnown) : fields,
    related: isObject(related) && isFew(Object.keys(related)) ? knownRelated(sight, model, related) : related,
  }
}

/** More are refused anyway, and each is looked up. */
function isFew(names: unknown): names is unknown[] {
  return Array.isArray(names) && names.length <= MAX_SELECTED_FIELDS
}

function knownRelated(sight: Visibility, model: Model, related: Data): Data {
  const known: Record<string, unknown> = {}
  for (const [name, fields] of Object.entries(related)) {
    const relation = sight.findReadable(model, name)?.relation
    if (!relation) continue
    known[name] = wantedFrom(sight, sight.getTarget(relation), { fields }).fields
  }
  return known
}

/** Criteria are joined by `or` unless they say otherwise, empty groups ask for nothing, and no limit means all. */
function searchFrom(sight: Visibility, model: Model, request: unknown, magic: Data): Asked {
  const options = { maxLimit: UNLIMITED }
  if (!isObject(request)) return { request: undefined, options }
  const { offset, limit, fields, sortBy, data } = request
  return {
    request: {
      offset: atLeastOne(offset) ?? 0,
      limit: atLeastOne(limit) ?? UNLIMITED,
      fields: isFew(fields) ? fields.filter((name) => isShowable(sight, model, name)) : fields,
      sortBy,
      data: isObject(data) ? dataFrom(sight, model, data, magic) : data,
    },
    options,
  }
}

/** A page shows no field behind a list. */
function isShowable(sight: Visibility, model: Model, name: unknown): boolean {
  if (typeof name !== 'string') return true
  const path = resolvePath(sight, model, name)
  return typeof path !== 'string' && !isOverList(path)
}

/** Undefined for nothing, 0 and less; what is no number at all is left to be refused. */
function atLeastOne(value: unknown): unknown {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  if (typeof number !== 'number' || Number.isNaN(number)) return value ?? undefined
  return number >= 1 ? Math.trunc(number) : undefined
}

function dataFrom(sight: Visibility, model: Model, data: Data, magic: Data): Data {
  const { operator, criteria, _domain, _domains, _domainContext, _archived } = data
  const parameters = (text: unknown, context: Data) =>
    contextFrom(sight, model, text, { ...magic, ...context })
  const kept = { _domain, _domains: domainsFrom(_domains, parameters), _archived }
  const isSimple = criteria === undefined || criteria === null
  const asked = isSimple
    ? simpleCriteria(data)
    : criteriaFrom(criteria, (node) => criterionFrom(sight, model, node))
  return {
    // Beside criteria they would be conditions without an effect: they are left to be refused.
    ...(isSimple ? {} : Object.fromEntries(fieldsIn(data).map((name) => [name, data[name]]))),
    ...Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined)),
    _domainContext: isObject(_domainContext ?? {})
      ? parameters(_domain, (_domainContext ?? {}) as Data)
      : _domainContext,
    operator: operator ?? 'or',
    criteria: asked,
  }
}

function domainsFrom(domains: unknown, parameters: (text: unknown, context: Data) => Data): unknown {
  if (!Array.isArray(domains)) return domains
  // One more than a search may have: it is refused for that.
  return domains
    .slice(0, MAX_TERMS + 1)
    .map((each: unknown) =>
      isObject(each) && isObject(each['context'] ?? {})
        ? { ...each, context: parameters(each['domain'], (each['context'] ?? {}) as Data) }
        : each,
    )
}

/** What a simple search may say besides fields. */
const NO_FIELDS = new Set(['context', 'criteria', 'operator'])

function fieldsIn(data: Data): string[] {
  return Object.keys(data).filter((name) => /^[a-z]/i.test(name) && !NO_FIELDS.has(name))
}

/** `{name: "x"}` asks for names like x. */
function simpleCriteria(data: Data): unknown {
  return fieldsIn(data).map((fieldName) => {
    const value = data[fieldName]
    return { fieldName, operator: typeof value === 'string' ? 'like' : '=', value }
  })
}

/** Without empty groups. */
function criteriaFrom(criteria: unknown, criterion: (node: Data) => Data): unknown {
  if (!Array.isArray(criteria)) return criteria
  return criteria.flatMap((node: unknown) => {
    if (!isObject(node)) return [node]
    if (!Array.isArray(node['criteria'])) return [criterion(node)]
    const inner = criteriaFrom(node['criteria'], criterion)
    return Array.isArray(inner) && inner.length === 0 ? [] : [{ ...node, criteria: inner }]
  })
}

/** What a `_domain` may name without sending it. */
function magicOf(actor: UserIdentity | null, now: string): Data {
  return {
    ...(actor ? { __user__: { id: actor.id } } : {}),
    __date__: now.slice(0, 10),
    __time__: now.slice(11, 19),
    __datetime__: now,
  }
}
