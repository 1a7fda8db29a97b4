// Removes inverse relations that do not match the target and reports them. Needs all models of domain XML.
import type { ModelDefinition } from '../../model/definition/define-model.js'
import type { FieldDefinition } from '../../model/definition/field-definition.js'
import { MAPPED_BY_TYPES } from '../../model/values/field.js'
import type { ReportDiagnostic } from './report.js'

export type FieldDefinitions = Readonly<Record<string, FieldDefinition>>

/** `findFields` covers all models, including system models and those of other files. */
export function removeInvalidRelations(
  { name: model, fields }: ModelDefinition,
  findFields: (model: string) => FieldDefinitions | undefined,
  report: ReportDiagnostic,
): FieldDefinitions {
  if (!Object.values(fields).some((field) => 'mappedBy' in field)) return fields
  const owned = new Set<string>()
  const settled = Object.entries(fields).flatMap(([name, field]): [string, FieldDefinition][] => {
    const location = `${model}.${name}`
    if (!('mappedBy' in field)) return [[name, field]]
    const error = validateMapping(model, field, findFields(field.target))
    if (error !== undefined) {
      report({ kind: 'mapped-by', location, detail: error })
      return []
    }
    if (field.type !== 'one-to-many' || field.owned !== true) return [[name, field]]
    const members = `${field.target}.${field.mappedBy}`
    if (!owned.has(members)) {
      owned.add(members)
      return [[name, field]]
    }
    report({ kind: 'second-owner', location, detail: members })
    return [[name, withoutOwnership(field)]]
  })
  return Object.fromEntries(settled)
}

function withoutOwnership(field: FieldDefinition): FieldDefinition {
  return Object.fromEntries(Object.entries(field).filter(([option]) => option !== 'owned')) as FieldDefinition
}

function validateMapping(
  model: string,
  field: FieldDefinition,
  targetFields: FieldDefinitions | undefined,
): string | undefined {
  if (!('mappedBy' in field)) return undefined
  const { target, mappedBy, type } = field
  const mappedField =
    targetFields && Object.hasOwn(targetFields, mappedBy) ? targetFields[mappedBy] : undefined
  if (!mappedField) return `${target} has no field "${mappedBy}"`
  const isHolder =
    mappedField.type === MAPPED_BY_TYPES[type] && 'target' in mappedField && mappedField.target === model
  if (!isHolder || 'mappedBy' in mappedField)
    return `${target}.${mappedBy} is not a ${MAPPED_BY_TYPES[type] ?? ''} with target ${model}`
  return undefined
}
