// Converts domain XML to model definitions as `defineModel` takes them, and reports everything that it cannot convert.
import type { CheckDefinition, ModelDefinition } from '../../model/definition/define-model.js'
import type { FieldDefinition } from '../../model/definition/field-definition.js'
import type { DomainContext } from './field-draft.js'
import { convertField } from './fields.js'
import { flattenInheritance, mergeEntities, mergeEnums, type DomainEntity } from './merge.js'
import { ListOrderConverter } from './order.js'
import { removeInvalidRelations, type FieldDefinitions } from './relations.js'
import type { DomainDiagnostic } from './report.js'
import { findNameField, convertIndexes } from './sets.js'
import { suggestName } from './similar.js'
import { reportUnknownAttributes, type DomainDeclarations, type XmlAttributes } from './declarations.js'
import { applyExtensions, type ModelExtension } from '../../model/definition/extend-model.js'
import { USER_MODEL } from '../../model/definition/model.js'
import { SYSTEM_MODELS } from '../../model/catalog/system-models.js'

/** Stands for the user model of the service unless XML declares it. */
const USER_ENTITY = 'com.axelor.auth.db.User'
const PLATFORM_PACKAGE = /^com\.axelor\.(auth|meta|mail|dms|team)(\.|$)/
const ATTRS_FIELD: FieldDefinition = { type: 'json' }

export interface DomainModel {
  /** The first file that declares it. */
  readonly file: string
  readonly definition: ModelDefinition
}

export interface DomainModels {
  readonly models: readonly DomainModel[]
  readonly report: readonly DomainDiagnostic[]
  readonly errors: readonly string[]
}

export interface OtherModels {
  /** Extensions by the name of the extended model. */
  readonly extensions: ReadonlyMap<string, readonly ModelExtension[]>
  /** The fields of models from other files, which XML may refer to. */
  readonly others: ReadonlyMap<string, FieldDefinitions>
}

const NO_OTHER_MODELS: OtherModels = { extensions: new Map(), others: new Map() }

export function convertDomainModels(
  declared: DomainDeclarations,
  otherModels: OtherModels = NO_OTHER_MODELS,
): DomainModels {
  const report: DomainDiagnostic[] = []
  const errors: string[] = []
  const sink = {
    report: (line: DomainDiagnostic) => report.push(line),
    reportError: (error: string) => errors.push(error),
  }
  reportUnknownAttributes(declared.entities, sink.report)
  const served = withoutSystemModels(flattenInheritance(mergeEntities(declared.entities, sink), sink), report)
  const known = mapKnownModels(served, otherModels)
  const context: DomainContext = {
    enums: mergeEnums(declared.enums, sink),
    sequences: declared.sequences,
    selections: declared.selections,
    usedSequences: new Set(),
    resolveTarget: (ref) => (known.has(ref) ? ref : ref === USER_ENTITY ? USER_MODEL : undefined),
    suggestTarget: (ref) => suggestName(ref, known.keys()),
    report: sink.report,
  }
  const drafts = served.map((entity) => {
    const extensions = otherModels.extensions.get(entity.name) ?? []
    const bare = { name: entity.name, fields: convertFields(entity, extensions, context) }
    return { entity, extensions, definition: applyExtensions(bare, extensions) }
  })
  const all = new Map([
    ...known,
    ...drafts.map(({ definition: { name, fields } }) => [name, fields] as const),
  ])
  const whole = drafts.map(({ entity, extensions, definition }) => {
    const fields = removeInvalidRelations(definition, (name) => all.get(name), sink.report)
    reportUnsupported(entity, report)
    const supplied = listFieldNames(extensions)
    return {
      entity,
      supplied,
      definition: applyExtensions(buildDefinition(entity, fields, sink.report), extensions),
    }
  })
  const definitions = whole.map(({ definition }) => definition)
  const orders = new ListOrderConverter(definitions, otherModels.others, sink.report)
  const models = whole.map(({ entity, supplied, definition }): DomainModel => ({
    file: entity.file,
    definition: orders.removeInvalidKeys(definition, (name) => supplied.has(name)),
  }))
  return { models, report, errors }
}

/** Returns the entities with records of their own. Reports and drops those that are system models. */
function withoutSystemModels(
  entities: ReadonlyMap<string, DomainEntity>,
  report: DomainDiagnostic[],
): DomainEntity[] {
  const taken = new Set(SYSTEM_MODELS.map(({ name }) => name))
  return [...entities.values()].filter(({ name, attributes }) => {
    if (taken.has(name)) report.push({ kind: 'system-model', location: name })
    return !taken.has(name) && attributes.get('persistable') !== 'false'
  })
}

/** Maps all possible targets of relations. The fields of entities are empty until they are converted. */
function mapKnownModels(
  entities: readonly DomainEntity[],
  { others }: OtherModels,
): Map<string, FieldDefinitions> {
  // System models need no fields here: no relation of XML can be mapped by one of them.
  const system = SYSTEM_MODELS.map(({ name }) => [name, {}] as const)
  return new Map([...system, ...others, ...entities.map(({ name }) => [name, {}] as const)])
}

/** Lists the fields that extensions add or replace. */
function listFieldNames(extensions: readonly ModelExtension[]): ReadonlySet<string> {
  return new Set(extensions.flatMap(({ fields = {} }) => Object.keys(fields)))
}

function convertFields(
  entity: DomainEntity,
  extensions: readonly ModelExtension[],
  context: DomainContext,
): FieldDefinitions {
  const supplied = listFieldNames(extensions)
  const fields = new Map<string, FieldDefinition>()
  // Fields that an extension replaces need no report, but the extension takes over their length.
  const silent = { ...context, usedSequences: new Set<string>(), report: () => undefined }
  for (const field of entity.fields.values()) {
    const isSupplied = supplied.has(field.name)
    const definition = isSupplied
      ? (convertField(entity.name, field, silent) ?? ATTRS_FIELD)
      : convertField(entity.name, field, context)
    if (definition) fields.set(field.name, definition)
  }
  const { attributes, packageName } = entity
  const hasAttrs = (attributes.get('jsonAttrs') ?? String(!PLATFORM_PACKAGE.test(packageName))) === 'true'
  // A model needs at least one field.
  if ((hasAttrs || fields.size === 0) && !fields.has('attrs')) fields.set('attrs', ATTRS_FIELD)
  return Object.fromEntries(fields)
}

function buildDefinition(
  entity: DomainEntity,
  fields: FieldDefinitions,
  report: DomainContext['report'],
): ModelDefinition {
  const nameField = findNameField(entity, fields, report)
  const { unique, indexes } = convertIndexes(entity, fields, nameField, report)
  const title = entity.attributes.get('title') ?? ''
  return {
    name: entity.name,
    ...(title === '' ? {} : { title }),
    fields,
    ...(nameField === undefined ? {} : { nameField }),
    ...(unique.length === 0 ? {} : { unique }),
    ...(indexes.length === 0 ? {} : { indexes }),
    ...(entity.checks.length === 0 ? {} : { checks: entity.checks.map(convertCheck) }),
    archived: true,
  }
}

/** An attribute that is missing stays so: the catalog rejects the check. */
function convertCheck(attributes: XmlAttributes): CheckDefinition {
  const present = ['condition', 'message', 'field'].flatMap((name) => {
    const value = attributes.get(name)
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(present) as unknown as CheckDefinition
}

function reportUnsupported(
  { name, attributes, unsupported, unknown }: DomainEntity,
  report: DomainDiagnostic[],
): void {
  for (const kind of unsupported) report.push({ kind, location: name })
  for (const element of unknown) report.push({ kind: 'element', location: name, detail: `<${element}>` })
  const strategy = attributes.get('strategy') ?? ''
  if (strategy !== '' && strategy !== 'CLASS')
    report.push({ kind: 'strategy', location: name, detail: strategy })
}
