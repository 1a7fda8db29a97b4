// A model as one engine keeps it: names, columns, and the SQL that is the same every time, made once.
import { createHash } from 'node:crypto'
import { FIELD_TYPES, type Field } from '../model/field.js'
import { isShown, type Model } from '../model/model.js'
import type { Value } from '../model/value.js'
import type { Column, Dialect, SqlValue } from './database.js'

const MAX_IDENTIFIER = 63

export interface Table {
  readonly model: Model
  readonly dialect: Dialect
  /** Quoted, ready for SQL. */
  readonly name: string
  /** Every field that has a column. */
  readonly stored: readonly Field[]
  readonly full: Selection
  readonly list: Selection
}

/** What a select shows of a record. */
export interface Selection {
  readonly fields: readonly Field[]
  readonly columns: string
  readonly joins: string
}

const tables = new WeakMap<Dialect, WeakMap<Model, Table>>()

export function tableOf(dialect: Dialect, model: Model): Table {
  const known = tables.get(dialect) ?? new WeakMap<Model, Table>()
  tables.set(dialect, known)
  const table = known.get(model) ?? makeTable(dialect, model)
  known.set(model, table)
  return table
}

function makeTable(dialect: Dialect, model: Model): Table {
  const stored = [...model.fields.values()].filter((field) => FIELD_TYPES[field.type].storage !== 'none')
  return {
    model,
    dialect,
    name: quote(tableName(model.name)),
    stored,
    full: select(stored.filter(isShown)),
    list: select(model.listFields.flatMap((name) => model.fields.get(name) ?? [])),
  }
}

function select(fields: readonly Field[]): Selection {
  const columns = ['t."id" as "id"', 't."version" as "version"']
  const joins: string[] = []
  for (const { name, target } of fields) {
    columns.push(`t.${quote(name)} as ${quote(name)}`)
    if (!target) continue
    const joined = quote(`${name}$`)
    joins.push(
      `left join ${quote(tableName(target.model))} as ${joined} on ${joined}."id" = t.${quote(name)}`,
    )
    columns.push(`${joined}."version" as ${quote(`${name}$version`)}`)
    columns.push(`${joined}.${quote(target.nameField)} as ${quote(`${name}$name`)}`)
  }
  return { fields, columns: columns.join(', '), joins: joins.join(' ') }
}

/** Identifiers come from the catalog, where only letters, digits, `_` and `.` pass; quoting is the second lock. */
export function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

export function tableName(model: string): string {
  return model.length <= MAX_IDENTIFIER ? model : `${model.slice(0, MAX_IDENTIFIER - 13)}_${digest(model)}`
}

export function indexName(model: string, isUnique: boolean, fields: readonly string[]): string {
  return `${isUnique ? 'unique' : 'index'}_${digest([model, ...fields].join('\n'))}`
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}

export function columnOf(dialect: Dialect, field: Field): Column {
  const { storage } = FIELD_TYPES[field.type]
  if (storage === 'none') throw new Error(`${field.name} has no column`)
  return dialect.columns[storage]
}

export function encode(dialect: Dialect, field: Field, value: Value): SqlValue {
  return columnOf(dialect, field).encode(value)
}
