// How SQL gets from a record to its neighbours.
import type { ModelField } from '../../model/catalog/catalog.js'
import type { PathStep } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import { isOwnedList } from '../../model/definition/model.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'

/** How many neighbours a view shows; and a list inside of a list. */
const MAX_LIST_MEMBERS = [1_000, 100] as const

/** A record shows all members of its owned lists: writes limit how many there are. */
export function getMaxMembers(field: Field, listDepth: number): number {
  return listDepth === 0 && isOwnedList(field) ? Infinity : (MAX_LIST_MEMBERS[listDepth] ?? 0)
}

export interface RelationSql {
  readonly from: string
  readonly where: string
}

/**
 * The records that a step leads to, as `inner`, from the record `outer`. A left join names the step before it, too: PostgreSQL 18 takes the
 * way back to a record (`boss.badge.holder`) without looking if the badge is there, where the record is known (`boss = 1`). It does not do so
 * for an expression.
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
  if (isList) throw new Error(`${from.name}.${field.name} has nothing that holds it`)
  const isReverseOfPrevious = previous?.field.relation?.mappedBy === field.name
  return {
    from: table,
    where: `${inner}."id" = ${outer}.${quoteIdentifier(field.name)}${isReverseOfPrevious ? ' + 0' : ''}`,
  }
}

/** Where the membership of an owned list is kept: a table with a column for the owner and one for the member. */
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

/** The table of a many-to-many: no model can have this name. */
export function toLinkTableName(model: string, field: string): string {
  return toTableName(`${model}:${field}`)
}
