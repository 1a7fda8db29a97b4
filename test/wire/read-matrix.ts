// Every read route combined with every kind of query, as requests for both engines.
import { JSON_BODY, type Sent } from './exchange.js'

/** Queries for a model. The second list of each pair holds invalid ones. */
interface Questions {
  readonly fields: readonly [right: readonly string[], wrong: readonly string[]]
  readonly sorts: readonly [right: readonly string[], wrong: readonly string[]]
  readonly filters: readonly [right: readonly string[], wrong: readonly string[]]
  /** Search words. */
  readonly q: string
}

const MODELS: Readonly<Record<string, Questions>> = {
  'rel.Person': {
    fields: [
      [
        ...['name', 'company', 'boss', 'circles', 'badge', 'keeper', 'createdBy', 'updatedBy', 'createdOn'],
        ...['company.name', 'company.seat.city', 'id,version', 'name,company,circles,badge,updatedBy'],
      ],
      ['nothing', 'company.nothing', 'circles.name', 'company,nothing'],
    ],
    sorts: [
      ['name', '-company.name', 'company', '-born,name', 'createdBy'],
      ['nothing', 'circles'],
    ],
    filters: [
      ["name like 'a'", "company.name = 'Acme'", "circles.name = 'Red'", 'boss is null'],
      ['nothing = 1', 'name ='],
    ],
    q: 'a',
  },
  'rel.Company': {
    fields: [
      ['code', 'addresses', 'people', 'seat', 'parent', 'createdBy', 'parent.name', 'addresses,seat,code'],
      ['founded.x'],
    ],
    sorts: [['-name', 'parent'], ['addresses']],
    filters: [["people.name = 'Ada'", "addresses.doors.code = 'D1'"], ['people = x']],
    q: 'z',
  },
  'test.Note': {
    fields: [['title', 'archived', 'createdBy', 'title,updatedOn,updatedBy'], ['titel']],
    sorts: [['-title', '-id'], ['titel']],
    filters: [["title like 'o'", 'archived = true'], ['(']],
    q: 'o',
  },
  'crm.Contact': {
    fields: [
      ['firstName', 'phones', 'notes,fullName', 'createdBy'],
      ['pin', 'password'],
    ],
    sorts: [['-lastName', 'fullName'], ['pin']],
    filters: [["lastName = 'B'"], ["pin = '1'"]],
    q: 'b',
  },
  'test.Everything': {
    fields: [['amount', 'big,price,active', 'day,at,moment,token,state,extra'], ['amonut']],
    sorts: [['-amount', 'moment', 'active'], ['extra']],
    filters: [['amount > 1', "state = 'sent'"], ['amount = x']],
    q: 'x',
  },
}

export interface Question {
  readonly model: string
  readonly query: Readonly<Record<string, string>>
  readonly isWrong: boolean
}

function some(name: string, [right, wrong]: Questions['fields'], most = Infinity) {
  const ways = [
    ...right.slice(0, most).map((value) => ({ query: { [name]: value }, isWrong: false })),
    ...wrong.slice(0, most).map((value) => ({ query: { [name]: value }, isWrong: true })),
  ]
  return [{ query: {}, isWrong: false }, ...ways]
}

function product(...ways: readonly (readonly Omit<Question, 'model'>[])[]): Omit<Question, 'model'>[] {
  return ways.reduce<Omit<Question, 'model'>[]>(
    (all, next) =>
      all.flatMap((one) =>
        next.map((two) => ({
          query: { ...one.query, ...two.query },
          isWrong: one.isWrong || two.isWrong,
        })),
      ),
    [{ query: {}, isWrong: false }],
  )
}

/** Fields alone, with some sort orders and with some filters; all sort orders with all filters. */
export const QUESTIONS: readonly Question[] = Object.entries(MODELS).flatMap(([model, asked]) => {
  const words = [
    { query: { q: asked.q }, isWrong: false },
    { query: { archived: 'true' }, isWrong: false },
    { query: { limit: '2', offset: '1' }, isWrong: false },
    { query: { limit: '0' }, isWrong: false },
  ]
  const fields = some('fields', asked.fields)
  const filters = [...some('filter', asked.filters), ...words]
  const all = [
    ...product(fields, some('sortBy', asked.sorts, 1)),
    ...product(fields, some('filter', asked.filters, 1)),
    ...product(fields.slice(0, 4), words),
    ...product(some('sortBy', asked.sorts), filters),
  ]
  const unlike = new Map(all.map((each) => [JSON.stringify(each.query), each]))
  return [...unlike.values()].map((each) => ({ model, ...each }))
})

export function find({ model, query }: Question, more: Readonly<Record<string, string>> = {}): Sent {
  return { path: `/ws/rest/${model}?${new URLSearchParams({ ...query, ...more }).toString()}` }
}

/** The query as a search or an export; undefined if it cannot express the query. */
export function post({ model, query }: Question, verb: 'search' | 'export'): Sent | undefined {
  const { q, filter, archived, fields, sortBy, limit, offset } = query
  if (q !== undefined || (verb === 'export' && limit !== undefined)) return undefined
  const data = { _domain: filter, ...(archived === undefined ? {} : { _archived: true }) }
  const page = limit === undefined ? {} : { limit: Number(limit), offset: Number(offset ?? 0) }
  const lists = { fields: fields?.split(','), sortBy: sortBy?.split(',') }
  return postTo(`/ws/rest/${model}/${verb}`, { ...lists, ...page, data })
}

function postTo(path: string, body: object): Sent {
  return { method: 'POST', path, headers: JSON_BODY, body: JSON.stringify(body) }
}

/** Requests for single records and for metadata. `asOf` is an instant in the past. */
export function recordRequests(
  ids: Readonly<Record<string, readonly number[]>>,
  asOf: string,
): readonly Sent[] {
  const get = (path: string): Sent => ({ path })
  return [
    ...Object.entries(MODELS).flatMap(([model, { fields }]) => {
      const path = `/ws/rest/${model}`
      const names = fields.flat()
      return [
        ...(ids[model] ?? []).flatMap((id) => [
          ...[
            '',
            '/history',
            '/history?limit=1&offset=1',
            '/history/0',
            '/history/1',
            '/history/99',
            '/copy',
          ].map((tail) => get(`${path}/${id}${tail}`)),
          ...['0', '1', '99', asOf, '1999-01-01', 'never'].map((at) => get(`${path}/${id}?asOf=${at}`)),
          ...[undefined, ...names].map((name) => postTo(`${path}/${id}/fetch`, { fields: name?.split(',') })),
          postTo(`${path}/${id}/fetch`, { related: Object.fromEntries(names.map((name) => [name, ['id']])) }),
          ...['', ...names].map((name) => get(`${path}/${id}/details${name === '' ? '' : `?name=${name}`}`)),
          get(`${path}/perms?id=${id}`),
          ...[0, 1].map((version) => postTo(`${path}/verify`, { data: { id, version } })),
        ]),
        ...['', '?limit=1', '?q=a', '?before=5&limit=2'].map((query) => get(`${path}/deleted${query}`)),
        ...[`${path}/perms`, `${path}/perms?action=read`, `/ws/meta/fields/${model}`].map(get),
        // The document contains the host of the request.
        { ...get(`/ws/meta/schema/${model}`), headers: { host: 'localhost' } },
        ...[`/ws/changes?model=${model}`, `/ws/changes?since=3&limit=2&model=${model}`].map(get),
      ]
    }),
    ...['/ws/meta/models', '/ws/changes?since=999999', '/ws/rest/rel.Nothing', '/ws/changes?model=x'].map(
      get,
    ),
  ]
}
