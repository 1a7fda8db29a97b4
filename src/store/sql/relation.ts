// Compiles relations: from a record to its related records.
import type { ModelField } from '../../model/catalog/catalog.js'
import type { PathStep } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import { isOwnedList } from '../../model/definition/model.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'

/** The most members of an inverse relation in a response, and of a list inside a list. */
const MAX_LIST_MEMBERS = [1_000, 100] as const

/** Owned lists of the record itself have no limit here, because writes limit their length. */
export function getMaxMembers(field: Field, listDepth: number): number {
  return listDepth === 0 && isOwnedList(field) ? Infinity : (MAX_LIST_MEMBERS[listDepth] ?? 0)
}

export interface RelationSql {
  readonly from: string
  readonly where: string
}

/**
 * The target records of a step as `inner`, starting from the record `outer`. A left join passes the previous step, too, because of a wrong
 * optimization of PostgreSQL 18: if a path returns to its start (`boss.badge.holder`) and that record is known (`boss = 1`), it does not
 * check that the badge exists. `+ 0` makes the column an expression, which prevents that.
 */
export function compileRelation(
  step: PathStep,
  outer: string,
  inner: string,
  previous?: PathStep,
): RelationSql {
  const { from, field, target } = step
  const { mappedBy, isList } = field.relation ?? {}
  const table = `${quoteIdentifier(toTableName(target.name))} as ${inner}`
  if (field.type === 'many-to-many') {
    const [holder, own, other] =
      mappedBy === undefined
        ? [toLinkTableName(from.name, field.name), 'owner', 'member']
        : [toLinkTableName(target.name, mappedBy), 'member', 'owner']
    const link = `${inner}_link`
    return {
      from: `${quoteIdentifier(holder)} as ${link} join ${table} on ${inner}."id" = ${link}."${other}"`,
      where: `${link}."${own}" = ${outer}."id"`,
    }
  }
  if (mappedBy !== undefined)
    return { from: table, where: `${inner}.${quoteIdentifier(mappedBy)} = ${outer}."id"` }
  if (isList) throw new Error(`${from.name}.${field.name} is a list without an inverse field`)
  const isReverseOfPrevious = previous?.field.relation?.mappedBy === field.name
  return {
    from: table,
    where: `${inner}."id" = ${outer}.${quoteIdentifier(field.name)}${isReverseOfPrevious ? ' + 0' : ''}`,
  }
}

/** The table that stores the members of an owned list, with its columns for owner and member. */
export interface Membership {
  readonly table: string
  readonly owner: string
  readonly member: string
}

export function findMembership({ model, field }: ModelField): Membership {
  const { relation } = field
  if (relation?.mappedBy !== undefined)
    return {
      table: quoteIdentifier(toTableName(relation.target)),
      owner: quoteIdentifier(relation.mappedBy),
      member: '"id"',
    }
  return {
    table: quoteIdentifier(toLinkTableName(model.name, field.name)),
    owner: '"owner"',
    member: '"member"',
  }
}

/** The link table of a many-to-many field. No model can have this name. */
export function toLinkTableName(model: string, field: string): string {
  return toTableName(`${model}:${field}`)
}
