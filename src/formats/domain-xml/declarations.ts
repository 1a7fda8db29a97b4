// Reads the declarations of domain XML as data: entities, enums, sequences, and the selections of view XML.
import { didYouMean } from '../../model/values/did-you-mean.js'
import type { ReportDiagnostic } from './report.js'
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
/** Other valid elements of an entity. The report has a kind for each. */
const UNSUPPORTED_ELEMENTS = {
  'finder-method': 'finder',
  track: 'track',
  'entity-listener': 'listener',
  'extra-code': 'extra-code',
  'extra-imports': 'extra-code',
} as const

const XML_IDENTIFIER = /^[A-Za-z][A-Za-z0-9_]*$/
const DOMAIN_PACKAGE_NAME = /^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*$/
const RESERVED_IDENTIFIERS = ['constructor', 'prototype']
const NAME_RULE = `a name must be a letter from A to Z, followed by such letters, digits or _, and not ${RESERVED_IDENTIFIERS.join(' or ')}`

export type XmlAttributes = ReadonlyMap<string, string>
export type UnsupportedElement = (typeof UNSUPPORTED_ELEMENTS)[keyof typeof UNSUPPORTED_ELEMENTS]

export interface RawField {
  readonly type: string
  readonly name: string
  readonly attributes: XmlAttributes
  /** The Java method or the SQL that computes the field. */
  readonly body: string
  readonly file: string
  readonly line: number
}

export interface RawIndex {
  readonly columns: readonly string[]
  readonly isUnique: boolean
}

export interface RawEntity {
  readonly packageName: string
  /** The qualified name. */
  readonly name: string
  readonly attributes: XmlAttributes
  readonly fields: readonly RawField[]
  readonly indexes: readonly RawIndex[]
  /** The attributes of each `<check>`, an element that only Verso has. */
  readonly checks: readonly XmlAttributes[]
  readonly unsupported: readonly UnsupportedElement[]
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

/** The declarations of a set of files, in the order of the files. */
export interface DomainDeclarations {
  readonly entities: RawEntity[]
  readonly enums: RawEnum[]
  readonly sequences: Map<string, XmlAttributes>
  readonly selections: Map<string, RawOption[]>
}

export function createDeclarations(): DomainDeclarations {
  return { entities: [], enums: [], sequences: new Map(), selections: new Map() }
}

export const ROOT_ELEMENTS = ['domain-models', 'object-views'] as const

type ReportXmlError = (error: string) => void

/** Adds the declarations of a file and reports its errors. Returns false if its root is neither domain nor view XML. */
export function readDomainXml(
  root: XmlElement,
  file: string,
  declared: DomainDeclarations,
  error: ReportXmlError,
): boolean {
  if (root.name === 'object-views') {
    for (const element of findChildren(root, 'selection')) readSelection(element, declared)
    return true
  }
  if (root.name !== 'domain-models') return false
  const [module] = findChildren(root, 'module')
  const packageName = module?.attributes.get('package') ?? ''
  if (!DOMAIN_PACKAGE_NAME.test(packageName)) {
    error(`line ${(module ?? root).line}: <module name="…" package="…"> must name a valid package`)
    return true
  }
  for (const element of root.children) {
    if (element.name === 'entity') declared.entities.push(...readEntity(element, packageName, file, error))
    else if (element.name === 'enum') declared.enums.push(...readEnum(element, packageName, file, error))
    else if (element.name === 'sequence')
      declared.sequences.set(element.attributes.get('name') ?? '', element.attributes)
  }
  return true
}

/** Returns an empty list if the element has no valid name. The other readers do the same. */
function readEntity(
  element: XmlElement,
  packageName: string,
  file: string,
  error: ReportXmlError,
): RawEntity[] {
  const fields: RawField[] = []
  const indexes: RawIndex[] = []
  const checks: XmlAttributes[] = []
  const unsupported: UnsupportedElement[] = []
  const unknown: string[] = []
  for (const child of element.children) {
    const { name: kind, attributes } = child
    if ((FIELD_ELEMENTS as readonly string[]).includes(kind))
      fields.push(...readField(child, packageName, file, error))
    else if (kind === 'unique-constraint' || kind === 'index') {
      const columns = (attributes.get('columns') ?? '').split(',').map(parseColumn)
      const isUnique = kind === 'unique-constraint' || attributes.get('unique') === 'true'
      indexes.push({ columns: columns.filter((column) => column !== ''), isUnique })
    } else if (kind === 'check') checks.push(attributes)
    else if (Object.hasOwn(UNSUPPORTED_ELEMENTS, kind))
      unsupported.push(UNSUPPORTED_ELEMENTS[kind as keyof typeof UNSUPPORTED_ELEMENTS])
    else unknown.push(kind)
  }
  const { attributes } = element
  return readName(element, error).map((last) => {
    const name = `${packageName}.${last}`
    return { packageName, name, attributes, fields, indexes, checks, unsupported, unknown, file }
  })
}

function readField(
  element: XmlElement,
  packageName: string,
  file: string,
  error: ReportXmlError,
): RawField[] {
  const { name: type, text, line } = element
  const attributes = qualifyReference(element.attributes, packageName)
  return readName(element, error).map((name) => ({ type, name, attributes, body: text.trim(), file, line }))
}

/** An inherited field keeps referring to the package that declares it, so its reference is qualified here. */
function qualifyReference(attributes: XmlAttributes, packageName: string): XmlAttributes {
  const ref = attributes.get('ref')
  return ref === undefined ? attributes : new Map([...attributes, ['ref', qualify(ref, packageName)]])
}

/** Adds the package to a name without one. */
export function qualify(name: string, packageName: string): string {
  return name.includes('.') ? name : `${packageName}.${name}`
}

/** Removes the sort direction. */
function parseColumn(text: string): string {
  return text.trim().replace(/\s+(asc|desc)$/i, '')
}

function readEnum(element: XmlElement, packageName: string, file: string, error: ReportXmlError): RawEnum[] {
  const items = findChildren(element, 'item').flatMap((item) => {
    const { attributes, line } = item
    const title = attributes.get('title') ?? ''
    return readName(item, error).map((name) => ({
      name,
      title: title === '' ? name : title,
      line,
    }))
  })
  return readName(element, error).map((name) => ({ name: `${packageName}.${name}`, items, file }))
}

function readSelection(element: XmlElement, { selections }: DomainDeclarations): void {
  const name = element.attributes.get('name') ?? ''
  const options = new Map((selections.get(name) ?? []).map((option) => [option.value, option]))
  for (const option of findChildren(element, 'option')) {
    const value = option.attributes.get('value') ?? ''
    const title = option.text.trim()
    options.set(value, { value, title: title === '' ? value : title })
  }
  selections.set(name, [...options.values()])
}

function readName({ name: kind, attributes, line }: XmlElement, error: ReportXmlError): string[] {
  const name = attributes.get('name')
  if (name === undefined || name === '') error(`line ${line}: <${kind}> has no name`)
  else if (!XML_IDENTIFIER.test(name) || RESERVED_IDENTIFIERS.includes(name))
    error(`line ${line}: <${kind}> cannot have the name "${name}": ${NAME_RULE}`)
  else return [name]
  return []
}

function findChildren(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => child.name === name)
}

const ENTITY_ATTRIBUTES = [
  ...['name', 'title', 'table', 'extends', 'implements', 'strategy', 'persistable', 'cacheable'],
  ...['repository', 'logUpdates', 'jsonAttrs', 'equalsIncludeAll', 'allocationSize', 'sequential'],
]
/** The attributes of all field types, including those for views and Java, which have no effect here. */
const FIELD_ATTRIBUTES = [
  ...['name', 'column', 'title', 'help', 'hidden', 'readonly', 'initParam', 'index', 'insertable'],
  ...['updatable', 'required', 'unique', 'default', 'transient', 'massUpdate', 'copy', 'nullable'],
  ...['selection', 'formula', 'equalsInclude', 'min', 'max', 'multiline', 'large', 'namecolumn'],
  ...['search', 'json', 'password', 'sequence', 'translatable', 'encrypted', 'precision', 'scale'],
  ...['tz', 'image', 'ref', 'mappedBy', 'orphanRemoval', 'orderBy', 'table', 'column2'],
  ...['pattern', 'format', 'message'],
]
const CHECK_ATTRIBUTES = ['condition', 'message', 'field']

/** Reports attributes that domain XML does not have, which are probably misspelled. */
export function reportUnknownAttributes(entities: readonly RawEntity[], report: ReportDiagnostic): void {
  for (const { name, attributes, fields, checks, file } of entities) {
    const reportUnknown = (location: string, present: XmlAttributes, known: readonly string[]) => {
      for (const attribute of present.keys()) {
        if (known.includes(attribute) || isXmlAttribute(attribute)) continue
        const detail = `${attribute}${didYouMean(attribute, known)} in ${file}`
        report({ kind: 'attribute', location, detail })
      }
    }
    reportUnknown(name, attributes, ENTITY_ATTRIBUTES)
    for (const field of fields) reportUnknown(`${name}.${field.name}`, field.attributes, FIELD_ATTRIBUTES)
    for (const check of checks) reportUnknown(`${name} <check>`, check, CHECK_ATTRIBUTES)
  }
}

/** Namespace declarations, and attributes with a namespace prefix. */
function isXmlAttribute(attribute: string): boolean {
  return attribute === 'xmlns' || attribute.includes(':')
}
