// Requests that try to learn hidden values, by every way to ask about records.
import { FOREIGN_IDS, ITEM, MOMENTS, OPENED_IDS, PART, PLACE } from './hidden-values-fixture.js'

export interface Probe {
  /** The method that may reveal something. */
  readonly by: string
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** True for writes, which run one after the other: they may assign an id. */
  readonly writes?: boolean
  /** True for requests about the past, answered by the permissions and related records of today. */
  readonly isPast?: boolean
}

const [FIRST = 0] = FOREIGN_IDS
const REST = `/ws/rest/${ITEM}`
/** The current version of foreign rows. */
export const CURRENT = 2

/** For each hidden field, values to bisect it; `spot.` and `parts.` lead to hidden related records. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  note: ['amber 1', 'amber 1!', 'm', 'zinc 8'],
  amount: [11, 30, 55, 89],
  day: ['2001-01-01', '2015-05-05', '2020-01-01', '2031-01-08'],
  done: [true, false],
  place: [1, 2, 'Attic', 'Barn'],
  tags: [1, 2, 'red', 'blue'],
  spot: [3, 4, 'Cave', 'Tomb'],
  parts: [2, 'bolt', 'nut'],
  'place.name': ['Attic', 'B'],
  'place.size': [1],
  'tags.name': ['red', 'green'],
  'spot.name': ['Cave', 'Mine', 'P'],
  'spot.size': [3, 5, 8],
  'spot.isOpen': [false],
  'spot.id': [3, 4],
  'parts.name': ['bolt', 'nut', 'c'],
  'parts.weight': [20, 25, 30],
  'parts.item.note': ['m'],
  'parts.item.amount': [30],
  'parts.item.place.name': ['Attic'],
  'parts.item.spot.name': ['P'],
}
const ORDER = ['=', '!=', '<', '>', '<=', '>=']
const TWO = ['between', 'notBetween']
const LISTS = ['in', 'notIn']
const NONE = ['isNull', 'notNull', 'isEmpty', 'notEmpty']
const PATTERNS = ['like', 'notLike']
const TEXTS: Readonly<Record<string, string>> = {
  ...{ isNull: 'is null', notNull: 'is not null', isEmpty: 'is empty', notEmpty: 'is not empty' },
  ...{ notIn: 'not in', notLike: 'not like', notBetween: 'not between' },
}

interface Term {
  readonly fieldName: string
  readonly operator: string
  readonly value?: unknown
  readonly value2?: unknown
}

const TERMS: readonly Term[] = Object.entries(VALUES).flatMap(([fieldName, values]) => [
  ...NONE.map((operator) => ({ fieldName, operator })),
  ...values.flatMap((value, index) => [
    // Combines every operator with one of the values, and some with each.
    ...[...ORDER, ...PATTERNS]
      .filter((_, turn) => index === 0 || turn % 4 === index % 4)
      .map((operator) => ({ fieldName, operator, value })),
    ...(index === 0 ? LISTS.map((operator) => ({ fieldName, operator, value: [value] })) : []),
    ...(index === 1 ? TWO.map((operator) => ({ fieldName, operator, value: values[0], value2: value })) : []),
  ]),
])

function textOf({ fieldName, operator, value, value2 }: Term): string {
  const literal = (each: unknown): string =>
    Array.isArray(each)
      ? `(${each.map(literal).join(', ')})`
      : typeof each === 'string'
        ? `'${each}'`
        : String(each)
  const start = `${fieldName} ${TEXTS[operator] ?? operator}`
  if (NONE.includes(operator)) return start
  return TWO.includes(operator)
    ? `${start} ${literal(value)} and ${literal(value2)}`
    : `${start} ${literal(value)}`
}

const query = (values: Readonly<Record<string, string>>) => new URLSearchParams(values).toString()
const get = (by: string, path: string): Probe => ({ by, method: 'GET', path })
/** API documents contain the host of the request, and their ETags depend on it. */
const document = (path: string): Probe => ({ ...get('document', path), headers: { host: 'localhost' } })
const post = (by: string, path: string, body: unknown, headers?: Record<string, string>): Probe => ({
  ...{ by, method: 'POST', path, body },
  ...(headers ? { headers } : {}),
})
const write = (probe: Probe): Probe => ({ ...probe, writes: true })

function searches(): Probe[] {
  return TERMS.flatMap((term, index) => {
    const domain = textOf(term)
    return [
      get('filter', `${REST}?${query({ filter: index % 3 === 0 ? `not ${domain}` : domain })}`),
      post('criteria', `${REST}/search`, { data: { criteria: [term] }, fields: ['name'] }),
      ...(index % 3 === 0 ? [get('total', `${REST}?${query({ filter: domain, limit: '0' })}`)] : []),
      ...(index % 3 === 1
        ? [post('_domain', `${REST}/search`, { data: { _domain: `self.${domain}` } })]
        : []),
      ...(index % 3 === 2
        ? [post('export', `${REST}/export`, { fields: ['name'], data: { _domain: domain } })]
        : []),
      ...(index % 4 === 0
        ? [post('_domains', `${REST}/search`, { data: { operator: 'or', _domains: [{ domain }] } })]
        : []),
      ...(index % 4 === 1
        ? [get('Link', `${REST}?${query({ filter: domain, limit: '1', fields: 'name' })}`)]
        : []),
      ...(index % 5 === 0 ? massUpdates(domain) : []),
      ...(index % 4 === 2
        ? [get('neighbours', `/ws/rest/${PART}?${query({ filter: `item.${domain}` })}`)]
        : []),
    ]
  })
}

function massUpdates(domain: string): Probe[] {
  const path = `${REST}/updateMass`
  return [
    write(post('updateMass', path, { data: { _domain: domain }, records: [{ shared: 'mass' }] })),
    write(post('expected', path, { data: { _domain: domain }, records: [{ shared: 'mass' }], expected: 2 })),
  ]
}

function words(): Probe[] {
  const all = ['amber', 'zinc', 'Cave', 'Tomb', 'Attic', 'red', 'bolt', '55', '2015', 'item', 'left']
  return all.map((q) => get('q', `${REST}?${query({ q })}`))
}

function orders(): Probe[] {
  const keys = Object.keys(VALUES).filter((name) => !/^(tags|parts)/.test(name))
  return keys.flatMap((key) => [
    get('sort', `${REST}?${query({ sortBy: key, fields: 'name' })}`),
    get('sort', `${REST}?${query({ sortBy: `-${key}`, fields: 'name', limit: '3' })}`),
    post('sort', `${REST}/search`, { sortBy: ['shared', `-${key}`], fields: ['name'] }),
    get('sort', `/ws/rest/${PART}?${query({ sortBy: `-item.${key}` })}`),
  ])
}

function shown(): Probe[] {
  const paths = [
    ...Object.keys(VALUES),
    'paper',
    'tags.id',
    'place.id',
    'parts.item',
    'updatedBy',
    'parts.id',
  ]
  const ids = [...FOREIGN_IDS, 5, 6, 7, 99]
  return [
    ...paths.flatMap((path) => [
      get('fields', `${REST}?${query({ fields: path })}`),
      get('fields', `/ws/rest/${PART}?${query({ fields: `item.${path}` })}`),
      post('fetch', `${REST}/${FIRST}/fetch`, { fields: [path] }),
      post('export', `${REST}/export`, { fields: ['name', path] }),
      get('details', `${REST}/${FIRST}/details?name=${path}`),
      get('download', `${REST}/${FIRST}/${path}/download`),
    ]),
    ...ids.flatMap((id) => [
      get('read', `${REST}/${id}`),
      get('copy', `${REST}/${id}/copy`),
      post('fetch', `${REST}/${id}/fetch`, {
        ...{ fields: ['name', 'parts.name'], related: { parts: ['name', 'item'], spot: ['name'] } },
      }),
      post('fetch', `${REST}/${id}/fetch`, { fields: [], related: { place: ['name'], tags: ['name'] } }),
      { ...get('ETag', `${REST}/${id}`), headers: { 'if-none-match': `"${CURRENT}"` } },
      { ...get('ETag', `${REST}/${id}/paper/download`), method: 'HEAD' },
    ]),
    ...[1, 2, 3, 4, 5].flatMap((id) => [
      post('order of a list', `/ws/rest/${PLACE}/${id}/fetch`, { fields: ['name', 'items', 'items.shared'] }),
      post('order of a list', `/ws/rest/${PLACE}/${id}/fetch`, { related: { items: ['name'] } }),
      get('order of a list', `/ws/rest/${PLACE}?${query({ fields: 'items', filter: `id = ${id}` })}`),
      get('read', `/ws/rest/${PLACE}/${id}`),
      get('read', `/ws/rest/${PART}/${id}`),
    ]),
    ...[ITEM, PLACE, PART, 'vault.Tag', 'vault.Nothing'].map((model) => get('find', `/ws/rest/${model}`)),
    ...[ITEM, PART, PLACE].map((model) => get('meta', `/ws/meta/fields/${model}`)),
    get('meta', '/ws/meta/models'),
    ...['', '?model=', `?model=${ITEM}`, `?model=${PART},${PLACE}`, '?model=vault.Nothing'].map((part) =>
      document(`/ws/openapi.json${part}`),
    ),
    ...[ITEM, PART, PLACE, 'vault.Tag', 'vault.Nothing'].map((model) => document(`/ws/meta/schema/${model}`)),
    ...['note', 'notes', 'amout', 'plase', 'tag', 'papers'].map((name) =>
      get('did you mean', `${REST}?${query({ fields: name, sortBy: name })}`),
    ),
  ]
}

/** The values to send for a field: those of both databases, and others. */
const SENT: Readonly<Record<string, readonly unknown[]>> = {
  note: ['amber 1!', 'zinc 8', 'amber 1', 'other', null],
  amount: [11, 55, 89, 0, null],
  day: ['2015-05-05', '2031-01-08', '2000-01-01'],
  done: [true, false, null],
  place: [{ id: 1 }, { id: 2 }, null, { id: 3 }, { id: 99 }],
  tags: [[{ id: 1 }], [{ id: 2 }, { id: 3 }], []],
  paper: [null],
  spot: [
    ...[{ id: 3 }, { id: 4 }, { id: 3, $version: 0 }, { id: 4, $version: 0, name: 'Cave' }, { id: 99 }, null],
    ...[
      { id: 3, version: 0, name: 'Cave' },
      { id: 4, version: 0, name: 'x' },
      { id: 3, $version: 7 },
    ],
    { id: 3, name: 'Mine' },
  ],
  parts: [
    ...[[], [{ id: 1 }], [{ id: 2 }], [{ id: 1 }, { id: 2 }], [{ id: 2, $version: 0, name: 'bolt' }]],
    ...[
      [{ id: 2, version: 0, name: 'bolt' }],
      [{ id: 1, version: 0, weight: 20 }],
      [{ name: 'new', weight: 2 }],
    ],
    [{ id: 4 }],
  ],
  name: ['x', 'item 0'],
}

function writes(): Probe[] {
  const update = (by: string, version: number, cells: object, headers?: Record<string, string>) =>
    post(by, `${REST}/${FIRST}`, { data: { id: FIRST, version, ...cells } }, headers)
  const probes = Object.entries(SENT).flatMap(([name, values]) =>
    values.flatMap((value) => {
      const cells = { [name]: value }
      return [
        update('update', CURRENT, cells),
        update('conflict', 1, cells),
        update('conflict', 0, cells),
        update('conflict', 0, { ...cells, shared: 'mine' }),
        update('conflict', 9, cells),
        post('stale match', `${REST}/${FIRST}`, { data: cells }, { 'if-match': '"1"' }),
        post('save', REST, { records: [{ id: FIRST, version: CURRENT, ...cells }] }),
        post('verify', `${REST}/verify`, { data: { id: FIRST, version: CURRENT, ...cells } }),
        post('verify', `${REST}/verify`, { data: { id: FIRST, version: 1, ...cells } }),
        { by: 'create', method: 'PUT', path: REST, body: { data: { name: 'new', ...cells } } },
        post('updateMass', `${REST}/updateMass`, { data: { _domain: 'id > 0' }, records: [cells] }),
        post('nested', `/ws/rest/${PART}/1`, {
          data: { version: 0, item: { id: FIRST, version: CURRENT, ...cells } },
        }),
        post('nested', `/ws/rest/${PART}/1`, {
          data: { version: 0, item: { id: FIRST, $version: 1, ...cells } },
        }),
      ]
    }),
  )
  const removals = [CURRENT, 1, 0].flatMap((version): Probe[] => [
    { by: 'remove', method: 'DELETE', path: `${REST}/${FIRST}?version=${version}` },
    { by: 'remove', method: 'DELETE', path: `${REST}/${FIRST}/paper/download?version=${version}` },
    post('remove', `${REST}/removeAll`, { records: [{ id: FIRST, version }] }),
  ])
  const pasts = OPENED_IDS.flatMap((id) =>
    [
      {},
      { note: 'public' },
      { note: 'x' },
      { amount: 7 },
      { amount: 9 },
      { done: false },
      { tags: [{ id: 2 }] },
      { name: 'x' },
    ].flatMap((cells): Probe[] => [
      post('past', `${REST}/${id}`, { data: { id, version: 0, ...cells } }),
      post('past', `${REST}/${id}`, { data: cells }, { 'if-match': '"0"' }),
      post('past', REST, { records: [{ id, version: 0, ...cells }] }),
      post('past', `${REST}/verify`, { data: { id, version: 0, ...cells } }),
      { by: 'past', method: 'DELETE', path: `${REST}/${id}?version=0` },
    ]),
  )
  const parts = [1, 2].map((id): Probe => ({
    by: 'remove',
    method: 'DELETE',
    path: `/ws/rest/${PART}/${id}`,
  }))
  return [...probes, ...pasts, ...removals, ...parts].map(write)
}

/** Requests about the past: of records, of lists, and of the feed. */
function pasts(): Probe[] {
  const ids = [...FOREIGN_IDS, 5, ...OPENED_IDS, 10, 99]
  const versions = [0, 1, 2, 3]
  const records = ids.flatMap((id) => [
    get('history', `${REST}/${id}/history`),
    get('history', `${REST}/${id}/history?${query({ limit: '1', offset: '1' })}`),
    ...versions.map((version) => get('version', `${REST}/${id}/history/${version}`)),
    ...MOMENTS.map((asOf) => get('asOf', `${REST}/${id}?${query({ asOf })}`)),
    ...[1, 2, 3].flatMap((version) =>
      [0, 1].map((to) => write(post('revert', `${REST}/${id}/revert`, { data: { version, to } }))),
    ),
  ])
  const parts = [1, 2, 3].flatMap((id) => [
    get('history', `/ws/rest/${PART}/${id}/history`),
    get('history', `/ws/rest/${PLACE}/${id}/history`),
    get('version', `/ws/rest/${PART}/${id}/history/0`),
  ])
  const deletes = [{}, { limit: '1' }, { q: 'a' }, { before: '40' }].flatMap((parameters) =>
    [REST, `/ws/rest/${PART}`, `/ws/rest/${PLACE}`].map((path) =>
      get('deleted', `${path}/deleted?${query(parameters)}`),
    ),
  )
  const lists = MOMENTS.flatMap((asOf, index) => [
    get('asOf', `${REST}?${query({ asOf })}`),
    get('asOf', `${REST}?${query({ asOf, fields: 'name,spot,parts,tags,note' })}`),
    get('asOf', `${REST}?${query({ asOf, fields: 'name,spot,parts,shared' })}`),
    get('asOf', `/ws/rest/${PART}?${query({ asOf, fields: 'name,item' })}`),
    get('asOf', `/ws/rest/${PLACE}?${query({ asOf })}`),
    ...Object.entries(VALUES)
      .filter((_, turn) => turn % 4 === index % 4)
      .flatMap(([name, [value]]) => {
        const filter = textOf({ fieldName: name, operator: '=', value })
        return [
          get('asOf', `${REST}?${query({ asOf, filter, fields: 'name' })}`),
          get('asOf', `${REST}?${query({ asOf, sortBy: `-${name}`, fields: 'name' })}`),
        ]
      }),
  ])
  const feeds = ['', `&model=${ITEM}`, `&model=${PART}`, `&model=${PLACE}`].flatMap((model) => [
    get('feed', `/ws/changes?since=0&limit=1000${model}`),
    get('feed', `/ws/changes?since=40&limit=10${model}`),
  ])
  return [...records, ...parts, ...deletes, ...lists, ...feeds].map((probe) => ({ ...probe, isPast: true }))
}

export const PROBES: readonly Probe[] = [
  ...[...searches(), ...words(), ...orders(), ...shown()],
  ...[...writes(), ...pasts()],
]

/** Requests of compat clients only: conditions as fields, names of related records, bare ids, texts for numbers. */
export const COMPAT_PROBES: readonly Probe[] = [
  ...Object.entries(VALUES).flatMap(([name, values]) =>
    values.map((value) =>
      post('by example', `${REST}/search`, { data: { [name]: value }, fields: ['name', 'nothing'] }),
    ),
  ),
  ...Object.keys(VALUES).map((name) =>
    post('unknown names', `${REST}/search`, {
      fields: ['name', name, 'nothing'],
      sortBy: ['-id'],
      limit: null,
    }),
  ),
  ...TERMS.filter((_, index) => index % 6 === 0).map((term) =>
    post('joined by or', `${REST}/search`, { data: { criteria: [term, { operator: 'and', criteria: [] }] } }),
  ),
  ...[
    1,
    3,
    4,
    '11',
    'true',
    { id: 3, name: 'Cave' },
    { id: 4, name: 'Cave' },
    { id: 0, name: 'new' },
    [1, 2],
  ].flatMap((value) =>
    ['place', 'spot', 'tags', 'amount', 'done', 'parts'].flatMap((name) => [
      write(post('loosely', REST, { data: { id: FIRST, version: CURRENT, [name]: value } })),
      write(post('loosely', REST, { data: { id: FIRST, version: 0, [name]: value } })),
      write({
        by: 'loosely',
        method: 'PUT',
        path: REST,
        body: { data: { id: FIRST, version: CURRENT, [name]: value } },
      }),
    ]),
  ),
]
