// Reports attributes that domain XML does not have, which are probably misspelled.
import type { DomainDiagnostic } from './report.js'
import type { XmlAttributes, RawEntity } from './declarations.js'
import { didYouMean } from '../../model/values/did-you-mean.js'

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
]

export function reportUnknownAttributes(
  entities: readonly RawEntity[],
  report: (line: DomainDiagnostic) => void,
): void {
  for (const { name, attributes, fields, file } of entities) {
    const reportUnknown = (location: string, present: XmlAttributes, known: readonly string[]) => {
      for (const attribute of present.keys()) {
        if (known.includes(attribute) || isXmlAttribute(attribute)) continue
        const detail = `${attribute}${didYouMean(attribute, known)} in ${file}`
        report({ kind: 'attribute', location, detail })
      }
    }
    reportUnknown(name, attributes, ENTITY_ATTRIBUTES)
    for (const field of fields) reportUnknown(`${name}.${field.name}`, field.attributes, FIELD_ATTRIBUTES)
  }
}

/** Namespace declarations, and attributes with a namespace prefix. */
function isXmlAttribute(attribute: string): boolean {
  return attribute === 'xmlns' || attribute.includes(':')
}
