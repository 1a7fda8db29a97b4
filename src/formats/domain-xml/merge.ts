// Merges the declarations of an entity from several files, and the fields of the entities that it extends.
import type { ReportDiagnostic } from './report.js'
import { suggestName } from './similar.js'
import {
  qualify,
  type XmlAttributes,
  type RawEntity,
  type RawEnum,
  type RawField,
  type RawIndex,
  type UnsupportedElement,
} from './declarations.js'

/** An entity, merged from all its declarations. */
export interface DomainEntity {
  readonly name: string
  readonly packageName: string
  readonly attributes: XmlAttributes
  readonly fields: ReadonlyMap<string, RawField>
  readonly indexes: readonly RawIndex[]
  readonly checks: readonly XmlAttributes[]
  readonly unsupported: ReadonlySet<UnsupportedElement>
  readonly unknown: readonly string[]
  /** The first file that declares it. */
  readonly file: string
}

export interface DiagnosticSink {
  readonly report: ReportDiagnostic
  readonly reportError: (error: string) => void
}

/** Attributes that only the first declaration of a field sets. */
const FIXED_ATTRIBUTES = new Set([
  'name',
  'column',
  'mappedBy',
  'table',
  'column2',
  'tz',
  'json',
  'initParam',
  'ref',
])
/** A later declaration cannot turn a stored field into one that is not. */
const UNSTORED_ATTRIBUTES = ['transient', 'formula']

/** Merges declarations of the same entity in the order of the files. */
export function mergeEntities(raw: readonly RawEntity[], sink: DiagnosticSink): Map<string, DomainEntity> {
  const merged = new Map<string, DomainEntity>()
  for (const entity of raw) {
    const before = merged.get(entity.name)
    merged.set(
      entity.name,
      before
        ? mergeDeclaration(before, entity, sink)
        : mergeDeclaration(createEmptyEntity(entity), entity, sink),
    )
  }
  return merged
}

function createEmptyEntity({ name, packageName, file }: RawEntity): DomainEntity {
  const [attributes, fields] = [new Map(), new Map()]
  const unsupported = new Set<UnsupportedElement>()
  return { name, packageName, attributes, fields, indexes: [], checks: [], unsupported, unknown: [], file }
}

function mergeDeclaration(before: DomainEntity, after: RawEntity, sink: DiagnosticSink): DomainEntity {
  const fields = new Map(before.fields)
  reportRepeated(after, after.fields, sink)
  for (const field of after.fields) overrideField(before.name, fields, field, sink)
  return {
    ...before,
    attributes: new Map([...before.attributes, ...after.attributes]),
    fields,
    indexes: [...before.indexes, ...after.indexes],
    checks: [...before.checks, ...after.checks],
    unsupported: new Set([...before.unsupported, ...after.unsupported]),
    unknown: [...before.unknown, ...after.unknown],
  }
}

/** Reports members that a declaration has twice. The later one is merged into the first, as if it came from another file. */
function reportRepeated(
  { name, file }: Pick<RawEntity, 'name' | 'file'>,
  members: readonly { readonly name: string; readonly line: number }[],
  { report }: Pick<DiagnosticSink, 'report'>,
): void {
  const lines = new Map<string, number>()
  for (const { name: member, line } of members) {
    const first = lines.get(member)
    if (first === undefined) lines.set(member, line)
    else
      report({
        kind: 'repeated',
        location: `${name}.${member}`,
        detail: `lines ${first} and ${line} of ${file}`,
      })
  }
}

function overrideField(
  entity: string,
  fields: Map<string, RawField>,
  field: RawField,
  sink: DiagnosticSink,
): void {
  const before = fields.get(field.name)
  if (!before) fields.set(field.name, field)
  else if (before.type === field.type) fields.set(field.name, overrideAttributes(entity, before, field, sink))
  else {
    const [here, there] =
      field.file === before.file
        ? [`in line ${field.line}`, `in line ${before.line}`]
        : ['here', `in ${before.file}`]
    sink.reportError(
      `${field.file}: ${entity}.${field.name}: has type ${field.type} ${here}, but ${before.type} ${there}`,
    )
  }
}

function overrideAttributes(
  entity: string,
  before: RawField,
  after: RawField,
  { report }: DiagnosticSink,
): RawField {
  const attributes = new Map(before.attributes)
  for (const [name, value] of after.attributes) {
    const isStored = UNSTORED_ATTRIBUTES.every((option) => before.attributes.get(option) !== 'true')
    const shrinks = name === 'large' && before.attributes.get(name) === 'true'
    const isFixed = FIXED_ATTRIBUTES.has(name) || shrinks || (isStored && UNSTORED_ATTRIBUTES.includes(name))
    if (!isFixed) attributes.set(name, value)
    else if (value !== (before.attributes.get(name) ?? 'false') && value !== attributes.get(name))
      report({ kind: 'override', location: `${entity}.${after.name}`, detail: `${name} in ${after.file}` })
  }
  return { ...before, attributes, body: after.body === '' ? before.body : after.body }
}

/** Adds the fields of the extended entities. Keeps entities that exist only to be extended. */
export function flattenInheritance(
  entities: ReadonlyMap<string, DomainEntity>,
  sink: DiagnosticSink,
): Map<string, DomainEntity> {
  const flat = new Map<string, DomainEntity>()
  const flattenOne = (entity: DomainEntity, below: readonly string[]): DomainEntity => {
    const known = flat.get(entity.name)
    if (known) return known
    const parent = findParent(entity, entities, below, sink)
    const whole = parent ? inheritFields(flattenOne(parent, [...below, entity.name]), entity, sink) : entity
    flat.set(entity.name, whole)
    return whole
  }
  for (const entity of entities.values()) flattenOne(entity, [])
  return flat
}

const MAX_ANCESTORS = 100

function findParent(
  entity: DomainEntity,
  entities: ReadonlyMap<string, DomainEntity>,
  below: readonly string[],
  { report, reportError }: DiagnosticSink,
): DomainEntity | undefined {
  const named = entity.attributes.get('extends') ?? ''
  if (named === '') return undefined
  const name = qualify(named, entity.packageName)
  const parent = entities.get(name)
  if (!parent)
    report({ kind: 'parent', location: entity.name, detail: `${name}${suggestName(name, entities.keys())}` })
  else if ([...below, entity.name].includes(parent.name)) {
    reportError(
      `${entity.file}: ${entity.name}: it extends itself through ${[...below, entity.name].join(' and ')}`,
    )
    return undefined
  } else if (below.length >= MAX_ANCESTORS) {
    reportError(`${entity.file}: ${entity.name}: its inheritance has more than ${MAX_ANCESTORS} levels`)
    return undefined
  }
  return parent
}

function inheritFields(parent: DomainEntity, child: DomainEntity, sink: DiagnosticSink): DomainEntity {
  const fields = new Map(parent.fields)
  if (parent.attributes.get('persistable') !== 'false')
    sink.report({ kind: 'strategy', location: child.name, detail: `it extends ${parent.name}` })
  for (const field of child.fields.values()) overrideField(child.name, fields, field, sink)
  const indexes = [...parent.indexes, ...child.indexes]
  return { ...child, fields, indexes, checks: [...parent.checks, ...child.checks] }
}

export function mergeEnums(
  raw: readonly RawEnum[],
  sink: Pick<DiagnosticSink, 'report'>,
): Map<string, RawEnum> {
  const merged = new Map<string, RawEnum>()
  for (const { name, items, file } of raw) {
    reportRepeated({ name, file }, items, sink)
    const all = [...(merged.get(name)?.items ?? []), ...items]
    merged.set(name, { name, items: [...new Map(all.map((item) => [item.name, item])).values()], file })
  }
  return merged
}
