// One entity out of all that declares it: several files, and the entities it extends.
import type { ReportLine } from './report.js'
import { suggestName } from './similar.js'
import {
  qualify,
  type Attributes,
  type RawEntity,
  type RawEnum,
  type RawField,
  type RawSet,
  type Unserved,
} from './declarations.js'

/** An entity as all its declarations make it. */
export interface Entity {
  readonly name: string
  readonly packageName: string
  readonly attributes: Attributes
  readonly fields: ReadonlyMap<string, RawField>
  readonly sets: readonly RawSet[]
  readonly unserved: ReadonlySet<Unserved>
  readonly unknown: readonly string[]
  /** The first that declares it. */
  readonly file: string
}

export interface Notices {
  readonly report: (line: ReportLine) => void
  readonly fault: (fault: string) => void
}

/** What a field says when it is declared first; later declarations do not change it. */
const FIXED = new Set(['name', 'column', 'mappedBy', 'table', 'column2', 'tz', 'json', 'initParam', 'ref'])
/** Once stored, always stored. */
const UNSTORED = ['transient', 'formula']

/** Declarations of the same entity become one, in the order of the files. */
export function mergeEntities(raw: readonly RawEntity[], notices: Notices): Map<string, Entity> {
  const merged = new Map<string, Entity>()
  for (const entity of raw) {
    const before = merged.get(entity.name)
    merged.set(entity.name, before ? join(before, entity, notices) : join(emptyOf(entity), entity, notices))
  }
  return merged
}

function emptyOf({ name, packageName, file }: RawEntity): Entity {
  const [attributes, fields] = [new Map(), new Map()]
  return { name, packageName, attributes, fields, sets: [], unserved: new Set(), unknown: [], file }
}

function join(before: Entity, after: RawEntity, notices: Notices): Entity {
  const fields = new Map(before.fields)
  tellRepeated(after, after.fields, notices)
  for (const field of after.fields) overrideField(before.name, fields, field, notices)
  return {
    ...before,
    attributes: new Map([...before.attributes, ...after.attributes]),
    fields,
    sets: [...before.sets, ...after.sets],
    unserved: new Set([...before.unserved, ...after.unserved]),
    unknown: [...before.unknown, ...after.unknown],
  }
}

/** One declaration may name a thing twice: the later one merges into the first, as if it stood in another file. */
function tellRepeated(
  { name, file }: Pick<RawEntity, 'name' | 'file'>,
  members: readonly { readonly name: string; readonly line: number }[],
  { report }: Pick<Notices, 'report'>,
): void {
  const lines = new Map<string, number>()
  for (const { name: member, line } of members) {
    const first = lines.get(member)
    if (first === undefined) lines.set(member, line)
    else
      report({
        kind: 'repeated',
        place: `${name}.${member}`,
        detail: `lines ${first} and ${line} of ${file}`,
      })
  }
}

function overrideField(
  entity: string,
  fields: Map<string, RawField>,
  field: RawField,
  notices: Notices,
): void {
  const before = fields.get(field.name)
  if (!before) fields.set(field.name, field)
  else if (before.type === field.type) fields.set(field.name, override(entity, before, field, notices))
  else {
    const [here, there] =
      field.file === before.file
        ? [`in line ${field.line}`, `in line ${before.line}`]
        : ['here', `in ${before.file}`]
    notices.fault(
      `${field.file}: ${entity}.${field.name}: is of type ${field.type} ${here}, and ${before.type} ${there}`,
    )
  }
}

function override(entity: string, before: RawField, after: RawField, { report }: Notices): RawField {
  const attributes = new Map(before.attributes)
  for (const [name, value] of after.attributes) {
    const isStored = UNSTORED.every((option) => before.attributes.get(option) !== 'true')
    const shrinks = name === 'large' && before.attributes.get(name) === 'true'
    const isFixed = FIXED.has(name) || shrinks || (isStored && UNSTORED.includes(name))
    if (!isFixed) attributes.set(name, value)
    else if (value !== (before.attributes.get(name) ?? 'false') && value !== attributes.get(name))
      report({ kind: 'override', place: `${entity}.${after.name}`, detail: `${name} in ${after.file}` })
  }
  return { ...before, attributes, body: after.body === '' ? before.body : after.body }
}

/** The entities with the fields of those that they extend; those that are only extended stay, for others to look into. */
export function flatten(entities: ReadonlyMap<string, Entity>, notices: Notices): Map<string, Entity> {
  const flat = new Map<string, Entity>()
  const flattenOne = (entity: Entity, below: readonly string[]): Entity => {
    const known = flat.get(entity.name)
    if (known) return known
    const parent = parentOf(entity, entities, below, notices)
    const whole = parent ? inherit(flattenOne(parent, [...below, entity.name]), entity, notices) : entity
    flat.set(entity.name, whole)
    return whole
  }
  for (const entity of entities.values()) flattenOne(entity, [])
  return flat
}

const MAX_ANCESTORS = 100

function parentOf(
  entity: Entity,
  entities: ReadonlyMap<string, Entity>,
  below: readonly string[],
  { report, fault }: Notices,
): Entity | undefined {
  const named = entity.attributes.get('extends') ?? ''
  if (named === '') return undefined
  const name = qualify(named, entity.packageName)
  const parent = entities.get(name)
  if (!parent)
    report({ kind: 'parent', place: entity.name, detail: `${name}${suggestName(name, entities.keys())}` })
  else if ([...below, entity.name].includes(parent.name)) {
    fault(
      `${entity.file}: ${entity.name}: it extends itself, by way of ${[...below, entity.name].join(' and ')}`,
    )
    return undefined
  } else if (below.length >= MAX_ANCESTORS) {
    fault(`${entity.file}: ${entity.name}: more than ${MAX_ANCESTORS} entities extend one another`)
    return undefined
  }
  return parent
}

function inherit(parent: Entity, child: Entity, notices: Notices): Entity {
  const fields = new Map(parent.fields)
  if (parent.attributes.get('persistable') !== 'false')
    notices.report({ kind: 'strategy', place: child.name, detail: `it extends ${parent.name}` })
  for (const field of child.fields.values()) overrideField(child.name, fields, field, notices)
  return { ...child, fields, sets: [...parent.sets, ...child.sets] }
}

export function mergeEnums(raw: readonly RawEnum[], notices: Pick<Notices, 'report'>): Map<string, RawEnum> {
  const merged = new Map<string, RawEnum>()
  for (const { name, items, file } of raw) {
    tellRepeated({ name, file }, items, notices)
    const all = [...(merged.get(name)?.items ?? []), ...items]
    merged.set(name, { name, items: [...new Map(all.map((item) => [item.name, item])).values()], file })
  }
  return merged
}
