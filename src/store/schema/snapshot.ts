// What the tables look like, as data: the plan is the difference between what is there and what the models declare.
import { storageOf, type Field, type Storage } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import { describeCounted, plainIndexes } from '../counters/counted-fields.js'
import { indexName } from '../engine/names.js'
import type { Referrer } from '../records/references.js'

export interface Shape {
  readonly columns: Readonly<Record<string, ColumnShape>>
  /** By the name of the index. */
  readonly indexes: Readonly<Record<string, IndexShape>>
  /** Many-to-many relations by field, with the model they lead to: each has a table of its own. */
  readonly links?: Readonly<Record<string, string>>
  /** What the counters count; undefined where there were none yet. */
  readonly counted?: readonly string[]
  /** What hangs on the model besides; nothing in the tables follows from it. */
  readonly neighbours?: readonly string[]
}

export interface ColumnShape {
  readonly storage: Storage
  readonly scale: number
  /** A password: what is stored is its hash. */
  readonly hashed: boolean
  /** The model that a reference leads to. */
  readonly target?: string
}

export interface IndexShape {
  readonly unique: boolean
  readonly fields: readonly string[]
}

const SHAPES = new WeakMap<Model, Shape>()

export function shapeOf(model: Model): Shape {
  const known = SHAPES.get(model)
  if (known) return known
  const shape = makeShape(model)
  SHAPES.set(model, shape)
  return shape
}

function makeShape(model: Model): Shape {
  const columns: Record<string, ColumnShape> = {}
  for (const field of model.fields.values()) {
    const column = columnShapeOf(field)
    if (column.storage !== 'none') columns[field.name] = column
  }
  const indexes: Record<string, IndexShape> = {}
  for (const fields of model.unique) indexes[indexName(model.name, true, fields)] = { unique: true, fields }
  // Each ends with the id, so that what it finds is in the order of a page.
  for (const fields of plainIndexes(model))
    indexes[indexName(model.name, false, [...fields, 'id'])] = { unique: false, fields }
  const links = [...model.fields.values()].flatMap(({ name, type, relation }) =>
    type === 'many-to-many' && relation?.mappedBy === undefined && relation ? [[name, relation.target]] : [],
  )
  return {
    ...{ columns, indexes, links: Object.fromEntries(links) as Record<string, string> },
    counted: describeCounted(model),
  }
}

/** The same text for the same shape, whatever the order of its parts. */
export function printShape({ columns, indexes, links = {}, counted, neighbours = [] }: Shape): string {
  const counting = counted ? `,"counted":${JSON.stringify(counted)}` : ''
  const linked = Object.keys(links).length > 0 ? `,"links":${printSorted(links)}` : ''
  const hanging = neighbours.length > 0 ? `,"neighbours":${JSON.stringify([...neighbours].sort())}` : ''
  return `{"columns":${printSorted(columns)},"indexes":${printSorted(indexes)}${counting}${linked}${hanging}}`
}

function printSorted(parts: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(parts).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(parts[name])}`).join(',')}}`
}

export function columnShapeOf(field: Field): ColumnShape {
  const target = field.relation && !field.kept ? { target: field.relation.target } : {}
  return { storage: storageOf(field), scale: field.scale, hashed: field.secret === 'password', ...target }
}

/** Whether the values of a column can stay as they are under its new declaration. */
export function keepsValues(before: ColumnShape, after: ColumnShape): boolean {
  const isSame = before.storage === after.storage && before.hashed === after.hashed
  return isSame && before.target === after.target && after.scale >= before.scale
}

/** The relations of stored models that are not declared now: their records are kept, and so is what they refer to. */
export function undeclaredReferrers(shapes: ReadonlyMap<string, Shape>): Referrer[] {
  return [...shapes].flatMap(([model, { columns, links = {} }]) => {
    const references = Object.entries(columns).flatMap(([field, { target }]) =>
      target === undefined ? [] : [{ model, field, target, isLink: false }],
    )
    const linked = Object.entries(links).map(([field, target]) => ({ model, field, target, isLink: true }))
    return [...references, ...linked]
  })
}
