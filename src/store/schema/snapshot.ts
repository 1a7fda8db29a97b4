// Snapshots describe tables as data. A schema plan is the difference between the stored snapshots and those of the declared models.
import type { Field, Storage } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import { describeCounters } from '../counters/counted-fields.js'
import { toIndexName } from '../engine/names.js'
import type { Referrer } from '../records/references.js'

export interface SchemaSnapshot {
  readonly columns: Readonly<Record<string, ColumnSnapshot>>
  /** By the name of the index. */
  readonly indexes: Readonly<Record<string, IndexSnapshot>>
  /** The target model of each many-to-many relation, by field. Each has its own link table. */
  readonly links?: Readonly<Record<string, string>>
  /** The description of the counters; undefined in databases that had none yet. */
  readonly counted?: readonly string[]
  /** The relations of other models that lead to this one (`Catalog.listDependents`). They do not affect its tables. */
  readonly neighbours?: readonly string[]
}

export interface ColumnSnapshot {
  readonly storage: Storage
  readonly scale: number
  /** True for a password, which is stored as a hash. */
  readonly hashed: boolean
  /** The target model of a reference. */
  readonly target?: string
}

export interface IndexSnapshot {
  readonly unique: boolean
  readonly fields: readonly string[]
}

export function buildSnapshot(model: Model): SchemaSnapshot {
  return {
    columns: buildColumnSnapshots(model),
    indexes: buildIndexSnapshots(model),
    links: buildLinkSnapshots(model),
    counted: describeCounters(model),
  }
}

export function buildColumnSnapshots(model: Model): Readonly<Record<string, ColumnSnapshot>> {
  const columns: Record<string, ColumnSnapshot> = {}
  for (const field of model.fields.values()) {
    const column = buildColumnSnapshot(field)
    if (column.storage !== 'none') columns[field.name] = column
  }
  return columns
}

export function buildIndexSnapshots({ name, unique, nonUniqueIndexes }: Model): SchemaSnapshot['indexes'] {
  const indexes: Record<string, IndexSnapshot> = {}
  for (const fields of unique) indexes[toIndexName(name, true, fields)] = { unique: true, fields }
  // Each index ends with the id, so that its rows have the order of a page.
  for (const fields of nonUniqueIndexes)
    indexes[toIndexName(name, false, [...fields, 'id'])] = { unique: false, fields }
  return indexes
}

export function buildLinkSnapshots({ fields }: Model): Readonly<Record<string, string>> {
  const links: Record<string, string> = {}
  for (const { name, type, relation } of fields.values())
    if (type === 'many-to-many' && relation?.mappedBy === undefined && relation) links[name] = relation.target
  return links
}

/** Converts a snapshot to JSON text. Equal snapshots have equal texts, whatever the order of their keys. */
export function toSnapshotJson({
  columns,
  indexes,
  links = {},
  counted,
  neighbours = [],
}: SchemaSnapshot): string {
  const countedJson = counted ? `,"counted":${JSON.stringify(counted)}` : ''
  const linksJson = Object.keys(links).length > 0 ? `,"links":${toSortedJson(links)}` : ''
  const neighboursJson =
    neighbours.length > 0 ? `,"neighbours":${JSON.stringify([...neighbours].sort())}` : ''
  return `{"columns":${toSortedJson(columns)},"indexes":${toSortedJson(indexes)}${countedJson}${linksJson}${neighboursJson}}`
}

function toSortedJson(parts: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(parts).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(parts[name])}`).join(',')}}`
}

export function buildColumnSnapshot(field: Field): ColumnSnapshot {
  const target = field.relation && !field.isSystem ? { target: field.relation.target } : {}
  return { storage: getStorage(field), scale: field.scale, hashed: field.secret === 'password', ...target }
}

/** Returns true if the stored values of a column remain valid under its new declaration. */
export function canKeepValues(before: ColumnSnapshot, after: ColumnSnapshot): boolean {
  const isSame = before.storage === after.storage && before.hashed === after.hashed
  return isSame && before.target === after.target && after.scale >= before.scale
}

/** Lists the relations of stored models that are not declared. Their records stay, so the records that they refer to cannot be deleted. */
export function listUndeclaredReferrers(snapshots: ReadonlyMap<string, SchemaSnapshot>): Referrer[] {
  return [...snapshots].flatMap(([model, { columns, links = {} }]) => {
    const references = Object.entries(columns).flatMap(([field, { target }]) =>
      target === undefined ? [] : [{ model, field, target, isLink: false }],
    )
    const linkReferrers = Object.entries(links).map(([field, target]) => ({
      model,
      field,
      target,
      isLink: true,
    }))
    return [...references, ...linkReferrers]
  })
}
