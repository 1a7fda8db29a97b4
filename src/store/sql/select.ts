// A Selection → the columns of a select, and rows → records. Neighbours come as JSON made by the database: one statement whatever
// is shown, of one moment, without a join for each relation.
import { Refusal } from '../../errors.js'
import { storageOf, type Field } from '../../model/values/field-types.js'
import { looksFurther, type Criteria, type Step } from '../../model/query/criteria.js'
import { isReference } from '../../model/definition/model.js'
import type { Entry, Neighbour, Selection } from '../../model/query/selection.js'
import type { Json, Value } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import { parseStored } from '../engine/database-condition.js'
import { Scope } from './criteria.js'
import type { Dialect, Row, SqlValue } from '../engine/database.js'
import { quote, tableName } from '../engine/names.js'
import { keysIn, orderOf } from './order.js'
import { pointRead, type PointRead } from './point-read.js'
import { printSelection, type Printed } from './json-text.js'
import { mostShown } from './relation.js'
import { mostBytes, weighSelection, type Weight } from './byte-size.js'

export interface Select extends PointRead {
  /** Of a table that is called `t`. */
  readonly columns: string
  /** Whether what is hidden in it is found out at neighbours. */
  readonly asksFurther: boolean
  read(row: Row): WireRecord
  /** The record as the text of its JSON, where the database can print it. */
  readonly printed: Printed | undefined
  /** The most bytes that the values of a record can take. */
  readonly mostBytes: number
  /** How many they take. */
  readonly weight: Weight
}

type Decode = (stored: SqlValue | Json) => Value

/** What stands in the place of a value that is not shown: its key is left out. */
const HIDDEN = Symbol('hidden')

interface Part {
  readonly key: string
  readonly sql: string
  readonly decode: (stored: SqlValue | Json) => Value | typeof HIDDEN
}

/** What is the same wherever a record or a neighbour stands in a statement. */
interface Place {
  readonly scope: Scope
  readonly depth: number
  /** In how many lists. */
  readonly lists: number
  /** Inside of JSON. */
  readonly isNested: boolean
}

export function compileSelection(dialect: Dialect, selection: Selection): Select {
  const scope = new Scope(dialect)
  const parts = selection.entries.map((entry) =>
    compileEntry(entry, { scope, depth: 1, lists: 0, isNested: false }),
  )
  const columns = parts.map((part, index) => `, ${part.sql} as "c${index}"`).join('')
  const { sql, params } = scope.render(columns)
  const own = `t."id" as "id", t."version" as "version"${sql}`
  let printed: { readonly whole: Printed | undefined } | undefined
  let weight: Weight | undefined
  return {
    columns: own,
    ...pointRead(own, quote(tableName(selection.model.name)), params),
    asksFurther: conditionsIn(selection).some(looksFurther),
    read: (row) => {
      const record: Record<string, Value> & { id: number; version: number } = {
        id: Number(row['id']),
        version: Number(row['version']),
      }
      parts.forEach(({ key, decode }, index) => {
        const value = decode(row[`c${index}`] ?? null)
        const isShown = value === true || !selection.entries[index]?.onlyIfTrue
        if (value !== HIDDEN && isShown) record[key] = value
      })
      return record
    },
    // Many are never printed.
    get printed() {
      printed ??= { whole: printSelection(dialect, selection) }
      return printed.whole
    },
    mostBytes: mostBytes(selection),
    get weight() {
      return (weight ??= weighSelection(dialect, selection))
    },
  }
}

/** Those that decide what of it is shown. */
function conditionsIn({ entries }: Selection): Criteria[] {
  return entries.flatMap(({ steps, mask, neighbour }) => {
    const order = neighbour?.order ?? []
    const taken = [...steps, ...(neighbour ? [neighbour.step] : []), ...order.flatMap((key) => key.steps)]
    const masks = [mask, ...order.map((key) => key.mask)]
    const own = [...masks, ...taken.flatMap((step) => [step.mask, step.seen])]
    return [...own.filter((each) => each !== undefined), ...(neighbour ? conditionsIn(neighbour.shown) : [])]
  })
}

function compileEntry({ key, steps, field, neighbour, mask }: Entry, place: Place): Part {
  const { scope, isNested } = place
  const [step, ...rest] = steps
  if (step) {
    const { inner, from, where } = stepInto(step, place)
    const part = compileEntry(
      { key, steps: rest, field, ...(neighbour ? { neighbour } : {}), ...(mask ? { mask } : {}) },
      inner,
    )
    // At the end of a path what is hidden is as if the path led nowhere.
    const decode: Decode = (stored) => {
      const value = stored === null ? null : part.decode(stored)
      return value === HIDDEN ? null : value
    }
    return { key, sql: `(select ${part.sql} from ${from} where ${where})`, decode }
  }
  if (neighbour) return compileNeighbour(key, neighbour, place)
  const column = `${scope.alias}.${quote(field.name)}`
  const { dialect } = scope
  const storage = storageOf(field)
  const part: Part = {
    key,
    sql: isNested || mask ? dialect.json.value(column, storage) : column,
    decode: decoderOf(dialect, field),
  }
  return mask ? hidden(part, scope.holds(mask), place) : part
}

/** The part as the only member of a list, which is missing where it is hidden: an empty value and none at all are not the same. */
function hidden({ key, sql, decode }: Part, shown: string, { scope, isNested }: Place): Part {
  const { json } = scope.dialect
  const list = `case when ${shown} then ${json.array([sql])} end`
  return {
    key,
    sql: isNested ? json.nested(list) : list,
    decode: (stored) => {
      const items = arrayFrom(stored)
      return items ? decode(items[0] ?? null) : HIDDEN
    },
  }
}

interface Stepped {
  readonly inner: Place
  readonly from: string
  readonly where: string
}

function stepInto(step: Step, place: Place): Stepped {
  const { scope, depth } = place
  const inner = { ...place, scope: scope.under(`r${depth}`), depth: depth + 1 }
  return { inner, ...scope.neighbours(step, inner.scope.alias) }
}

function compileNeighbour(key: string, { step, shown, order = [] }: Neighbour, place: Place): Part {
  const { lists, isNested, scope } = place
  const { dialect } = scope
  const isList = step.field.relation?.isList === true
  const { inner: stepped, from, where } = stepInto(step, place)
  const inner = { ...stepped, lists: lists + (isList ? 1 : 0), isNested: true }
  const parts = shown.entries.map((entry) => compileEntry(entry, inner))
  const id = inner.scope.alias
  const keys = shown.versionKeys.length > 0 ? ['id', 'version'] : ['id']
  const array = dialect.json.array([...keys.map((key) => `${id}."${key}"`), ...parts.map((part) => part.sql)])
  const decode = decodeNeighbour(shown, parts)
  const nest = (sql: string) => (isNested ? dialect.json.nested(sql) : sql)
  if (!isList) {
    const sql = `(select ${array} from ${from} where ${where})`
    if (step.seen || step.mask) return compileUnlessUnseen(key, sql, decode, step, place)
    return { key, sql: nest(sql), decode: (stored) => decode(arrayFrom(stored)) }
  }
  const name = `${step.from.name}.${step.field.name}`
  const most = mostShown(step.field, lists)
  if (most === 0)
    throw new Refusal(
      'bad-request',
      `${name} is a list in a list in a list: search ${step.target.name} instead`,
    )
  const by = orderOf(keysIn(inner.scope, order), `${id}."id"`)
  const joins = inner.scope.joins === '' ? '' : `${inner.scope.joins} `
  const end = `order by ${by}${most === Infinity ? '' : ` limit ${most + 1}`}`
  const list = dialect.json.list(array, `from ${from} ${joins}where ${where} ${end}`)
  const part: Part = {
    key,
    sql: step.mask ? list : nest(list),
    decode: (stored) => {
      const items = arrayFrom(stored) ?? []
      if (items.length > most)
        throw new Refusal(
          'bad-request',
          `${name} has more than ${most} members: search ${step.target.name} instead`,
        )
      return items.map((item) => decode(item as Json[]))
    },
  }
  if (!step.mask) return part
  return hidden({ ...part, sql: dialect.json.nested(list) }, scope.holds(step.mask), place)
}

/** A reference to what may not be seen is left out, as a hidden field is: sent back without it, it stays. One to nothing is null. */
function compileUnlessUnseen(
  key: string,
  subselect: string,
  decode: ReturnType<typeof decodeNeighbour>,
  { field, mask }: Step,
  { scope, isNested }: Place,
): Part {
  const { json } = scope.dialect
  const isEmpty = isReference(field)
    ? `case when ${scope.alias}.${quote(field.name)} is null then 1 else 0 end`
    : '1'
  const pair = json.array([json.nested(subselect), isEmpty])
  const sql = mask ? `case when ${scope.holds(mask)} then ${pair} end` : pair
  return {
    key,
    sql: isNested ? json.nested(sql) : sql,
    decode: (stored) => {
      const [neighbour = null, isNothing] = arrayFrom(stored) ?? []
      if (neighbour !== null) return decode(arrayFrom(neighbour))
      return Number(isNothing) === 1 ? null : HIDDEN
    },
  }
}

function decodeNeighbour(
  { versionKeys }: Selection,
  parts: readonly Part[],
): (items: readonly Json[] | null) => Value {
  const first = versionKeys.length > 0 ? 2 : 1
  return (items) => {
    if (!items) return null
    const record: Record<string, Value> = { id: Number(items[0]) }
    for (const key of versionKeys) record[key] = Number(items[1])
    parts.forEach(({ key, decode }, index) => {
      const value = decode(items[first + index] ?? null)
      if (value !== HIDDEN) record[key] = value
    })
    return record
  }
}

/** At the top JSON comes as text; inside of JSON it is parsed already. */
function arrayFrom(stored: SqlValue | Json): readonly Json[] | null {
  const value = typeof stored === 'string' ? (parseStored(stored) as Json) : stored
  return Array.isArray(value) ? value : null
}

function decoderOf(dialect: Dialect, field: Field): Decode {
  const storage = storageOf(field)
  if (storage === 'none') throw new Error(`${field.name} has no column`)
  const { decode } = dialect.columns[storage]
  if (field.type !== 'decimal') return (stored) => decode(stored as SqlValue)
  return (stored) => {
    const value = decode(stored as SqlValue)
    return value === null ? null : withScale(value as string, field.scale)
  }
}

function withScale(decimal: string, scale: number): string {
  const [integer = '', fraction = ''] = decimal.split('.')
  return scale === 0 ? integer : `${integer}.${fraction.padEnd(scale, '0')}`
}
