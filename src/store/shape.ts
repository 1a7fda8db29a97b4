// What the tables look like, as data: the plan is the difference between what is there and what the models declare.
import { FIELD_TYPES, type Field, type Storage } from '../model/field.js'
import type { Model } from '../model/model.js'
import { indexName } from './table.js'

export interface Shape {
  readonly columns: Readonly<Record<string, ColumnShape>>
  /** By the name of the index. */
  readonly indexes: Readonly<Record<string, IndexShape>>
}

export interface ColumnShape {
  readonly storage: Storage
  readonly scale: number
  /** A password: what is stored is its hash. */
  readonly hashed: boolean
}

export interface IndexShape {
  readonly unique: boolean
  readonly fields: readonly string[]
}

export function shapeOf(model: Model): Shape {
  const columns: Record<string, ColumnShape> = {}
  for (const field of model.fields.values()) {
    const column = columnShapeOf(field)
    if (column.storage !== 'none') columns[field.name] = column
  }
  const indexes: Record<string, IndexShape> = {}
  for (const fields of model.unique) indexes[indexName(model.name, true, fields)] = { unique: true, fields }
  for (const fields of model.indexes)
    indexes[indexName(model.name, false, fields)] = { unique: false, fields }
  return { columns, indexes }
}

/** The same text for the same shape, whatever the order of its parts. */
export function printShape({ columns, indexes }: Shape): string {
  const sorted = <T>(parts: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(parts).sort(([a], [b]) => (a < b ? -1 : 1)))
  return JSON.stringify({ columns: sorted(columns), indexes: sorted(indexes) })
}

export function columnShapeOf(field: Field): ColumnShape {
  const { storage } = FIELD_TYPES[field.type]
  return { storage, scale: field.scale, hashed: field.secret === 'password' }
}

/** Whether the values of a column can stay as they are under its new declaration. */
export function keepsValues(before: ColumnShape, after: ColumnShape): boolean {
  return before.storage === after.storage && before.hashed === after.hashed && after.scale >= before.scale
}
