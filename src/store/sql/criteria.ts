// Compiles criteria to SQL. To-one relations are joined once each. Lists use `exists`, so that no record is returned twice.
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

/** SQLite joins at most 64 tables, and each join costs time in both engines. */
export const MAX_JOINS = 32

/**
 * PostgreSQL turns `exists` into joins and compares their orders: planning eight conditions over long paths took twenty seconds. So only the
 * first tables permit that, as many as it reorders by default. An offset in the others prevents it, and they are evaluated record by record.
 */
const MAX_REORDERED_TABLES = 8
const UNREORDERED_LIMIT = ' limit 1 offset 0'

/**
 * SQLite from 3.51 on also turns `exists` into joins, and then counts the offset of a page in members instead of records, so that pages
 * overlap. A limit prevents that. PostgreSQL ignores it.
 */
const EXISTS_LIMIT = ' limit 1'

/** The state that all scopes of one statement share. */
class StatementState {
  readonly parameters = new SqlParameters()
  readonly #paths = new Set<string>()
  #aliases = 0

  /** An alias for one more table. Repeated paths count once towards the limit; relations of permissions do not count. */
  alias(path: string | undefined): string {
    if (path !== undefined) this.#paths.add(path)
    if (this.#paths.size > MAX_JOINS)
      throw new VersoError('bad-request', `A search can use at most ${MAX_JOINS} relations`)
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
 * The tables of a statement: `t`, and those that its conditions and sort keys join.
 *
 *     const scope = new SqlScope(dialect)
 *     const where = scope.compileWhere(criteria)
 *     const key = scope.compileColumn(steps, field)
 *     scope.render(`select … from "table" as t ${scope.joins} where ${where} order by ${key}`)
 */
export class SqlScope {
  readonly #joins = new Map<string, Join>()

  constructor(
    readonly dialect: Dialect,
    readonly alias = 't',
    /** The path from the outermost record; undefined in a permission. */
    private readonly path: string | undefined = '',
    private readonly statement = new StatementState(),
  ) {}

  /** Follows the table in `from`. Must be read after all conditions and columns are compiled. */
  get joins(): string {
    return [...this.#joins.values()].map((join) => join.sql).join(' ')
  }

  render(text: string): SqlFragment {
    return this.statement.parameters.render(text)
  }

  /** Adds a parameter and returns its placeholder, which `render` replaces. */
  bind(value: SqlValue): string {
    return this.statement.parameters.bind(value)
  }

  /** A field at the end of to-one steps. The value is null if a step has no target or the mask hides the field. */
  compileColumn(steps: readonly PathStep[], field: Field, mask?: Criteria): string {
    const last = steps.at(-1)
    // The reference itself holds the id of the related record, so no join is needed.
    if (field === ID_FIELD && last && isReference(last.field) && !last.mask && !last.visible)
      return this.compileColumn(steps.slice(0, -1), last.field)
    const alias = this.#resolveAlias(steps)
    const column = `${alias}.${quoteIdentifier(field.name)}`
    return mask ? `case when ${this.withAlias(alias).compilePermission(mask)} then ${column} end` : column
  }

  /**
   * Compiles a condition of a permission. It has its own joins, because the user may not see all records that it reads, and the joins of the
   * search contain only visible ones.
   */
  compilePermission(criteria: Criteria): string {
    const scope = this.withAlias(this.alias)
    const test = scope.compileWhere(criteria)
    if (scope.joins === '') return test
    return `exists (select 1 from (select 1) as "one" ${scope.joins} where ${test})`
  }

  /** The target records of a step that the user may read. */
  compileRelation(step: PathStep, inner: string, previous?: PathStep): RelationSql {
    const { from, where } = compileRelation(step, this.alias, inner, previous)
    const visibility = [
      ...(step.mask ? [this.compilePermission(step.mask)] : []),
      ...(step.visible ? [this.withAlias(inner).compilePermission(step.visible)] : []),
    ]
    return { from, where: [where, ...visibility].join(' and ') }
  }

  /** A scope of the same statement that starts at another table. Its relations do not count towards the limit. */
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
    const { steps, field, operator, values, otherField, mask } = comparison
    const index = steps.findIndex((step) => step.field.relation?.isList)
    const list = steps[index]
    if (list) return this.#compileListComparison(comparison, list, index)
    const test = OPERATOR_SQL[operator]
    if (!test) throw new Error(`${operator} is an operator for lists, and ${field.name} is not a list`)
    const column = this.compileColumn(steps, field, mask)
    if (otherField) return test.sql(this.dialect, column, field, [this.compileColumn(steps, otherField)])
    const placeholders = test
      .params(this.dialect, field, values)
      .map((value) => this.statement.parameters.bind(value))
    return test.sql(this.dialect, column, field, placeholders)
  }

  /** True if the rest of the comparison is true for at least one member, otherwise false. */
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
    const existing = this.#joins.get(path)
    if (existing) return existing.alias
    // A join would return the record once for each member.
    if (last.field.relation?.isList) throw new Error(`${path} is a list and cannot be joined`)
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

/** A condition of a permission for a record `t`. Compiled once, because it is part of many statements. */
export function compilePredicate(dialect: Dialect, criteria: Criteria): SqlFragment {
  const predicates = PREDICATE_CACHE.get(criteria) ?? new Map<Dialect, SqlFragment>()
  PREDICATE_CACHE.set(criteria, predicates)
  const cached = predicates.get(dialect)
  if (cached) return cached
  const scope = new SqlScope(dialect)
  const predicate = scope.render(scope.compilePermission(criteria))
  predicates.set(dialect, predicate)
  return predicate
}

interface OperatorSql {
  readonly sql: (dialect: Dialect, column: string, field: Field, placeholders: readonly string[]) => string
  readonly params: (dialect: Dialect, field: Field, values: readonly Value[]) => readonly SqlValue[]
}

/** Operators that test the list at the end of a path itself, not its members. */
const EMPTINESS_OPERATORS: Readonly<Partial<Record<Operator, string>>> = {
  isEmpty: 'not exists',
  notEmpty: 'exists',
}

/** All other operators. A comparison with a null column is unknown, as in SQL. */
const OPERATOR_SQL: Readonly<Partial<Record<Operator, OperatorSql>>> = {
  '=': compareColumn(([value = '']) => `= ${value}`),
  '!=': compareColumn(([value = '']) => `<> ${value}`),
  '<': compareColumn(([value = '']) => `< ${value}`),
  '>': compareColumn(([value = '']) => `> ${value}`),
  '<=': compareColumn(([value = '']) => `<= ${value}`),
  '>=': compareColumn(([value = '']) => `>= ${value}`),
  between: compareColumn((values) => `between ${values.join(' and ')}`),
  notBetween: compareColumn((values) => `not between ${values.join(' and ')}`),
  isNull: compareColumn(() => 'is null'),
  notNull: compareColumn(() => 'is not null'),
  like: compareFolded('like'),
  notLike: compareFolded('not like'),
  in: compareWithList('in'),
  notIn: compareWithList('not in'),
}

function compareColumn(compile: (placeholders: readonly string[]) => string): OperatorSql {
  return {
    sql: (_dialect, column, _field, placeholders) => `${column} ${compile(placeholders)}`,
    params: encodeValues,
  }
}

/** Without the cast SQLite makes a new plan for each pattern, in search of an index for its beginning. */
function compareFolded(operator: string): OperatorSql {
  return {
    sql: (dialect, column, _field, [pattern = '']) =>
      `${dialect.fold(column)} ${operator} cast(${pattern} as text) escape '\\'`,
    params: (_dialect, _field, values) => values.map((value) => buildLikePattern(value as string)),
  }
}

/** One parameter for the whole list: a different SQL text for each length of a list would displace other cached statements. */
function compareWithList(operator: string): OperatorSql {
  return {
    sql: (dialect, column, field, [list = '']) =>
      `${column} ${operator} (${dialect.json.unnest(getStorage(field), list)})`,
    params: (dialect, field, values) => [JSON.stringify(encodeValues(dialect, field, values))],
  }
}

function encodeValues(dialect: Dialect, field: Field, values: readonly Value[]): SqlValue[] {
  const { encode } = getColumn(dialect, field)
  return values.map((value) => encode(value))
}
