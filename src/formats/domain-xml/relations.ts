// Once all models of domain XML are known: the other sides of relations that do not fit are left out, and told.
import type { FieldDefinition, ModelDefinition } from '../../model/definition/define-model.js'
import type { ReportLine } from './report.js'

/** The type that holds what each of these shows. */
const HELD_BY: Readonly<Record<string, string>> = {
  'one-to-one': 'one-to-one',
  'one-to-many': 'many-to-one',
  'many-to-many': 'many-to-many',
}

export type Fields = Readonly<Record<string, FieldDefinition>>

/** `fieldsOf` knows every model there is, those of other files and of the service too. */
export function settleRelations(
  { name: model, fields }: ModelDefinition,
  fieldsOf: (model: string) => Fields | undefined,
  report: (line: ReportLine) => void,
): Fields {
  if (!Object.values(fields).some((field) => 'mappedBy' in field)) return fields
  const owned = new Set<string>()
  const settled = Object.entries(fields).flatMap(([name, field]): [string, FieldDefinition][] => {
    const place = `${model}.${name}`
    if (!('mappedBy' in field)) return [[name, field]]
    const fault = mappingFault(model, field, fieldsOf(field.target))
    if (fault !== undefined) {
      report({ kind: 'mapped-by', place, detail: fault })
      return []
    }
    if (field.type !== 'one-to-many' || field.owned !== true) return [[name, field]]
    const members = `${field.target}.${field.mappedBy}`
    if (!owned.has(members)) {
      owned.add(members)
      return [[name, field]]
    }
    report({ kind: 'second-owner', place, detail: members })
    return [[name, viewOf(field)]]
  })
  return Object.fromEntries(settled)
}

function viewOf(field: FieldDefinition): FieldDefinition {
  return Object.fromEntries(Object.entries(field).filter(([option]) => option !== 'owned')) as FieldDefinition
}

function mappingFault(model: string, field: FieldDefinition, there: Fields | undefined): string | undefined {
  if (!('mappedBy' in field)) return undefined
  const { target, mappedBy, type } = field
  const held = there && Object.hasOwn(there, mappedBy) ? there[mappedBy] : undefined
  if (!held) return `${target} has no field "${mappedBy}"`
  const isHolder = held.type === HELD_BY[type] && 'target' in held && held.target === model
  if (!isHolder || 'mappedBy' in held)
    return `${target}.${mappedBy} is no ${HELD_BY[type] ?? ''} that leads to ${model}`
  return undefined
}
