// Domain XML → what it declares, as data: entities, enums, sequences, and the selections of view XML.
import type { XmlElement } from './xml.js'

const FIELD_ELEMENTS = [
  ...[
    'string',
    'boolean',
    'integer',
    'long',
    'decimal',
    'date',
    'time',
    'datetime',
    'binary',
    'enum',
    'uuid',
  ],
  ...['one-to-one', 'many-to-one', 'one-to-many', 'many-to-many'],
] as const
/** What else may stand in an entity, and is reported by its kind. */
const UNSERVED = {
  'finder-method': 'finder',
  track: 'track',
  'entity-listener': 'listener',
  'extra-code': 'extra-code',
  'extra-imports': 'extra-code',
} as const

const NAME = /^[A-Za-z][A-Za-z0-9_]*$/
const PACKAGE = /^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*$/
const HARMFUL = ['constructor', 'prototype']
const ALLOWED = `a name is a letter, and then letters from A to Z, digits and _, but not ${HARMFUL.join(' or ')}`

export type Attributes = ReadonlyMap<string, string>
export type Unserved = (typeof UNSERVED)[keyof typeof UNSERVED]

export interface RawField {
  readonly type: string
  readonly name: string
  readonly attributes: Attributes
  /** The method or the SQL that works it out. */
  readonly body: string
  readonly file: string
  readonly line: number
}

export interface RawSet {
  readonly columns: readonly string[]
  readonly isUnique: boolean
}

export interface RawEntity {
  readonly packageName: string
  /** With the package in front. */
  readonly name: string
  readonly attributes: Attributes
  readonly fields: readonly RawField[]
  readonly sets: readonly RawSet[]
  readonly unserved: readonly Unserved[]
  readonly unknown: readonly string[]
  readonly file: string
}

export interface RawEnum {
  readonly name: string
  readonly items: readonly {
    readonly name: string
    readonly title: string
    readonly line: number
  }[]
  readonly file: string
}

export interface RawOption {
  readonly value: string
  readonly title: string
}

/** All that a set of files declares, in the order of the files. */
export interface Declared {
  readonly entities: RawEntity[]
  readonly enums: RawEnum[]
  readonly sequences: Map<string, Attributes>
  readonly selections: Map<string, RawOption[]>
}

export function nothingDeclared(): Declared {
  return { entities: [], enums: [], sequences: new Map(), selections: new Map() }
}

export const ROOTS = ['domain-models', 'object-views'] as const

type Fault = (fault: string) => void

/** Adds what a file declares, and tells all that is wrong in it. False if its root is of no interest here. */
export function readDomain(root: XmlElement, file: string, declared: Declared, fault: Fault): boolean {
  if (root.name === 'object-views') {
    for (const element of childrenOf(root, 'selection')) readSelection(element, declared)
    return true
  }
  if (root.name !== 'domain-models') return false
  const [module] = childrenOf(root, 'module')
  const packageName = module?.attributes.get('package') ?? ''
  if (!PACKAGE.test(packageName)) {
    fault(`line ${(module ?? root).line}: <module name="…" package="…"> must name a package`)
    return true
  }
  for (const element of root.children) {
    if (element.name === 'entity') declared.entities.push(...readEntity(element, packageName, file, fault))
    else if (element.name === 'enum') declared.enums.push(...readEnum(element, packageName, file, fault))
    else if (element.name === 'sequence')
      declared.sequences.set(element.attributes.get('name') ?? '', element.attributes)
  }
  return true
}

/** None if it has no name; so with all that is named. */
function readEntity(element: XmlElement, packageName: string, file: string, fault: Fault): RawEntity[] {
  const fields: RawField[] = []
  const sets: RawSet[] = []
  const unserved: Unserved[] = []
  const unknown: string[] = []
  for (const child of element.children) {
    const { name: kind, attributes } = child
    if ((FIELD_ELEMENTS as readonly string[]).includes(kind))
      fields.push(...readField(child, packageName, file, fault))
    else if (kind === 'unique-constraint' || kind === 'index') {
      const columns = (attributes.get('columns') ?? '').split(',').map(columnIn)
      const isUnique = kind === 'unique-constraint' || attributes.get('unique') === 'true'
      sets.push({ columns: columns.filter((column) => column !== ''), isUnique })
    } else if (Object.hasOwn(UNSERVED, kind)) unserved.push(UNSERVED[kind as keyof typeof UNSERVED])
    else unknown.push(kind)
  }
  const { attributes } = element
  return readName(element, fault).map((last) => {
    const name = `${packageName}.${last}`
    return { packageName, name, attributes, fields, sets, unserved, unknown, file }
  })
}

function readField(element: XmlElement, packageName: string, file: string, fault: Fault): RawField[] {
  const { name: type, text, line } = element
  const attributes = qualified(element.attributes, packageName)
  return readName(element, fault).map((name) => ({ type, name, attributes, body: text.trim(), file, line }))
}

/** Where the field is inherited into another package, its reference still leads into this one. */
function qualified(attributes: Attributes, packageName: string): Attributes {
  const ref = attributes.get('ref')
  return ref === undefined ? attributes : new Map([...attributes, ['ref', qualify(ref, packageName)]])
}

/** A name without a package is one of the same package. */
export function qualify(name: string, packageName: string): string {
  return name.includes('.') ? name : `${packageName}.${name}`
}

/** Without the direction in which it is sorted. */
function columnIn(text: string): string {
  return text.trim().replace(/\s+(asc|desc)$/i, '')
}

function readEnum(element: XmlElement, packageName: string, file: string, fault: Fault): RawEnum[] {
  const items = childrenOf(element, 'item').flatMap((item) => {
    const { attributes, line } = item
    const title = attributes.get('title') ?? ''
    return readName(item, fault).map((name) => ({
      name,
      title: title === '' ? name : title,
      line,
    }))
  })
  return readName(element, fault).map((name) => ({ name: `${packageName}.${name}`, items, file }))
}

function readSelection(element: XmlElement, { selections }: Declared): void {
  const name = element.attributes.get('name') ?? ''
  const options = new Map((selections.get(name) ?? []).map((option) => [option.value, option]))
  for (const option of childrenOf(element, 'option')) {
    const value = option.attributes.get('value') ?? ''
    const title = option.text.trim()
    options.set(value, { value, title: title === '' ? value : title })
  }
  selections.set(name, [...options.values()])
}

function readName({ name: kind, attributes, line }: XmlElement, fault: Fault): string[] {
  const name = attributes.get('name')
  if (name === undefined || name === '') fault(`line ${line}: <${kind}> has no name`)
  else if (!NAME.test(name) || HARMFUL.includes(name))
    fault(`line ${line}: <${kind}> cannot have the name "${name}": ${ALLOWED}`)
  else return [name]
  return []
}

function childrenOf(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => child.name === name)
}
