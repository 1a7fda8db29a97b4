// Criteria → SQL. To-one relations are joined, each once; a list is looked into by `exists`, so that no record comes twice.
import { VersoError } from '../../errors.js'
import type { Operator } from '../../model/query/condition.js'
import type { Comparison, Criteria, PathStep } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import { buildLikePattern } from '../../model/values/text-folding.js'
import { isReference } from '../../model/definition/model.js'
import { ID_FIELD } from '../../model/query/path.js'
import type { Value } from '../../model/values/value.js'
import type { Dialect, SqlValue } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import { SqlParameters, type SqlFragment } from './parameters.js'
import { compileRelation, type RelationSql } from './relation.js'
import { getColumn } from './column.js'

/** SQLite joins no more than 64 tables, and every one costs time on both engines. */
export const MAX_JOINS = 32

/**
 * PostgreSQL makes joins of `exists` and weighs their orders against each other: eight conditions over long paths took it twenty
 * seconds. So it does for the first tables only, as many as it reorders by default; later ones are looked up record by record,
 * which an offset makes sure of.
 */
const MAX_REORDERED_TABLES = 8
const UNREORDERED_LIMIT = ' limit 1 offset 0'

/**
 * SQLite, from 3.51 on, makes joins of `exists` too, and then counts an offset by the members and not by the records: pages
 * overlap. A limit keeps it from that, and PostgreSQL takes no notice of it.
 */
const EXISTS_LIMIT = ' limit 1'

/** What all the scopes of one statement share. */
class StatementState {
  readonly parameters = new SqlParameters()
  readonly #paths = new Set<string>()
  #aliases = 0

  /** A name for one more table; the same relation in several places counts once, and one of a permission not at all. */
  alias(path: string | undefined): string {
    if (path !== undefined) this.#paths.add(path)
    if (this.#paths.size > MAX_JOINS)
      throw new VersoError('bad-request', `A search goes over at most ${MAX_JOINS} relations`)
    return `j${++this.#aliases}`
  }

  get isLarge(): boolean {
    return this.#aliases >= MAX_REORDERED_TABLES
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
export class SqlScope {
  readonly #joins = new Map<string, Join>()

  constructor(
    readonly dialect: Dialect,
    readonly alias = 't',
    /** From the record at the very outside; undefined for a permission. */
    private readonly path: string | undefined = '',
    private readonly statement = new StatementState(),
  ) {}

  /** Stands behind the table: complete once all columns have been asked for. */
  get joins(): string {
    return [...this.#joins.values()].map((join) => join.sql).join(' ')
  }

  render(text: string): SqlFragment {
    return this.statement.parameters.render(text)
  }

  /** Where a value stands in the text, until it is whole. */
  bind(value: SqlValue): string {
    return this.statement.parameters.bind(value)
  }

  /** A field at the end of steps that lead to one record each; null where one of them leads nowhere, and where it is masked. */
  compileColumn(steps: readonly PathStep[], field: Field, mask?: Criteria): string {
    const last = steps.at(-1)
    // The id of a neighbour stands in the record already.
    if (field === ID_FIELD && last && isReference(last.field) && !last.mask && !last.seen)
      return this.compileColumn(steps.slice(0, -1), last.field)
    const alias = this.#resolveAlias(steps)
    const column = `${alias}.${quoteIdentifier(field.name)}`
    return mask ? `case when ${this.withAlias(alias).compilePermission(mask)} then ${column} end` : column
  }

  /**
   * Whether a condition of a permission is true of the record. It stands for itself: the ways that it takes are not those of whoever
   * asks, who may not see all that it looks at.
   */
  compilePermission(criteria: Criteria): string {
    const own = this.withAlias(this.alias)
    const test = own.compileWhere(criteria)
    if (own.joins === '') return test
    return `exists (select 1 from (select 1) as "one" ${own.joins} where ${test})`
  }

  /** The records that a step leads to, as far as they may be seen. */
  compileRelation(step: PathStep, inner: string, previous?: PathStep): RelationSql {
    const { from, where } = compileRelation(step, this.alias, inner, previous)
    const visibility = [
      ...(step.mask ? [this.compilePermission(step.mask)] : []),
      ...(step.seen ? [this.withAlias(inner).compilePermission(step.seen)] : []),
    ]
    return { from, where: [where, ...visibility].join(' and ') }
  }

  /** The same statement from another of its tables; what it looks at counts for nobody. */
  withAlias(alias: string): SqlScope {
    return new SqlScope(this.dialect, alias, undefined, this.statement)
  }

  compileWhere(criteria: Criteria): string {
    switch (criteria.kind) {
      case 'comparison':
        return this.#compileComparison(criteria)
      case 'not':
        return `not (${this.compileWhere(criteria.criteria)})`
      default:
        if (criteria.criteria.length === 0) return criteria.kind === 'and' ? '1 = 1' : '1 = 0'
        return `(${criteria.criteria.map((each) => this.compileWhere(each)).join(` ${criteria.kind} `)})`
    }
  }

  #compileComparison(comparison: Comparison): string {
    const { steps, field, operator, values, mask } = comparison
    const index = steps.findIndex((step) => step.field.relation?.isList)
    const list = steps[index]
    if (list) return this.#compileListComparison(comparison, list, index)
    const test = OPERATOR_SQL[operator]
    if (!test) throw new Error(`${operator} is a question to lists, and ${field.name} is none`)
    const column = this.compileColumn(steps, field, mask)
    const marks = test
      .params(this.dialect, field, values)
      .map((value) => this.statement.parameters.bind(value))
    return test.sql(this.dialect, column, field, marks)
  }

  /** True if the rest of the comparison is true of at least one member, else false. */
  #compileListComparison(comparison: Comparison, list: PathStep, index: number): string {
    const [before, rest] = [comparison.steps.slice(0, index), comparison.steps.slice(index + 1)]
    const outer = this.#resolveAlias(before)
    const end = this.statement.isLarge ? UNREORDERED_LIMIT : EXISTS_LIMIT
    const path = this.path === undefined ? undefined : this.#joinPath([...before, list])
    const inner = new SqlScope(this.dialect, this.statement.alias(path), path, this.statement)
    const { from, where } = this.withAlias(outer).compileRelation(list, inner.alias)
    const emptiness = rest.length === 0 ? EMPTINESS_OPERATORS[comparison.operator] : undefined
    if (emptiness !== undefined) return `${emptiness} (select 1 from ${from} where ${where}${end})`
    const test = inner.compileWhere({ ...comparison, steps: rest })
    return `exists (select 1 from ${from} ${inner.joins} where ${where} and ${test}${end})`
  }

  #resolveAlias(steps: readonly PathStep[]): string {
    const last = steps.at(-1)
    if (!last) return this.alias
    const path = this.#joinPath(steps)
    const known = this.#joins.get(path)
    if (known) return known.alias
    // Joined, its members would bring the record several times.
    if (last.field.relation?.isList) throw new Error(`${path} is a list: it cannot be joined`)
    const outer = this.#resolveAlias(steps.slice(0, -1))
    const alias = this.statement.alias(this.path === undefined ? undefined : path)
    const { from, where } = this.withAlias(outer).compileRelation(last, alias, steps.at(-2))
    this.#joins.set(path, { alias, sql: `left join ${from} on ${where}` })
    return alias
  }

  #joinPath(steps: readonly PathStep[]): string {
    return [this.path ?? '', ...steps.map((step) => step.field.name)].join('.')
  }
}

const PREDICATE_CACHE = new WeakMap<Criteria, Map<Dialect, SqlFragment>>()

/** Whether a condition of a permission holds for a record `t`. It is asked again and again, and made once. */
export function compilePredicate(dialect: Dialect, criteria: Criteria): SqlFragment {
  const known = PREDICATE_CACHE.get(criteria) ?? new Map<Dialect, SqlFragment>()
  PREDICATE_CACHE.set(criteria, known)
  const made = known.get(dialect)
  if (made) return made
  const scope = new SqlScope(dialect)
  const predicate = scope.render(scope.compilePermission(criteria))
  known.set(dialect, predicate)
  return predicate
}

interface OperatorSql {
  readonly sql: (dialect: Dialect, column: string, field: Field, marks: readonly string[]) => string
  readonly params: (dialect: Dialect, field: Field, values: readonly Value[]) => readonly SqlValue[]
}

/** Whether the list at the end of a path has members: asked of the list itself, not of a member. */
const EMPTINESS_OPERATORS: Readonly<Partial<Record<Operator, string>>> = {
  isEmpty: 'not exists',
  notEmpty: 'exists',
}

/** All but emptiness. What is compared with a column that is null is unknown, as SQL has it. */
const OPERATOR_SQL: Readonly<Partial<Record<Operator, OperatorSql>>> = {
  '=': compareColumn(([mark = '']) => `= ${mark}`),
  '!=': compareColumn(([mark = '']) => `<> ${mark}`),
  '<': compareColumn(([mark = '']) => `< ${mark}`),
  '>': compareColumn(([mark = '']) => `> ${mark}`),
  '<=': compareColumn(([mark = '']) => `<= ${mark}`),
  '>=': compareColumn(([mark = '']) => `>= ${mark}`),
  between: compareColumn((marks) => `between ${marks.join(' and ')}`),
  notBetween: compareColumn((marks) => `not between ${marks.join(' and ')}`),
  isNull: compareColumn(() => 'is null'),
  notNull: compareColumn(() => 'is not null'),
  like: compareFolded('like'),
  notLike: compareFolded('not like'),
  in: compareWithList('in'),
  notIn: compareWithList('not in'),
}

function compareColumn(compile: (marks: readonly string[]) => string): OperatorSql {
  return {
    sql: (_dialect, column, _field, marks) => `${column} ${compile(marks)}`,
    params: encodeValues,
  }
}

function compareFolded(operator: string): OperatorSql {
  return {
    sql: (dialect, column, _field, [mark = '']) => `${dialect.fold(column)} ${operator} ${mark} escape '\\'`,
    params: (_dialect, _field, values) => values.map((value) => buildLikePattern(value as string)),
  }
}

/** One parameter for the whole list: as many texts of SQL as lengths of lists would push others out of the caches. */
function compareWithList(operator: string): OperatorSql {
  return {
    sql: (dialect, column, field, [mark = '']) =>
      `${column} ${operator} (${dialect.json.unnest(getStorage(field), mark)})`,
    params: (dialect, field, values) => [JSON.stringify(encodeValues(dialect, field, values))],
  }
}

function encodeValues(dialect: Dialect, field: Field, values: readonly Value[]): SqlValue[] {
  const { encode } = getColumn(dialect, field)
  return values.map((value) => encode(value))
}
