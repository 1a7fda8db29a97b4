// Every read, for one role and one model: the answer, and that of the reference.
import { VersoError } from '../../src/errors.js'
import type { Page, Records } from '../../src/wire.js'
import type { Row } from '../properties/search-oracle.js'
import { filterOf, jsonOf } from '../properties/search-forms.js'
import type { Ask } from '../properties/search-questions.js'
import { LIST, SHAPES, VIEWS } from './project-records.js'
import { endsAtList, pathsFrom, shapeAt, termAt, type Path } from './paths.js'
import type { Reference, Shown } from './reference.js'

/** One comparison, with both sides as plain values. */
export interface CellOf {
  readonly what: string
  readonly actual: () => Promise<unknown>
  readonly expected: () => unknown
}

const STYLE = { isUpperCase: false, hasSelf: false, isDoubleQuoted: false, parameters: [false] }
const MOST_FIELDS = 12

/** The kind of an error, or the answer. */
export async function outcome<T>(call: Promise<T>): Promise<T | string> {
  try {
    return await call
  } catch (error) {
    if (error instanceof VersoError) return error.kind
    throw error
  }
}

/** The error for an unknown model or a missing read permission, which is checked first. */
export function readError(reference: Reference, model: string): string | undefined {
  if (!reference.isKnown(model)) return 'unknown-model'
  return reference.grantsOn(model, 'r').length === 0 ? 'forbidden' : undefined
}

export function rowsOf({ dataset }: Reference, model: string): readonly Row[] {
  return dataset[model] ?? []
}

export function namesOf(model: string): readonly string[] {
  const names = Object.keys(SHAPES[model]?.fields ?? {})
  return names.filter((name) => !VIEWS.includes(`${model}.${name}`))
}

const pageOf = ({ total, data }: Page) => ({ total, data })
const idsOf = ({ total, data }: Page) => ({ total, ids: data.map(({ id }) => id) })

export function readingCells(
  records: Records,
  reference: Reference,
  model: string,
  stride: number,
): CellOf[] {
  return [
    ...lists(records, reference, model),
    ...reads(records, reference, model),
    ...fields(records, reference, model, stride),
    ...questions(records, reference, model, stride),
    ...orders(records, reference, model, stride),
  ]
}

function lists(records: Records, reference: Reference, model: string): CellOf[] {
  const expected = (archived: boolean, limit = Infinity) => {
    const error = readError(reference, model)
    if (error !== undefined) return error
    const seen = rowsOf(reference, model).filter((row) => reference.sees(model, row))
    const visible = seen.filter((row) => archived || !isArchived(reference, model, row))
    const shown = visible.map((row) => reference.show(model, row, LIST[model] ?? []))
    return { total: visible.length, data: shown.slice(0, limit) }
  }
  const cell = (what: string, call: () => Promise<Page>, archived = false, limit = Infinity): CellOf => ({
    what,
    actual: async () => outcome(call().then(pageOf)),
    expected: () => expected(archived, limit),
  })
  return [
    cell('find', () => records.find(model)),
    cell('find, archived', () => records.find(model, { archived: true }), true),
    cell('find, limit 0', () => records.find(model, { limit: 0 }), false, 0),
    cell('search', () => records.search(model, {})),
    cell('search, one', () => records.search(model, { limit: 1, data: { _archived: true } }), true, 1),
  ]
}

/** Archived records are omitted by the visible value: a hidden one counts as null. */
function isArchived(reference: Reference, model: string, row: Row): boolean {
  return row['archived'] === true && reference.sees(model, row)
}

function reads(records: Records, reference: Reference, model: string): CellOf[] {
  const ids = [...rowsOf(reference, model).map(({ id }) => id), 999]
  const shownOr = (id: number, show: (row: Row) => unknown) => {
    if (!reference.isKnown(model)) return 'unknown-model'
    const row = rowsOf(reference, model).find((each) => each.id === id)
    return row && reference.sees(model, row) ? show(row) : 'not-found'
  }
  const names = namesOf(model)
  const known = Object.keys(SHAPES[model]?.fields ?? {}).filter((name) => reference.names(model, name))
  return ids.flatMap((id) => [
    {
      what: `read ${id}`,
      actual: async () => outcome(records.read(model, id)),
      expected: () => shownOr(id, (row) => reference.show(model, row, names)),
    },
    {
      what: `fetch ${id} with ${known.join()}`,
      actual: async () => outcome(records.fetch(model, id, { fields: known })),
      expected: () => shownOr(id, (row) => reference.show(model, row, known)),
    },
    ...relatedCells(records, reference, model, id, shownOr),
    {
      what: `copy ${id}`,
      actual: async () => outcome(records.copy(model, id)),
      expected: () => shownOr(id, (row) => copyOf(reference, model, row)),
    },
    {
      what: `verify ${id}`,
      actual: async () => {
        const version = rowsOf(reference, model).find((row) => row.id === id)?.['version'] ?? 0
        return outcome(records.verify(model, { id, version }).then(() => 'ok'))
      },
      expected: () => shownOr(id, () => 'ok'),
    },
    {
      what: `verify ${id} at another version`,
      actual: async () => outcome(records.verify(model, { id, version: 77 }).then(() => 'ok')),
      expected: () => shownOr(id, () => 'conflict'),
    },
  ])
}

/** Fetches of related records, in the form that can be sent back. */
function relatedCells(
  records: Records,
  reference: Reference,
  model: string,
  id: number,
  shownOr: (id: number, show: (row: Row) => unknown) => unknown,
): CellOf[] {
  return Object.entries(SHAPES[model]?.fields ?? {}).flatMap(([name, shape]) => {
    if (typeof shape !== 'object' || !reference.names(model, name)) return []
    const inner = Object.keys(SHAPES[shape.target]?.fields ?? {}).filter(
      (each) => reference.names(shape.target, each) && !isList(shape.target, each),
    )
    const expected = (row: Row): Shown => {
      const plain = reference.show(model, row, [name])
      if (!reference.shows(model, row, name) || !(name in plain) || plain[name] === null) return plain
      const near = reference.near(shape.target, row[name], shape.through)
      const shown = near.map((each) => reference.show(shape.target, each, inner))
      return { ...plain, [name]: shape.kind === 'many' ? shown : shown[0] }
    }
    return [
      {
        what: `fetch ${id} with ${name} related`,
        actual: async () => outcome(records.fetch(model, id, { fields: [], related: { [name]: inner } })),
        // A fetch shows `archived` if it is true.
        expected: () =>
          shownOr(id, (row) => ({
            ...expected(row),
            ...(row['archived'] === true && reference.shows(model, row, 'archived')
              ? { archived: true }
              : {}),
          })),
      },
    ]
  })
}

function isList(model: string, name: string): boolean {
  const shape = SHAPES[model]?.fields[name]
  return typeof shape === 'object' && shape.kind === 'many'
}

/** The data to create a copy, with the members of owned lists. */
function copyOf(reference: Reference, model: string, row: Row): Shown {
  const names = namesOf(model).filter((name) => !LEFT_BEHIND.includes(name))
  const shown = reference.show(model, row, names)
  if (model === 'lab.Badge' && 'holder' in shown) shown['holder'] = null
  const tasks = reference.near('lab.Task', row['tasks'], 'project')
  if (model === 'lab.Project' && 'tasks' in shown)
    shown['tasks'] = tasks.map((task) => omit(copyOf(reference, 'lab.Task', task), ['project']))
  return omit(shown, ['id', 'version'])
}

function omit(shown: Shown, names: readonly string[]): Shown {
  return Object.fromEntries(Object.entries(shown).filter(([name]) => !names.includes(name)))
}

const LEFT_BEHIND = ['createdOn', 'createdBy', 'updatedOn', 'updatedBy', 'archived']

/** Every path in `fields`: visible ones in a few requests, each hidden one in its own. */
function fields(records: Records, reference: Reference, model: string, stride: number): CellOf[] {
  const paths = pathsFrom(model, 4, false)
  const [named, unnamed] = [paths, paths].map((all, index) =>
    all.filter((path) => reference.namesPath(model, path) === (index === 0)),
  )
  const cell = (batch: readonly Path[]): CellOf => ({
    what: `fields ${batch.map((path) => path.join('.')).join()}`,
    actual: async () => {
      const asked = batch.map((path) => path.join('.'))
      return outcome(
        records.search(model, { fields: asked, data: { _archived: true } }).then(({ data }) => data),
      )
    },
    expected: () => {
      const error = readError(reference, model)
      if (error !== undefined) return error
      if (batch.some((path) => !reference.namesPath(model, path))) return 'bad-request'
      const seen = rowsOf(reference, model).filter((row) => reference.sees(model, row))
      return seen.map((row) => withPaths(reference, model, row, batch))
    },
  })
  const batches = chunks(named ?? [], MOST_FIELDS)
  const sampled = (unnamed ?? []).filter((path, index) => path.length <= 2 || index % stride === 0)
  return [...batches.map(cell), ...sampled.map((path) => cell([path]))]
}

function withPaths(reference: Reference, model: string, row: Row, paths: readonly Path[]): Shown {
  const own = paths.flatMap((path) => (path.length === 1 ? path : []))
  const dotted = paths.filter((path) => path.length > 1)
  const entries = dotted.map((path) => [path.join('.'), reference.along(model, row, path)] as const)
  return { ...reference.show(model, row, own), ...Object.fromEntries(entries) }
}

/** A question about the end of every path, as filter or criteria. */
function questions(records: Records, reference: Reference, model: string, stride: number): CellOf[] {
  const paths = pathsFrom(model, 4, true)
  return paths.flatMap((path, index): CellOf[] => {
    if (path.length > 2 && (index + path.length) % stride !== 0) return []
    const term = termAt(reference.dataset, model, path, index + stride)
    const question = index % 4 === 3 ? ({ join: 'not', parts: [term] } as const) : term
    const ask: Ask = {
      ...{ model, question, sortBy: [], archived: true, pageSize: 40, style: STYLE },
      ...{ transport: 'direct', turn: 0 },
    }
    const isText = index % 2 === 0
    const call = () =>
      isText
        ? records.find(model, { filter: filterOf(ask), archived: true, fields: [] })
        : records.search(model, { data: jsonOf(ask, false), fields: [] })
    return [
      {
        what: `filter ${filterOf(ask)}`,
        actual: async () => outcome(call().then(idsOf)),
        expected: () => {
          const error = readError(reference, model)
          if (error !== undefined) return error
          if (!reference.namesPath(model, path)) return 'bad-request'
          const ids = reference.find(model, question, [], true)
          return { total: ids.length, ids }
        },
      },
    ]
  })
}

function orders(records: Records, reference: Reference, model: string, stride: number): CellOf[] {
  const paths = pathsFrom(model, 4, false).filter((path) => !endsAtList(model, path))
  const everything = { path: 'id', operator: 'notNull' }
  return paths.flatMap((path, index): CellOf[] => {
    if (path.length > 2 && (index + path.length) % stride !== 0) return []
    const key = `${index % 2 === 0 ? '' : '-'}${path.join('.')}`
    return [
      {
        what: `sort ${key}`,
        actual: async () =>
          outcome(
            records.search(model, { sortBy: [key], fields: [], data: { _archived: true } }).then(idsOf),
          ),
        expected: () => {
          const error = readError(reference, model)
          if (error !== undefined) return error
          // A reference sorts by the name of its related record.
          const end = shapeAt(model, path)
          const full = typeof end === 'object' ? [...path, SHAPES[end.target]?.name ?? ''] : path
          if (!reference.namesPath(model, full)) return 'bad-request'
          const ids = reference.find(model, everything, [key], true)
          return { total: ids.length, ids }
        },
      },
    ]
  })
}

export function chunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) =>
    all.slice(index * size, (index + 1) * size),
  )
}
