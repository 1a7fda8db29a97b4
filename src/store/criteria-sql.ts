// Criteria → SQL. To-one relations are joined, each once; a list is looked into by `exists`, so that no record comes twice.
import { Refusal } from '../errors.js'
import type { Operator } from '../model/condition.js'
import type { Comparison, Criteria } from '../model/criteria.js'
import { storageOf, type Field } from '../model/field.js'
import { likePattern } from '../model/fold.js'
import { isReference } from '../model/model.js'
import { ID, type Step } from '../model/path.js'
import type { Value } from '../model/value.js'
import type { Dialect, SqlValue } from './database.js'
import { quote } from './names.js'
import { neighbours } from './relation-sql.js'
import { columnOf } from './table.js'

/** SQLite joins no more than 64 tables, and every one costs time on both engines. */
export const MAX_JOINS = 32

/**
 * PostgreSQL makes joins of `exists` and weighs their orders against each other: eight conditions over long paths took it twenty
 * seconds. So it does for the first tables only, as many as it reorders by default; later ones are looked up record by record,
 * which an offset makes sure of.
 */
const MAX_REORDERED = 8
const APART = ' limit 1 offset 0'

/**
 * SQLite, from 3.51 on, makes joins of `exists` too, and then counts an offset by the members and not by the records: pages
 * overlap. A limit keeps it from that, and PostgreSQL takes no notice of it.
 */
const ONE_IS_ENOUGH = ' limit 1'

/** What all the scopes of one statement share. */
class Statement {
  /** In the order of their marks: the text is made from left to right. */
  readonly params: SqlValue[] = []
  readonly #paths = new Set<string>()
  #aliases = 0

  /** A name for one more table; the same relation in several places counts once. */
  alias(path: string): string {
    this.#paths.add(path)
    if (this.#paths.size > MAX_JOINS)
      throw new Refusal('bad-request', `A search goes over at most ${MAX_JOINS} relations`)
    return `j${++this.#aliases}`
  }

  get isLarge(): boolean {
    return this.#aliases >= MAX_REORDERED
  }
}

interface Join {
  readonly alias: string
  readonly sql: string
}

/**
 * The tables that a condition or an order may look at: `t`, and its neighbours as far as they were asked for.
 *
 *     const scope = new Scope(dialect)
 *     const where = scope.where(criteria)
 *     const key = scope.column(steps, field)
 *     `select … from "table" as t ${scope.joins} where ${where} order by ${key}`, with scope.params for `where`
 */
export class Scope {
  readonly #joins = new Map<string, Join>()

  constructor(
    readonly dialect: Dialect,
    private readonly alias = 't',
    private readonly path = '',
    private readonly statement = new Statement(),
  ) {}

  /** Stands behind the table: complete once all columns have been asked for. It holds no parameters. */
  get joins(): string {
    return [...this.#joins.values()].map((join) => join.sql).join(' ')
  }

  get params(): readonly SqlValue[] {
    return this.statement.params
  }

  /** A field at the end of steps that lead to one record each; null where one of them leads nowhere. */
  column(steps: readonly Step[], field: Field): string {
    const last = steps.at(-1)
    // The id of a neighbour stands in the record already.
    if (field === ID && last && isReference(last.field)) return this.column(steps.slice(0, -1), last.field)
    return `${this.#aliasOf(steps)}.${quote(field.name)}`
  }

  where(criteria: Criteria): string {
    switch (criteria.kind) {
      case 'comparison':
        return this.#comparison(criteria)
      case 'not':
        return `not (${this.where(criteria.criteria)})`
      default:
        return `(${criteria.criteria.map((each) => this.where(each)).join(` ${criteria.kind} `)})`
    }
  }

  #comparison(comparison: Comparison): string {
    const { steps, field, operator, values } = comparison
    const index = steps.findIndex((step) => step.field.relation?.isList)
    const list = steps[index]
    if (list) return this.#member(comparison, list, index)
    const test = TESTS[operator]
    if (!test) throw new Error(`${operator} is a question to lists, and ${field.name} is none`)
    this.statement.params.push(...test.params(this.dialect, field, values))
    return test.sql(this.dialect, this.column(steps, field), field)
  }

  /** True if the rest of the comparison is true of at least one member, else false. */
  #member(comparison: Comparison, list: Step, index: number): string {
    const [before, rest] = [comparison.steps.slice(0, index), comparison.steps.slice(index + 1)]
    const outer = this.#aliasOf(before)
    const end = this.statement.isLarge ? APART : ONE_IS_ENOUGH
    const path = this.#pathTo([...before, list])
    const inner = new Scope(this.dialect, this.statement.alias(path), path, this.statement)
    const { from, where } = neighbours(list, outer, inner.alias)
    const emptiness = rest.length === 0 ? EMPTINESS[comparison.operator] : undefined
    if (emptiness !== undefined) return `${emptiness} (select 1 from ${from} where ${where}${end})`
    const test = inner.where({ ...comparison, steps: rest })
    return `exists (select 1 from ${from} ${inner.joins} where ${where} and ${test}${end})`
  }

  #aliasOf(steps: readonly Step[]): string {
    const last = steps.at(-1)
    if (!last) return this.alias
    const path = this.#pathTo(steps)
    const known = this.#joins.get(path)
    if (known) return known.alias
    // Joined, its members would bring the record several times.
    if (last.field.relation?.isList) throw new Error(`${path} is a list: it cannot be joined`)
    const outer = this.#aliasOf(steps.slice(0, -1))
    const alias = this.statement.alias(path)
    const { from, where } = neighbours(last, outer, alias)
    this.#joins.set(path, { alias, sql: `left join ${from} on ${where}` })
    return alias
  }

  /** From the record at the very outside. */
  #pathTo(steps: readonly Step[]): string {
    return [this.path, ...steps.map((step) => step.field.name)].join('.')
  }
}

interface Test {
  readonly sql: (dialect: Dialect, column: string, field: Field) => string
  readonly params: (dialect: Dialect, field: Field, values: readonly Value[]) => readonly SqlValue[]
}

/** Whether the list at the end of a path has members: asked of the list itself, not of a member. */
const EMPTINESS: Readonly<Partial<Record<Operator, string>>> = { isEmpty: 'not exists', notEmpty: 'exists' }

/** All but emptiness. What is compared with a column that is null is unknown, as SQL has it. */
const TESTS: Readonly<Partial<Record<Operator, Test>>> = {
  '=': withMarks('= ?'),
  '!=': withMarks('<> ?'),
  '<': withMarks('< ?'),
  '>': withMarks('> ?'),
  '<=': withMarks('<= ?'),
  '>=': withMarks('>= ?'),
  between: withMarks('between ? and ?'),
  notBetween: withMarks('not between ? and ?'),
  isNull: withMarks('is null'),
  notNull: withMarks('is not null'),
  like: folded('like'),
  notLike: folded('not like'),
  in: amongRows('in'),
  notIn: amongRows('not in'),
}

function withMarks(test: string): Test {
  return {
    sql: (_dialect, column) => `${column} ${test}`,
    params: encodeAll,
  }
}

function folded(operator: string): Test {
  return {
    sql: (dialect, column) => `${dialect.fold(column)} ${operator} ? escape '\\'`,
    params: (_dialect, _field, values) => values.map((value) => likePattern(value as string)),
  }
}

/** One parameter for the whole list: as many texts of SQL as lengths of lists would push others out of the caches. */
function amongRows(operator: string): Test {
  return {
    sql: (dialect, column, field) => `${column} ${operator} (${dialect.json.rows(storageOf(field))})`,
    params: (dialect, field, values) => [JSON.stringify(encodeAll(dialect, field, values))],
  }
}

function encodeAll(dialect: Dialect, field: Field, values: readonly Value[]): SqlValue[] {
  const { encode } = columnOf(dialect, field)
  return values.map((value) => encode(value))
}
