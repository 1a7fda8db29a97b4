// Converts a field of domain XML to a field definition as `defineModel` takes it.
import type { FieldDefinition } from '../../model/definition/field-definition.js'
import type { RawField } from './declarations.js'
import {
  isRequired,
  isTrueAttribute,
  NO_REF_DETAIL,
  readCommonOptions,
  type DomainContext,
  type FieldDraft,
  type ReportFieldDiagnostic,
} from './field-draft.js'
import { parseOrderKeys } from './order.js'
import { convertScalar } from './scalar-fields.js'

/** Every model has these from the service. */
const SYSTEM_FIELD_NAMES = new Set([
  'id',
  'version',
  'archived',
  'selected',
  'createdOn',
  'createdBy',
  'updatedOn',
  'updatedBy',
])
const RELATION_TYPES = new Set(['one-to-one', 'many-to-one', 'one-to-many', 'many-to-many'])
const LIST_TYPES = new Set(['one-to-many', 'many-to-many'])

/** Returns undefined if the field is left out. */
export function convertField(
  entity: string,
  field: RawField,
  context: DomainContext,
): FieldDefinition | undefined {
  const report: ReportFieldDiagnostic = (kind, detail) => {
    const location = `${entity}.${field.name}`
    context.report(detail === undefined ? { kind, location } : { kind, location, detail })
  }
  if (SYSTEM_FIELD_NAMES.has(field.name)) report('reserved')
  else if (isTrueAttribute(field, 'formula')) report('formula')
  else if (isTrueAttribute(field, 'transient')) {
    if (field.body === '') report('transient')
    else report('computed', 'transient')
  } else {
    if (field.body !== '') report('computed', 'stored')
    const draft = RELATION_TYPES.has(field.type)
      ? convertRelation(field, context, report)
      : convertScalar(field, context, report)
    return draft as FieldDefinition | undefined
  }
  return undefined
}

function convertRelation(
  field: RawField,
  context: DomainContext,
  report: ReportFieldDiagnostic,
): FieldDraft | undefined {
  const { attributes, type } = field
  const ref = attributes.get('ref') ?? ''
  const target = context.resolveTarget(ref)
  if (target === undefined) {
    report('target', ref === '' ? NO_REF_DETAIL : `${ref}${context.suggestTarget(ref)}`)
    return undefined
  }
  if (['pattern', 'format'].some((option) => attributes.has(option)))
    report('rule', 'a relation cannot have a pattern or a format')
  if ((attributes.get('default') ?? '') !== '') report('default', 'a relation cannot have a default')
  const mappedBy = attributes.get('mappedBy')
  const orderBy = LIST_TYPES.has(type) ? parseOrderKeys(attributes.get('orderBy')) : []
  const base = {
    ...readCommonOptions(field),
    target,
    ...(mappedBy === undefined ? {} : { mappedBy }),
    ...(orderBy.length === 0 ? {} : { orderBy }),
  }
  if (type === 'one-to-many' && mappedBy === undefined) {
    report('unmapped-list')
    return { type: 'many-to-many', ...base }
  }
  if (type === 'one-to-many')
    return { type, ...base, ...(attributes.get('orphanRemoval') === 'false' ? {} : { owned: true }) }
  const required = isRequired(field) && mappedBy === undefined && !LIST_TYPES.has(type)
  const unique = type === 'many-to-one' && isTrueAttribute(field, 'unique')
  return { type, ...base, ...(required ? { required } : {}), ...(unique ? { unique } : {}) }
}
