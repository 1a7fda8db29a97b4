// Criteria → SQL. To-one relations are joined, each once; a list is looked into by `exists`, so that no record comes twice.
import { Refusal } from '../../errors.js'
import type { Operator } from '../../model/query/condition.js'
import type { Comparison, Criteria, Step } from '../../model/query/criteria.js'
import { storageOf, type Field } from '../../model/values/field-types.js'
import { likePattern } from '../../model/values/text-folding.js'
import { isReference } from '../../model/definition/model.js'
import { ID } from '../../model/query/path.js'
import type { Value } from '../../model/values/value.js'
import type { Dialect, SqlValue } from '../engine/database.js'
import { quote } from '../engine/names.js'
import { Parameters, type Rendered } from './parameters.js'
import { neighbours, type Neighbours } from './relation.js'
import { columnOf } from './column.js'

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
  readonly parameters = new Parameters()
  readonly #paths = new Set<string>()
  #aliases = 0

  /** A name for one more table; the same relation in several places counts once, and one of a permission not at all. */
  alias(path: string | undefined): string {
    if (path !== undefined) this.#paths.add(path)
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
 *     scope.render(`select … from "table" as t ${scope.joins} where ${where} order by ${key}`)
 */
export class Scope {
  readonly #joins = new Map<string, Join>()

  constructor(
    readonly dialect: Dialect,
    readonly alias = 't',
    /** From the record at the very outside; undefined for a permission. */
    private readonly path: string | undefined = '',
    private readonly statement = new Statement(),
  ) {}

  /** Stands behind the table: complete once all columns have been asked for. */
  get joins(): string {
    return [...this.#joins.values()].map((join) => join.sql).join(' ')
  }

  render(text: string): Rendered {
    return this.statement.parameters.render(text)
  }

  /** Where a value stands in the text, until it is whole. */
  mark(value: SqlValue): string {
    return this.statement.parameters.mark(value)
  }

  /** A field at the end of steps that lead to one record each; null where one of them leads nowhere, and where it is masked. */
  column(steps: readonly Step[], field: Field, mask?: Criteria): string {
    const last = steps.at(-1)
    // The id of a neighbour stands in the record already.
    if (field === ID && last && isReference(last.field) && !last.mask && !last.seen)
      return this.column(steps.slice(0, -1), last.field)
    const alias = this.#aliasOf(steps)
    const column = `${alias}.${quote(field.name)}`
    return mask ? `case when ${this.under(alias).holds(mask)} then ${column} end` : column
  }

  /**
   * Whether a condition of a permission is true of the record. It stands for itself: the ways that it takes are not those of whoever
   * asks, who may not see all that it looks at.
   */
  holds(criteria: Criteria): string {
    const own = this.under(this.alias)
    const test = own.where(criteria)
    if (own.joins === '') return test
    return `exists (select 1 from (select 1) as "one" ${own.joins} where ${test})`
  }

  /** The records that a step leads to, as far as they may be seen. */
  neighbours(step: Step, inner: string, previous?: Step): Neighbours {
    const { from, where } = neighbours(step, this.alias, inner, previous)
    const seen = [
      ...(step.mask ? [this.holds(step.mask)] : []),
      ...(step.seen ? [this.under(inner).holds(step.seen)] : []),
    ]
    return { from, where: [where, ...seen].join(' and ') }
  }

  /** The same statement from another of its tables; what it looks at counts for nobody. */
  under(alias: string): Scope {
    return new Scope(this.dialect, alias, undefined, this.statement)
  }

  where(criteria: Criteria): string {
    switch (criteria.kind) {
      case 'comparison':
        return this.#comparison(criteria)
      case 'not':
        return `not (${this.where(criteria.criteria)})`
      default:
        if (criteria.criteria.length === 0) return criteria.kind === 'and' ? '1 = 1' : '1 = 0'
        return `(${criteria.criteria.map((each) => this.where(each)).join(` ${criteria.kind} `)})`
    }
  }

  #comparison(comparison: Comparison): string {
    const { steps, field, operator, values, mask } = comparison
    const index = steps.findIndex((step) => step.field.relation?.isList)
    const list = steps[index]
    if (list) return this.#member(comparison, list, index)
    const test = TESTS[operator]
    if (!test) throw new Error(`${operator} is a question to lists, and ${field.name} is none`)
    const column = this.column(steps, field, mask)
    const marks = test
      .params(this.dialect, field, values)
      .map((value) => this.statement.parameters.mark(value))
    return test.sql(this.dialect, column, field, marks)
  }

  /** True if the rest of the comparison is true of at least one member, else false. */
  #member(comparison: Comparison, list: Step, index: number): string {
    const [before, rest] = [comparison.steps.slice(0, index), comparison.steps.slice(index + 1)]
    const outer = this.#aliasOf(before)
    const end = this.statement.isLarge ? APART : ONE_IS_ENOUGH
    const path = this.path === undefined ? undefined : this.#pathTo([...before, list])
    const inner = new Scope(this.dialect, this.statement.alias(path), path, this.statement)
    const { from, where } = this.under(outer).neighbours(list, inner.alias)
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
    const alias = this.statement.alias(this.path === undefined ? undefined : path)
    const { from, where } = this.under(outer).neighbours(last, alias, steps.at(-2))
    this.#joins.set(path, { alias, sql: `left join ${from} on ${where}` })
    return alias
  }

  #pathTo(steps: readonly Step[]): string {
    return [this.path ?? '', ...steps.map((step) => step.field.name)].join('.')
  }
}

const PREDICATES = new WeakMap<Criteria, Map<Dialect, Rendered>>()

/** Whether a condition of a permission holds for a record `t`. It is asked again and again, and made once. */
export function predicateOf(dialect: Dialect, criteria: Criteria): Rendered {
  const known = PREDICATES.get(criteria) ?? new Map<Dialect, Rendered>()
  PREDICATES.set(criteria, known)
  const made = known.get(dialect)
  if (made) return made
  const scope = new Scope(dialect)
  const predicate = scope.render(scope.holds(criteria))
  known.set(dialect, predicate)
  return predicate
}

interface Test {
  readonly sql: (dialect: Dialect, column: string, field: Field, marks: readonly string[]) => string
  readonly params: (dialect: Dialect, field: Field, values: readonly Value[]) => readonly SqlValue[]
}

/** Whether the list at the end of a path has members: asked of the list itself, not of a member. */
const EMPTINESS: Readonly<Partial<Record<Operator, string>>> = { isEmpty: 'not exists', notEmpty: 'exists' }

/** All but emptiness. What is compared with a column that is null is unknown, as SQL has it. */
const TESTS: Readonly<Partial<Record<Operator, Test>>> = {
  '=': withMarks(([mark = '']) => `= ${mark}`),
  '!=': withMarks(([mark = '']) => `<> ${mark}`),
  '<': withMarks(([mark = '']) => `< ${mark}`),
  '>': withMarks(([mark = '']) => `> ${mark}`),
  '<=': withMarks(([mark = '']) => `<= ${mark}`),
  '>=': withMarks(([mark = '']) => `>= ${mark}`),
  between: withMarks((marks) => `between ${marks.join(' and ')}`),
  notBetween: withMarks((marks) => `not between ${marks.join(' and ')}`),
  isNull: withMarks(() => 'is null'),
  notNull: withMarks(() => 'is not null'),
  like: folded('like'),
  notLike: folded('not like'),
  in: amongRows('in'),
  notIn: amongRows('not in'),
}

function withMarks(test: (marks: readonly string[]) => string): Test {
  return {
    sql: (_dialect, column, _field, marks) => `${column} ${test(marks)}`,
    params: encodeAll,
  }
}

function folded(operator: string): Test {
  return {
    sql: (dialect, column, _field, [mark = '']) => `${dialect.fold(column)} ${operator} ${mark} escape '\\'`,
    params: (_dialect, _field, values) => values.map((value) => likePattern(value as string)),
  }
}

/** One parameter for the whole list: as many texts of SQL as lengths of lists would push others out of the caches. */
function amongRows(operator: string): Test {
  return {
    sql: (dialect, column, field, [mark = '']) =>
      `${column} ${operator} (${dialect.json.rows(storageOf(field), mark)})`,
    params: (dialect, field, values) => [JSON.stringify(encodeAll(dialect, field, values))],
  }
}

function encodeAll(dialect: Dialect, field: Field, values: readonly Value[]): SqlValue[] {
  const { encode } = columnOf(dialect, field)
  return values.map((value) => encode(value))
}
