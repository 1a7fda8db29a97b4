// All of domain XML → definitions of the same shape that `defineModel` takes, and a report of what is not taken over.
import type { FieldDefinition, ModelDefinition } from '../../model/definition/define-model.js'
import { tellUnknownAttributes } from './attributes.js'
import { definitionOf, type Surroundings } from './fields.js'
import { flatten, mergeEntities, mergeEnums, type Entity } from './merge.js'
import { Orders } from './order.js'
import { settleRelations, type Fields } from './relations.js'
import type { ReportLine } from './report.js'
import { nameFieldOf, setsOf } from './sets.js'
import { suggestName } from './similar.js'
import type { Declared } from './declarations.js'
import { extend, type ModelExtension } from '../../model/definition/extend-model.js'
import { USER_MODEL } from '../../model/definition/model.js'
import { SYSTEM_MODELS } from '../../model/catalog/system-models.js'

/** The accounts of the service, where no XML says otherwise. */
const USER_ENTITY = 'com.axelor.auth.db.User'
const PLATFORM = /^com\.axelor\.(auth|meta|mail|dms|team)(\.|$)/
const ATTRS: FieldDefinition = { type: 'json' }

export interface DomainModel {
  /** The first file that declares it. */
  readonly file: string
  readonly definition: ModelDefinition
}

export interface DomainModels {
  readonly models: readonly DomainModel[]
  readonly report: readonly ReportLine[]
  readonly faults: readonly string[]
}

export interface Beside {
  /** By the name of the model they extend. */
  readonly extensions: ReadonlyMap<string, readonly ModelExtension[]>
  /** Models of other files, which XML may refer to. */
  readonly others: ReadonlyMap<string, Fields>
}

const NOTHING_BESIDE: Beside = { extensions: new Map(), others: new Map() }

export function domainModels(declared: Declared, beside: Beside = NOTHING_BESIDE): DomainModels {
  const report: ReportLine[] = []
  const faults: string[] = []
  const notices = {
    report: (line: ReportLine) => report.push(line),
    fault: (fault: string) => faults.push(fault),
  }
  tellUnknownAttributes(declared.entities, notices.report)
  const served = withoutSystemModels(flatten(mergeEntities(declared.entities, notices), notices), report)
  const known = knownModels(served, beside)
  const surroundings: Surroundings = {
    enums: mergeEnums(declared.enums, notices),
    ...{ sequences: declared.sequences, selections: declared.selections },
    countedBy: new Set(),
    targetOf: (ref) => (known.has(ref) ? ref : ref === USER_ENTITY ? USER_MODEL : undefined),
    suggestTarget: (ref) => suggestName(ref, known.keys()),
    report: notices.report,
  }
  const drafts = served.map((entity) => {
    const extensions = beside.extensions.get(entity.name) ?? []
    const bare = { name: entity.name, fields: fieldsOf(entity, extensions, surroundings) }
    return { entity, extensions, definition: extend(bare, extensions) }
  })
  const all = new Map([
    ...known,
    ...drafts.map(({ definition: { name, fields } }) => [name, fields] as const),
  ])
  const whole = drafts.map(({ entity, extensions, definition }) => {
    const fields = settleRelations(definition, (name) => all.get(name), notices.report)
    tellUnserved(entity, report)
    const supplied = namesIn(extensions)
    return { entity, supplied, definition: extend(wholeOf(entity, fields, notices.report), extensions) }
  })
  const definitions = whole.map(({ definition }) => definition)
  const orders = new Orders(definitions, beside.others, notices.report)
  const models = whole.map(({ entity, supplied, definition }): DomainModel => ({
    file: entity.file,
    definition: orders.settle(definition, (name) => supplied.has(name)),
  }))
  return { models, report, faults }
}

/** Those that have records of their own. */
function withoutSystemModels(entities: ReadonlyMap<string, Entity>, report: ReportLine[]): Entity[] {
  const taken = new Set(SYSTEM_MODELS.map(({ name }) => name))
  return [...entities.values()].filter(({ name, attributes }) => {
    if (taken.has(name)) report.push({ kind: 'system-model', place: name })
    return !taken.has(name) && attributes.get('persistable') !== 'false'
  })
}

/** All that may be referred to. The fields of entities are not known yet. */
function knownModels(entities: readonly Entity[], { others }: Beside): Map<string, Fields> {
  // A list shows no field of the service's own models: none of these leads anywhere.
  const system = SYSTEM_MODELS.map(({ name }) => [name, {}] as const)
  return new Map([...system, ...others, ...entities.map(({ name }) => [name, {}] as const)])
}

/** The fields that extensions add or replace. */
function namesIn(extensions: readonly ModelExtension[]): ReadonlySet<string> {
  return new Set(extensions.flatMap(({ fields = {} }) => Object.keys(fields)))
}

function fieldsOf(entity: Entity, extensions: readonly ModelExtension[], surroundings: Surroundings): Fields {
  const supplied = namesIn(extensions)
  const fields = new Map<string, FieldDefinition>()
  // What is supplied needs no report, but the extension keeps its length.
  const silent = { ...surroundings, countedBy: new Set<string>(), report: () => undefined }
  for (const field of entity.fields.values()) {
    const isSupplied = supplied.has(field.name)
    const definition = isSupplied
      ? (definitionOf(entity.name, field, silent) ?? ATTRS)
      : definitionOf(entity.name, field, surroundings)
    if (definition) fields.set(field.name, definition)
  }
  const { attributes, packageName } = entity
  const hasAttrs = (attributes.get('jsonAttrs') ?? String(!PLATFORM.test(packageName))) === 'true'
  // A model has at least one field.
  if ((hasAttrs || fields.size === 0) && !fields.has('attrs')) fields.set('attrs', ATTRS)
  return Object.fromEntries(fields)
}

function wholeOf(entity: Entity, fields: Fields, report: Surroundings['report']): ModelDefinition {
  const nameField = nameFieldOf(entity, fields, report)
  const { unique, indexes } = setsOf(entity, fields, nameField, report)
  const title = entity.attributes.get('title') ?? ''
  return {
    name: entity.name,
    ...(title === '' ? {} : { title }),
    fields,
    ...(nameField === undefined ? {} : { nameField }),
    ...(unique.length === 0 ? {} : { unique }),
    ...(indexes.length === 0 ? {} : { indexes }),
    archived: true,
  }
}

function tellUnserved({ name, attributes, unserved, unknown }: Entity, report: ReportLine[]): void {
  for (const kind of unserved) report.push({ kind, place: name })
  for (const element of unknown) report.push({ kind: 'element', place: name, detail: `<${element}>` })
  const strategy = attributes.get('strategy') ?? ''
  if (strategy !== '' && strategy !== 'CLASS')
    report.push({ kind: 'strategy', place: name, detail: strategy })
}
