// A large domain in XML, invented by chance: the same for the same seed. Its proportions are those of a large suite of business applications.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

export const LARGE = { entities: 1_000, fields: 9_000, packages: 32, selections: 520, seed: 7 }
export type Size = typeof LARGE

/** How many of 1,000 fields are of each type. */
const TYPES: readonly (readonly [type: string, share: number])[] = [
  ...([
    ['many-to-one', 292],
    ['string', 90],
    ['boolean', 142],
    ['integer', 102],
    ['decimal', 94],
  ] as const),
  ...([
    ['one-to-many', 49],
    ['date', 45],
    ['many-to-many', 37],
    ['datetime', 16],
    ['one-to-one', 12],
  ] as const),
  ...([
    ['long', 9],
    ['enum', 1],
    ['time', 1],
  ] as const),
]

interface Entity {
  readonly packageName: string
  readonly name: string
  readonly fields: string[]
  readonly others: string[]
  /** Its references, for the lists of those they lead to. */
  readonly references: { readonly name: string; readonly target: Entity }[]
}

type Chance = () => number

/** Writes the files; answers how many there are, and what is in them. */
export function writeLargeDomain(folder: string, size: Size = LARGE): { files: number; relations: number } {
  const chance = seeded(size.seed)
  const entities = makeEntities(size)
  let relations = 0
  for (let index = 0; index < size.fields; index++) {
    const entity = index < entities.length ? entities[index] : pickHeavy(entities, chance)
    const type = index < entities.length ? 'string' : pickType(chance)
    if (entity && addField(entity, type, index, entities, size, chance)) relations++
  }
  for (const entity of entities) addOthers(entity, chance)
  const files = entities.flatMap((entity) => filesOf(entity, chance))
  for (const { name, text } of [...files, ...viewsOf(size)]) {
    const file = path.join(folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  return { files: files.length, relations }
}

function packageOf(index: number, { packages }: Size): string {
  return `org.large.m${String(index % packages).padStart(2, '0')}.db`
}

function makeEntities(size: Size): Entity[] {
  return Array.from({ length: size.entities }, (_, index) => ({
    ...{ packageName: packageOf(index, size), name: `Entity${index}` },
    ...{ fields: [], others: [], references: [] },
  }))
}

/** Most entities are small, a few have more than a hundred fields. */
function pickHeavy(entities: readonly Entity[], chance: Chance): Entity | undefined {
  const skew = chance() ** 1.7
  return entities[Math.floor(skew * entities.length)]
}

function pickType(chance: Chance): string {
  let left = chance() * TYPES.reduce((sum, [, share]) => sum + share, 0)
  for (const [type, share] of TYPES) {
    left -= share
    if (left < 0) return type
  }
  return 'string'
}

/** True if the field is a relation. */
function addField(
  entity: Entity,
  type: string,
  index: number,
  entities: readonly Entity[],
  size: Size,
  chance: Chance,
): boolean {
  const name =
    index < entities.length && chance() < 0.45
      ? 'name'
      : `${type.replace(/-\w/g, (part) => part[1]?.toUpperCase() ?? '')}${index}`
  const title = `title="Title of ${name}"`
  const target = entities[Math.floor(chance() * entities.length)] ?? entity
  const ref = target.packageName === entity.packageName ? target.name : `${target.packageName}.${target.name}`
  switch (type) {
    case 'many-to-one':
      entity.references.push({ name, target })
      entity.fields.push(
        `<many-to-one name="${name}" ref="${ref}" ${title}${maybe(chance, 0.1, ' required="true"')}/>`,
      )
      return true
    case 'one-to-many':
      return addList(entities, index, chance)
    case 'many-to-many':
    case 'one-to-one':
      entity.fields.push(`<${type} name="${name}" ref="${ref}" ${title}/>`)
      return true
    default:
      entity.fields.push(scalar(type, name, title, index, size, chance))
      return false
  }
}

/** The other side of some reference; a few have none. */
function addList(entities: readonly Entity[], index: number, chance: Chance): boolean {
  for (let attempt = 0; attempt < 50; attempt++) {
    const from = entities[Math.floor(chance() * entities.length)]
    const reference = from?.references.pop()
    if (!from || !reference) continue
    const { target, name } = reference
    const back = chance() < 0.91 ? ` mappedBy="${name}"` : ''
    const kept = maybe(chance, 0.06, ' orphanRemoval="false"')
    target.fields.push(
      `<one-to-many name="list${index}" ref="${from.packageName}.${from.name}"${back}${kept} title="List ${index}"/>`,
    )
    return true
  }
  return false
}

function scalar(
  type: string,
  name: string,
  title: string,
  index: number,
  size: Size,
  chance: Chance,
): string {
  const common = `name="${name}" ${title}${maybe(chance, 0.09, ' required="true"')}${maybe(chance, 0.1, ' help="What it is for"')}`
  switch (type) {
    case 'string':
      return stringField(common, chance)
    case 'integer':
      return chance() < 0.64
        ? `<integer ${common} selection="select${index % size.selections}" default="1"/>`
        : `<integer ${common}${maybe(chance, 0.2, ' min="0" max="1000"')}/>`
    case 'decimal':
      return `<decimal ${common} precision="20" scale="${chance() < 0.6 ? 3 : 10}"${maybe(chance, 0.1, ' min="0"')}/>`
    case 'boolean':
      return `<boolean ${common}${maybe(chance, 0.3, ' default="true"')}/>`
    case 'enum':
      return `<enum ${common} ref="org.large.m00.db.Level" default="LOW"/>`
    default:
      return `<${type} ${common}/>`
  }
}

function stringField(common: string, chance: Chance): string {
  const pick = chance()
  if (pick < 0.2) return `<string ${common} large="true"/>`
  if (pick < 0.26) return `<string ${common} unique="true" max="64"/>`
  if (pick < 0.31) return `<string ${common}><![CDATA[ return a == null ? "" : a + " & " + b; ]]></string>`
  if (pick < 0.33) return `<string ${common} transient="true"/>`
  if (pick < 0.34) return `<string ${common} formula="true">select max(x) from y</string>`
  if (pick < 0.4) return `<string ${common} namecolumn="true"/>`
  return `<string ${common}/>`
}

function addOthers({ fields, others }: Entity, chance: Chance): void {
  const names = fields.flatMap(
    (field) => /^<(?:many-to-one|integer|date) name="(\w+)"/.exec(field)?.[1] ?? [],
  )
  if (chance() < 0.07 && names.length > 1)
    others.push(`<unique-constraint columns="${names.slice(0, 2).join(',')}"/>`)
  if (chance() < 0.02 && names.length > 0) others.push(`<index columns="${names[0] ?? ''} DESC"/>`)
  if (chance() < 0.25) others.push('<track><field name="name"/></track>')
  if (chance() < 0.44)
    others.push('<extra-code><![CDATA[ public static final int A = 1 << 2; ]]></extra-code>')
  if (chance() < 0.15) others.push('<finder-method name="findBy" using="name"/>')
}

/** About one entity in seven is declared in several files, a few in many. */
function filesOf(
  { packageName, name, fields, others }: Entity,
  chance: Chance,
): { name: string; text: string }[] {
  const parts =
    chance() < 0.135 && fields.length > 3 ? Math.min(fields.length, 2 + Math.floor(chance() ** 4 * 20)) : 1
  return Array.from({ length: parts }, (_, part) => {
    const own = fields.filter((_, index) => index % parts === part)
    const body = [...own, ...(part === 0 ? others : [])].map((line) => `    ${line}\n`).join('')
    const level =
      name === 'Entity0' && part === 0
        ? '  <enum name="Level"><item name="LOW" title="Low"/><item name="HIGH"/></enum>\n'
        : ''
    const text =
      '<?xml version="1.0" encoding="UTF-8"?>\n<domain-models xmlns="http://example.org/domain-models">\n' +
      `  <module name="large" package="${packageName}"/>\n${level}  <entity name="${name}" cacheable="true">\n${body}  </entity>\n</domain-models>\n`
    return { name: `module${part}/domains/${packageName}/${name}.xml`, text }
  })
}

function viewsOf({ selections }: Size): { name: string; text: string }[] {
  const lists = Array.from({ length: selections }, (_, index) => {
    const options = [1, 2, 3, 4].map((value) => `    <option value="${value}">Option ${value}</option>\n`)
    return `  <selection name="select${index}">\n${options.join('')}  </selection>\n`
  })
  return [{ name: 'module0/views/Selects.xml', text: `<object-views>\n${lists.join('')}</object-views>\n` }]
}

function maybe(chance: Chance, share: number, text: string): string {
  return chance() < share ? text : ''
}

/** Numbers from 0 to 1, always the same for the same seed. */
function seeded(seed: number): Chance {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
